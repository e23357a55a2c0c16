"""Ids: they sort by time, never collide, and are derived wherever a repeat must find the same one."""

from __future__ import annotations

import hashlib
import re

from wfcelery.core import values
from wfcelery.core.state import NO_ITEM

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 26
_TIME_LENGTH = 10
_RUN_ID = re.compile(rf"[{ALPHABET}]{{{LENGTH}}}")
_STEP_ID = re.compile(
    rf"(?P<run>[{ALPHABET}]{{{LENGTH}}}):(?P<step>[A-Za-z0-9_-]+)(\[(?P<item>\d+)\])?:(?P<attempt>\d+)"
)


def run_id(now: float, entropy: bytes) -> str:
    """Make a run's id: 48 bits of milliseconds, then 80 bits of `entropy`."""
    return _encode(int(now * 1000), _TIME_LENGTH) + _encode(
        int.from_bytes(entropy[:10]), LENGTH - _TIME_LENGTH
    )


def child_id(parent_run: str, step: str, item: int, attempt: int) -> str:
    """Derive a sub-run's id: repeating the step's start finds the same sub-run."""
    hashed = hashlib.sha256(f"{parent_run}:{step}:{item}:{attempt}".encode()).digest()
    return parent_run[:_TIME_LENGTH] + _encode(int.from_bytes(hashed[:10]), LENGTH - _TIME_LENGTH)


def definition_id(name: str, document: str, pins: str) -> str:
    """Address a definition by what it says (canonical JSON) and by the sub-flows it means."""
    return values.digest(values.canonical({"name": name, "flow": document, "pins": pins}))


def is_run_id(text: str) -> bool:
    """Tell whether `text` could be the id of a run."""
    return _RUN_ID.fullmatch(text) is not None


def step_id(run: str, step: str, item: int, attempt: int) -> str:
    """Name one attempt: `RUN:STEP:ATTEMPT`, or `RUN:STEP[ITEM]:ATTEMPT` inside a foreach."""
    place = step if item == NO_ITEM else f"{step}[{item}]"
    return f"{run}:{place}:{attempt}"


def parse_step_id(text: str) -> tuple[str, str, int, int] | None:
    """Take a step's id apart into run, step, item and attempt; None if it is not one."""
    match = _STEP_ID.fullmatch(text)
    if match is None:
        return None
    item = int(match["item"]) if match["item"] else NO_ITEM
    return match["run"], match["step"], item, int(match["attempt"])


def _encode(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
