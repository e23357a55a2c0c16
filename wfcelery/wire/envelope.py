"""The envelope: a purpose, a version, a signature over both and the payload, and the payload.

`w1:` + 64 hexadecimal digits of HMAC-SHA256 + `:` + JSON. The purpose is signed with the payload, so that
nothing that was sealed for one purpose passes for another, even under the same key.
"""

from __future__ import annotations

import hmac
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

_WORDS: Final = {SAID: "a worker's message", ASKED: "a request", ORDERED: "an order to a worker"}


def close(purpose: bytes, key: bytes, payload: bytes) -> bytes:
    """Seal a payload."""
    return b"%b%b:%b:%b" % (purpose, VERSION, _signature(purpose, key, payload), payload)


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
