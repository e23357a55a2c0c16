"""`POST /hooks/SIGNAL`: another system tells runs something, and proves by a signature that it may.

The secret of a hook is in the environment of this process, as `WFHOOK_SIGNAL`, and nowhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from wfcelery.core.document.spec import is_name
from wfcelery.core.limits import MIB
from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import InvalidInput
from wfcelery.settings import HOOK_PREFIX
from wfcelery.web import json_body
from wfcelery.web.doors import Door
from wfcelery.web.failures import BadSignature, TooMany
from wfcelery.web.guard import bounded, desk_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.core.values import Json
    from wfcelery.web.desk import Desk

logger: Final = logging.getLogger("wfcelery.web")

HEADER: Final = "x-wfcelery-signature"
SHORTEST_SECRET: Final = 16
CLOCKS_DIFFER_S: Final = 300
LARGEST_BODY: Final = MIB
LONGEST_TEXT: Final = 1_000
_SIGNATURE: Final = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")
# Compared with where there is no secret: how long an answer takes must not tell which hooks there are.
_NO_SECRET: Final = secrets.token_bytes(32)


async def receive(request: Request) -> Response:
    """Deliver a signal, once for each signature. What is not signed is not even read to its end."""
    desk, name = desk_of(request), request.path_params["signal"]
    address = request.client.host if request.client else ""
    if desk.bad_hooks.is_over(address):
        raise TooMany
    try:
        body = await _signed_body(request, name)
    except BadSignature:
        desk.bad_hooks.take(address)
        raise
    payload = json_body.read(body, request.headers)
    target = _target(request, payload)
    signature = request.headers[HEADER]
    command_id = hashlib.sha256(f"hook:{name}:{signature}".encode()).hexdigest()[:32]
    reached = await run_in_threadpool(_deliver, desk, name, target, payload, command_id)
    return JSONResponse({"signal": name, "reached": reached, "kept": not reached}, 202)


def sign(secret: str, body: bytes, at: int, query: str = "") -> str:
    """Write the header that proves a body and whom the address says it is for, as senders do."""
    return f"t={at},v1={_digest(secret.encode(), at, query.encode(), body)}"


async def _signed_body(request: Request, name: str) -> bytes:
    given = request.headers.getlist(HEADER)
    match = _SIGNATURE.fullmatch(given[0]) if len(given) == 1 else None
    if match is None or abs(time.time() - int(match[1])) > CLOCKS_DIFFER_S:
        raise BadSignature
    body = await bounded(request, LARGEST_BODY)
    query = request.scope["query_string"]
    expected = [_digest(secret, int(match[1]), query, body) for secret in _secrets(name)]
    if not any(hmac.compare_digest(match[2], each) for each in expected):
        raise BadSignature
    return body


def _secrets(name: str) -> list[bytes]:
    """Give the secrets of a hook: several, separated by commas, while one takes the place of another."""
    text = os.environ.get(HOOK_PREFIX + name, "") if is_name(name) else ""
    found = [each.strip() for each in text.split(",") if each.strip()]
    good = [each.encode() for each in found if len(each) >= SHORTEST_SECRET]
    if len(good) < len(found):
        _warn_once(HOOK_PREFIX + name)
    return good or [_NO_SECRET]


@lru_cache(maxsize=1_000)
def _warn_once(variable: str) -> None:
    said = f"holds a secret of less than {SHORTEST_SECRET} characters, which is not used"
    logger.warning("%s %s; `wfcelery keys --new` prints a good one", variable, said)


def _digest(secret: bytes, at: int, query: bytes, body: bytes) -> str:
    return hmac.digest(secret, b"%d.%b.%b" % (at, query, body), "sha256").hex()


def _target(request: Request, payload: Json) -> dict[str, str]:
    """Say whom a signal is for: as the address says, and only if it says nothing, as the body does."""
    names = ("run_id", "flow", "key")
    found: dict[str, object] = {}
    for name in names:
        values = request.query_params.getlist(name)
        if len(values) > 1:
            raise InvalidInput(name, "is given twice; give it once")
        if values:
            found[name] = values[0]
    if not found and isinstance(payload, dict):
        found = {name: payload[name] for name in ("run_id", "key") if name in payload}
    told: dict[str, str] = {}
    for name, value in found.items():
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
            raise InvalidInput(name, f"must be text of 1 to {LONGEST_TEXT:,} characters")
        told[name] = value
    if set(told) not in ({"run_id"}, {"key"}, {"flow", "key"}):
        raise InvalidInput("key", "is needed, or flow and key, or run_id: in the address, or in the body")
    return told


def _deliver(desk: Desk, name: str, target: dict[str, str], payload: Json, command_id: str) -> list[str]:
    """Pass the signal on; name the runs that were told."""
    who = Principal(f"hook:{name}", Kind.SYSTEM)
    if set(target) == {"key"}:
        return desk.workflows.broadcast(name, target["key"], payload, by=who, command_id=command_id)
    run = target.get("run_id") or desk.workflows.find(target["flow"], target["key"]).id
    desk.workflows.signal(run, name, payload, by=who, command_id=command_id)
    return [run]


DOORS: Final = (
    Door(
        "POST",
        "/hooks/{signal}",
        receive,
        "hook",
        open_because="other systems have no account; a signature over what they send lets them in",
        for_programs=True,
    ),
)
