"""How often somebody may do, or fail at, something: a bucket for each, and a bounded number of buckets."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_BUCKETS: Final = 10_000


class Limiter:
    """Allows `most` in `per_s` seconds for each name or address. Threads share it."""

    def __init__(self, most: int, *, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._per_s = per_s
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def is_over(self, name: str) -> bool:
        """Tell whether this one has used up what it has; looking costs nothing."""
        with self._lock:
            return self._refilled(name) < 1.0

    def take(self, name: str) -> bool:
        """Write down one, and tell whether it was still allowed."""
        with self._lock:
            left = self._refilled(name)
            self._left[name] = (max(0.0, left - 1.0), self._clock())
            self._left.move_to_end(name)
            while len(self._left) > MOST_BUCKETS:
                self._left.popitem(last=False)
            return left >= 1.0

    def _refilled(self, name: str) -> float:
        left, at = self._left.get(name, (float(self._most), 0.0))
        return min(float(self._most), left + (self._clock() - at) * self._most / self._per_s)
