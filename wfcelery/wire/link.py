"""Approval links: one person's way to one attempt of one gate, until a moment that the link itself names.

A link says who may look and decide with it. Whether anything is left to decide, only the gate's row says: no
link is ever marked as used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, WfceleryError
from wfcelery.wire import fields
from wfcelery.wire.keys import Keyring
from wfcelery.wire.signed import BadToken, read_signed, write_signed

PURPOSE: Final = "approval"
PATH: Final = "a"
"""What stands between the base URL and the token."""

_PARTS: Final = 5
_NO_FENCE: Final = 0
_NO_ITEM: Final = -1


@dataclass(frozen=True, slots=True)
class Link:
    """What a link is bound to. `expires_at`: seconds since 1970; from then on it is refused."""

    run_id: str
    step: str
    attempt: int
    approver: str
    expires_at: float


class BadLink(WfceleryError):
    """A link that opens nothing. Whether it is unknown, foreign, changed or expired is not said."""

    code = "bad-link"

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return "this link is not valid, or no longer; ask for a new one"


def write_link(ring: Keyring, link: Link) -> str:
    """Write the token of a link. Raises `InvalidSettings` without a key, `InvalidInput` for bad parts."""
    parts: list[Json] = [link.run_id, link.step, link.attempt, link.approver, link.expires_at]
    _checked(parts)
    return write_signed(ring, PURPOSE, parts)


def read_link(ring: Keyring, token: str, now: float) -> Link:
    """Give the link that a token stands for. Anything else raises `BadLink`, always in the same words."""
    try:
        link = _checked(read_signed(ring, PURPOSE, token))
    except (BadToken, InvalidInput):
        raise BadLink from None
    if now >= link.expires_at:
        raise BadLink
    return link


def link_url(base_url: str, token: str) -> str:
    """Write where a token is shown: `BASE/a/TOKEN`. The base may have a path, and a slash at its end."""
    return f"{base_url.rstrip('/')}/{PATH}/{quote(token, safe='')}"


def _checked(parts: Json) -> Link:
    if not isinstance(parts, list) or len(parts) != _PARTS:
        raise InvalidInput(PURPOSE, f"must be a list of {_PARTS} parts")
    run_id, step, attempt, approver, expires_at = parts
    fault = fields.faults_of_ref(run_id, step, _NO_ITEM, attempt, _NO_FENCE)
    if fault:
        raise InvalidInput(PURPOSE, fault)
    fields.short(approver, f"{PURPOSE}.approver")
    fields.moment(expires_at, f"{PURPOSE}.expires_at")
    return Link(run_id, step, attempt, approver, float(expires_at))
