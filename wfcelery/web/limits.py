"""How often somebody may fail: a bucket for each address, and a bounded number of buckets."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_ADDRESSES: Final = 10_000


class Limiter:
    """Allows `most` failures in `per_s` seconds for each address. Threads share it."""

    def __init__(self, most: int, *, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._per_s = per_s
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def is_over(self, address: str) -> bool:
        """Tell whether this address has failed too often; looking costs it nothing."""
        with self._lock:
            return self._refilled(address) < 1.0

    def note(self, address: str) -> None:
        """Write down one failure."""
        with self._lock:
            left = self._refilled(address) - 1.0
            self._left[address] = (max(0.0, left), self._clock())
            self._left.move_to_end(address)
            while len(self._left) > MOST_ADDRESSES:
                self._left.popitem(last=False)

    def _refilled(self, address: str) -> float:
        left, at = self._left.get(address, (float(self._most), 0.0))
        return min(float(self._most), left + (self._clock() - at) * self._most / self._per_s)
