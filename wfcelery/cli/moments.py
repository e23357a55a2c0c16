"""Moments and lengths of time, as they are typed: `2h`, `+10m`, `2030-01-31T12:00Z`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from wfcelery.errors import InvalidInput

_UNITS: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)\s*")
_SPAN: Final = re.compile(rf"(?:{_PART.pattern})+")


def parse_span(text: str, where: str) -> float:
    """Read a length of time in seconds: `90s`, `10m`, `2h`, `1d`, `1h30m`."""
    if _SPAN.fullmatch(text.strip()) is None:
        raise InvalidInput(where, f"{text!r} is no length of time; write 90s, 10m, 2h, 1d or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def parse_moment(text: str, now: float, where: str) -> float:
    """Read a moment: `+10m` from now, or a time in ISO 8601 with its zone."""
    if text.startswith("+"):
        return now + parse_span(text[1:], where)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(where, f"{text!r} is no moment; write +10m or 2030-01-31T12:00Z") from error
    if moment.tzinfo is None:
        raise InvalidInput(where, f"{text!r} has no time zone; write {text}Z for UTC, or {text}+02:00")
    return moment.timestamp()


def parse_since(text: str, now: float, where: str) -> float:
    """Read a moment in the past: `2h` ago, or a time in ISO 8601 with its zone."""
    if _SPAN.fullmatch(text.strip()):
        return now - parse_span(text, where)
    return parse_moment(text, now, where)
