"""The clock on the wall."""

from __future__ import annotations

import time


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        """Tell the time, rounded to milliseconds."""
        return round(time.time(), 3)
