"""Signs for the states of steps: told apart by their shape, never by colour alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TextIO


@dataclass(frozen=True, slots=True)
class Signs:
    """One set of signs, with the lines of trees."""

    waiting: str = "·"
    running: str = "▶"
    done: str = "✓"
    failed: str = "✗"
    skipped: str = "↷"
    cancelled: str = "⊘"
    gate: str = "⏸"
    timer: str = "⏲"
    step: str = "○"
    arrow: str = "→"
    fork: str = "├─ "
    last: str = "└─ "
    bar: str = "│  "


UNICODE: Final = Signs()
ASCII: Final = Signs(
    waiting=".",
    running=">",
    done="+",
    failed="x",
    skipped="/",
    cancelled="-",
    gate="?",
    timer="~",
    step="o",
    arrow="->",
    fork="|- ",
    last="`- ",
    bar="|  ",
)
_COLOURS: Final = {
    "done": "32",
    "failed": "31",
    "running": "36",
    "gate": "33",
    "timer": "33",
    "cancelled": "31",
}


def signs_for(stream: TextIO) -> Signs:
    """Choose signs that `stream` can write."""
    try:
        "".join(getattr(UNICODE, name) for name in Signs.__slots__).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def wants_colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether colours are welcome: a terminal that is not dumb, and no NO_COLOR."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def sign(signs: Signs, kind: str, *, colour: bool = False) -> str:
    """Give the sign of a kind (a field of `Signs`), coloured where wanted."""
    text: str = getattr(signs, kind)
    code = _COLOURS.get(kind)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text
