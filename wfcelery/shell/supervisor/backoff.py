"""How long to wait before a program that died is started again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The waiting doubles each time a program dies soon after its start."""

    first_s: float = 0.5
    longest_s: float = 10.0
    steady_s: float = 30.0
    """A program that lived so long is started again as after its first death."""

    def after(self, previous_s: float, lived_s: float) -> float:
        """Give the seconds to wait, from those of the last time (0 if there was none)."""
        if not previous_s or lived_s >= self.steady_s:
            return self.first_s
        return min(previous_s * 2, self.longest_s)
