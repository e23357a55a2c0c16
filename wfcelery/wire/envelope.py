"""The envelope: a purpose, a version, a signature over both and the payload, and the payload.

`w1:` + 64 hexadecimal digits of HMAC-SHA256 + `:` + JSON. The purpose is signed with the payload, so that
nothing that was sealed for one purpose passes for another, even under the same key. Requests and orders have
the time at which they were sealed before the JSON, in whole seconds and `:`, for they are not believed for
ever: a request would be done again once its answer is forgotten. What workers say is about one fence.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Final

from wfcelery.errors import InvalidInput
from wfcelery.wire import fields

VERSION: Final = b"1"
_SIGNATURE: Final = slice(3, 67)
HEAD: Final = 68
"""Bytes before the payload."""

SAID: Final = b"w"
ASKED: Final = b"c"
ORDERED: Final = b"o"
"""The purposes: what workers say, what is asked of the executor, what workers are ordered to do."""

STAMP: Final = 12
"""Bytes of the time, at most."""

_STAMPED: Final = re.compile(rb"([0-9]{1,11}):")
_DAY_S: Final = 86_400.0
_WORDS: Final = {SAID: "a worker's message", ASKED: "a request", ORDERED: "an order to a worker"}


def close(purpose: bytes, key: bytes, payload: bytes) -> bytes:
    """Seal a payload."""
    return b"%b%b:%b:%b" % (purpose, VERSION, _signature(purpose, key, payload), payload)


def stamp(payload: bytes, now: float) -> bytes:
    """Put the time before a payload; it is signed with it."""
    return b"%d:%b" % (now, payload)


def unstamp(payload: bytes, now: float) -> tuple[float, bytes]:
    """Give the age of what `stamp` made, in seconds (below zero: it is from the future), and the rest."""
    stamped = _STAMPED.match(payload)
    if stamped is None:
        raise InvalidInput("envelope", "does not say when it was sealed")
    return now - int(stamped[1]), payload[stamped.end() :]


def too_old(age: float, what: str, taken_s: float) -> InvalidInput:
    """Make the error that says since when nobody does any more what was sealed so long ago."""
    limit = taken_s / _DAY_S
    taken = f"{what} are taken for {limit:g} {'day' if limit == 1 else 'days'}"
    return InvalidInput("envelope", f"was sealed {age / _DAY_S:.1f} days ago; {taken}")


def unseal(data: bytes, keys: Mapping[bytes, tuple[bytes, ...]]) -> tuple[bytes, bytes]:
    """Give the purpose and payload of what one of the keys for its purpose has sealed.

    `keys` names the purposes that are expected here. Anything else raises `InvalidInput`.
    """
    if len(data) < HEAD or data[2:3] != b":" or data[HEAD - 1 : HEAD] != b":":
        raise InvalidInput("envelope", "is not sealed: only what holds one of our keys may speak here")
    purpose = data[:1]
    if purpose not in _WORDS:
        raise InvalidInput("envelope", f"has the unknown purpose {fields.shown(_letter(data, 0))}")
    if data[1:2] != VERSION:
        found = fields.shown(_letter(data, 1))
        raise InvalidInput(
            "envelope", f"is of version {found}, this wfcelery knows 1; upgrade whichever is older"
        )
    if purpose not in keys:
        raise InvalidInput("envelope", f"is sealed as {_WORDS[purpose]}, which does not belong here")
    payload = data[HEAD:]
    given = data[_SIGNATURE]
    if not any(hmac.compare_digest(given, _signature(purpose, key, payload)) for key in keys[purpose]):
        hint = "it was forged or changed, or sealed with a key that is not (or no longer) in use here"
        raise InvalidInput("envelope", f"is not sealed by a key for {_WORDS[purpose]}: {hint}")
    return purpose, payload


def _signature(purpose: bytes, key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, purpose + VERSION + payload, "sha256").hex().encode()


def _letter(data: bytes, place: int) -> str:
    return data[place : place + 1].decode("latin-1")
