"""Signs drawn by us, as path data: what kind of step it is (16 by 16), and how it stands (18 by 18).

Lines only, in the colour of their place; `Sign.solid` ones stand light on a filled circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIND_SIZE: Final = 16.0
SIGN_SIZE: Final = 18.0

KINDS: Final = {
    # A bolt.
    "tool": "M9 1.5 3.5 9H8L7 14.5 12.5 7H8Z",
    # A person, and a tick.
    "gate": "M6.5 7.5a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM1.5 14c0-2.6 2.2-4.3 5-4.3q1 0 1.9.3"
    "M9.5 12.3l1.8 1.8 3.4-3.9",
    # A source of waves.
    "wait": "M8 9.3a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6ZM5.2 10.8a4 4 0 0 1 0-5.6"
    "M10.8 5.2a4 4 0 0 1 0 5.6M3 13a7 7 0 0 1 0-10M13 3a7 7 0 0 1 0 10",
    # A clock.
    "timer": "M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4ZM8 4.6V8l2.4 1.6",
    # Sheets on a pile.
    "foreach": "M8 1.8 14.2 5 8 8.2 1.8 5ZM1.8 8 8 11.2 14.2 8M1.8 11 8 14.2 14.2 11",
    # Boxes that lead to boxes.
    "flow": "M1.8 2.2h5v4h-5ZM9.2 9.8h5v4h-5ZM4.3 6.2v5.6h4.9",
    # An arrow down.
    "pass": "M8 2.5v11M3.8 9.3 8 13.5l4.2-4.2",
}


@dataclass(frozen=True, slots=True)
class Sign:
    """A ring or a filled circle, and lines on it; `turning` is one that moves."""

    lines: str
    solid: bool = False
    turning: bool = False


SIGNS: Final = {
    "pending": Sign("M5.2 9h.01M9 9h.01M12.8 9h.01"),
    "ready": Sign("M7.3 5.9v6.2L12.2 9Z"),
    "running": Sign("M9 2a7 7 0 0 1 7 7", turning=True),
    "done": Sign("M5.4 9.3 7.9 11.8 12.7 6.6", solid=True),
    "failed": Sign("M6.3 6.3 11.7 11.7M11.7 6.3 6.3 11.7", solid=True),
    "skipped": Sign("M5.3 6.2 8.1 9 5.3 11.8M9.4 6.2 12.2 9 9.4 11.8"),
    "cancelled": Sign("M4.2 13.8 13.8 4.2"),
    "waiting": Sign("M7 6.2v5.6M11 6.2v5.6", solid=True),
}
"""By status. What has not begun has no sign."""
