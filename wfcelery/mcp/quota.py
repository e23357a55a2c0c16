"""How much one caller may begin: a bucket for each, and a bounded number of live runs."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from wfcelery.core.state import LIVE
from wfcelery.errors import Refused
from wfcelery.store import pages

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.store import Connection

A_MINUTE: Final = 60
"""Starts and definitions together."""
MOST_LIVE: Final = 200
MOST_CALLERS: Final = 10_000
CODE: Final = "too-many"


class Quota:
    """Lets each caller begin `most` things a minute, in one process. Threads share it."""

    def __init__(self, most: int = A_MINUTE, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, who: Principal) -> None:
        """Take one from the caller's bucket. Raises `Refused` if it is empty."""
        with self._lock:
            now = self._clock()
            left, at = self._left.get(who.id, (float(self._most), now))
            left = min(float(self._most), left + (now - at) * self._most / 60.0)
            if left < 1.0:
                reason = f"{who.id} has begun {self._most} things within a minute; wait a few seconds"
                raise Refused(reason, CODE)
            self._left[who.id] = (left - 1.0, now)
            self._left.move_to_end(who.id)
            while len(self._left) > MOST_CALLERS:
                self._left.popitem(last=False)


def check_live(conn: Connection, who: Principal, most: int = MOST_LIVE) -> None:
    """Refuse a caller who has as many live runs as may be. Two at the same moment may both be let through."""
    wanted = pages.Wanted(statuses=sorted(LIVE), created_by=who.id)
    if len(pages.places(conn, wanted, limit=most)) >= most:
        reason = f"{who.id} has {most} runs that have not ended; wait for some, or cancel some"
        raise Refused(reason, CODE)
