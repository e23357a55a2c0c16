"""Sealing what goes into the mailbox, and reading what comes out of it, whoever put it there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.errors import InvalidInput, InvalidSettings
from wfcelery.executor.messages import Message, Unreadable
from wfcelery.wire import codec, envelope
from wfcelery.wire.keys import Keyring

REQUESTS_TAKEN_S: Final = 86_400.0
"""How old a request may be when it is read. Its answer is kept for longer, so that a repeat finds it."""

CLOCKS_DIFFER_S: Final = 3_600.0
"""How far the clock of who asks may be ahead of the reader's."""

LONGEST_TEXT: Final = 2_000
"""Characters that are kept of what cannot be read."""

_MAX_ENVELOPE: Final = codec.MAX_BYTES + envelope.HEAD + envelope.STAMP
_READ_OF_BAD: Final = 4 * LONGEST_TEXT + envelope.HEAD
_SIGNED: Final = re.compile(r"^([a-z][0-9]):[0-9a-fA-F]{64}:")
_MAY_SAY: Final = {envelope.SAID: codec.SAID, envelope.ASKED: codec.ASKED | codec.NOTED}
_SPEAKER: Final = {envelope.SAID: "workers", envelope.ASKED: "requests"}


class Seal:
    """Writes messages under the key of who may say them, and believes only what is sealed so.

    A request is believed for a day: what is asked twice is done once, as long as its answer is remembered.
    """

    __slots__ = ("_keys", "_limits", "_now", "_ring")

    def __init__(
        self, ring: Keyring, limits: Limits = DEFAULT, *, now: Callable[[], float] = time.time
    ) -> None:
        self._ring = ring
        self._limits = limits
        self._now = now
        self._keys = {envelope.SAID: ring.workers, envelope.ASKED: ring.commands}

    def write(self, message: Message) -> bytes:
        """Seal a message. Raises `InvalidSettings` without its key, `InvalidInput` if it cannot travel."""
        purpose = envelope.SAID if type(message) in codec.SAID else envelope.ASKED
        payload = codec.encode(message, limits=self._limits)
        keys = self._keys[purpose]
        if not keys:
            raise _lacking(purpose, type(message).__name__)
        if purpose == envelope.ASKED:
            payload = envelope.stamp(payload, self._now())
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
        if purpose == envelope.ASKED:
            payload = self._unstamped(payload)
        message = codec.decode(payload, limits=self._limits)
        if type(message) not in _MAY_SAY[purpose]:
            name = type(message).__name__
            raise InvalidInput("kind", f"{name} is not for {_SPEAKER[purpose]} to say")
        return message

    def _unstamped(self, payload: bytes) -> bytes:
        """Take the time off a request that is neither too old nor from the future."""
        age, rest = envelope.unstamp(payload, self._now())
        if age > REQUESTS_TAKEN_S:
            raise envelope.too_old(age, "requests", REQUESTS_TAKEN_S)
        if age < -CLOCKS_DIFFER_S:
            ahead = f"was sealed {-age / 3_600:.1f} hours in the future"
            raise InvalidInput("envelope", f"{ahead}; set the clocks of the machines right")
        return rest

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
