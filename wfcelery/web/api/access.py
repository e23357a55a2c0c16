"""Which run is meant, and whether it is theirs: what may not be read is not there."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from wfcelery.core import ids, values
from wfcelery.errors import InvalidInput, NotFound
from wfcelery.rights import Permission, Resource
from wfcelery.store import pages
from wfcelery.web.api.operation import Call
from wfcelery.web.desk import Desk

if TYPE_CHECKING:
    from typing import Any

    from wfcelery.core.messages import Principal
    from wfcelery.store import Connection

REPEAT_HEADER: Final = "idempotency-key"
LONGEST_KEY: Final = 200
# Where the time would stand in an id that was drawn: the same request must find the same id at any time.
_NO_TIME: Final = ids.ALPHABET[0] * 10


def run_of(call: Call[Any, Any], conn: Connection, permission: Permission = Permission.READ) -> pages.Place:
    """Find the run that the path names. Who may not read it learns nothing of it, not even that it is."""
    run_id = call.part("id")
    found = pages.place(conn, run_id) if ids.is_run_id(run_id) else None
    if found is not None:
        resource = resource_of(found)
        if call.desk.may(call.who, permission, resource):
            return found
        if call.desk.may(call.who, Permission.READ, resource):
            call.desk.require(call.who, permission, resource)
    raise NotFound("run", run_id)


def require_flow(desk: Desk, who: Principal, permission: Permission, flow: str, asked: str) -> None:
    """Refuse what somebody may not do to a flow; one that may not be read is not there.

    `asked` is how they have named it: nothing else is said of it.
    """
    resource = Resource(flow=flow)
    if desk.may(who, permission, resource):
        return
    if not desk.may(who, Permission.READ, resource):
        raise NotFound("definition", asked)
    desk.require(who, permission, resource)


def resource_of(run: pages.Place) -> Resource:
    """Say what somebody asks for who asks for a run."""
    return Resource(run.name, run.id, run.created_by)


def repeated_run(call: Call[Any, Any]) -> str | None:
    """Give the id of the run that the header names: the same for the same user and key."""
    key = _key(call)
    if key is None:
        return None
    return run_named(call.who.id, key)


def run_named(user: str, key: str) -> str:
    """Give the id of the run that a user names by a key; no other user and key name it."""
    return _NO_TIME + _letters(values.canonical(["run", user, key]))[: ids.LENGTH - len(_NO_TIME)]


def repeated_command(call: Call[Any, Any]) -> str | None:
    """Give the id of the command that the header names: the same for the same user, path, body and key."""
    key = _key(call)
    if key is None:
        return None
    said = values.canonical(call.body.model_dump(mode="json"))
    text = f"{call.who.id}\n{call.request.method}\n{call.request.url.path}\n{said}\n{key}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _key(call: Call[Any, Any]) -> str | None:
    given = call.request.headers.getlist(REPEAT_HEADER)
    if not given:
        return None
    if len(given) > 1 or not 0 < len(given[0]) <= LONGEST_KEY or not given[0].isprintable():
        raise InvalidInput(REPEAT_HEADER, f"must be given once, with 1 to {LONGEST_KEY} printable characters")
    return given[0]


def _letters(text: str) -> str:
    """Name a text by letters that ids have."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    digits = []
    for _ in range(ids.LENGTH):
        number, digit = divmod(number, len(ids.ALPHABET))
        digits.append(ids.ALPHABET[digit])
    return "".join(digits)
