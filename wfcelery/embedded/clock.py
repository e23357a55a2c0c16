"""A clock that goes where it is told."""

from __future__ import annotations


class VirtualClock:
    """A clock that stands still until it is moved: a day takes no time."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """Tell the time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self.move_to(self._now + seconds)

    def move_to(self, moment: float) -> None:
        """Go on to `moment`; never back."""
        self._now = max(self._now, round(moment, 3))
