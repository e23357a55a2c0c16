"""Sealing what goes into the mailbox, and reading what comes out of it, whoever put it there."""

from __future__ import annotations

import re
from typing import Final

from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.errors import InvalidInput, InvalidSettings
from wfcelery.executor.messages import Message, Unreadable
from wfcelery.wire import codec, envelope
from wfcelery.wire.keys import Keyring

LONGEST_TEXT: Final = 2_000
"""Characters that are kept of what cannot be read."""

_MAX_ENVELOPE: Final = codec.MAX_BYTES + envelope.HEAD
_READ_OF_BAD: Final = 4 * LONGEST_TEXT + envelope.HEAD
_SIGNED: Final = re.compile(r"^([a-z][0-9]):[0-9a-fA-F]{64}:")
_MAY_SAY: Final = {envelope.SAID: codec.SAID, envelope.ASKED: codec.ASKED}
_SPEAKER: Final = {envelope.SAID: "workers", envelope.ASKED: "requests"}


class Seal:
    """Writes messages under the key of who may say them, and believes only what is sealed so."""

    __slots__ = ("_keys", "_limits", "_ring")

    def __init__(self, ring: Keyring, limits: Limits = DEFAULT) -> None:
        self._ring = ring
        self._limits = limits
        self._keys = {envelope.SAID: ring.workers, envelope.ASKED: ring.commands}

    def write(self, message: Message) -> bytes:
        """Seal a message. Raises `InvalidSettings` without its key, `InvalidInput` if it cannot travel."""
        purpose = envelope.SAID if type(message) in codec.SAID else envelope.ASKED
        payload = codec.encode(message, limits=self._limits)
        keys = self._keys[purpose]
        if not keys:
            raise _lacking(purpose, type(message).__name__)
        return envelope.close(purpose, keys[0], payload)

    def read(self, data: bytes) -> Message:
        """Read a message; what is not one, or is not for its sender to say, is `Unreadable`. Never raises."""
        try:
            return self._read(data)
        except InvalidInput as fault:
            return Unreadable(self._readable(data), str(fault))

    def _read(self, data: bytes) -> Message:
        if len(data) > _MAX_ENVELOPE:
            raise InvalidInput("envelope", f"is {len(data):,} bytes; at most {_MAX_ENVELOPE:,} are allowed")
        purpose, payload = envelope.unseal(data, self._keys)
        message = codec.decode(payload, limits=self._limits)
        if type(message) not in _MAY_SAY[purpose]:
            name = type(message).__name__
            raise InvalidInput("kind", f"{name} is not for {_SPEAKER[purpose]} to say")
        return message

    def _readable(self, data: bytes) -> str:
        """Show what came: printable, short, without the signature (it may be good elsewhere) and our keys."""
        text = data[:_READ_OF_BAD].decode("utf-8", "backslashreplace")
        text = _SIGNED.sub(r"\1:...:", text)
        for key in (*self._ring.workers, *self._ring.commands, *self._ring.links):
            text = re.sub(key.hex(), "...", text, flags=re.IGNORECASE)
        beginning = text[: LONGEST_TEXT + 1]
        shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in beginning)
        return shown if len(shown) <= LONGEST_TEXT else f"{shown[: LONGEST_TEXT - 3]}..."


def _lacking(purpose: bytes, name: str) -> InvalidSettings:
    if purpose == envelope.SAID:
        hint = "give it WFCELERY_WORKER_KEY, which `wfcelery keys` prints"
        return InvalidSettings("worker_key", f"this process has no worker key to seal {name} with; {hint}")
    hint = "requests come from processes that have WFCELERY_SECRET_KEY, never from workers"
    return InvalidSettings("secret_key", f"this process has no command key to seal {name} with; {hint}")
