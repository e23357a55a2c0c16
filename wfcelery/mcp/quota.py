"""How much one caller may begin: a bucket for each, and a bounded number of live runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from wfcelery.core.state import LIVE
from wfcelery.errors import Refused
from wfcelery.rights.limiter import Limiter
from wfcelery.store import pages

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.store import Connection

A_MINUTE: Final = 60
"""Starts and definitions together."""
MOST_LIVE: Final = 200
CODE: Final = "too-many"


class Quota:
    """Lets each caller begin `most` things a minute, in one process. Threads share it."""

    def __init__(self, most: int = A_MINUTE, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._limiter = Limiter(most, per_s=60.0, clock=clock)

    def take(self, who: Principal) -> None:
        """Take one from the caller's bucket. Raises `Refused` if it is empty."""
        if self._limiter.is_over(who.id) or not self._limiter.take(who.id):
            reason = f"{who.id} has begun {self._most} things within a minute; wait a few seconds"
            raise Refused(reason, CODE)


def check_live(conn: Connection, who: Principal, most: int = MOST_LIVE) -> None:
    """Refuse a caller who has as many live runs as may be. Two at the same moment may both be let through."""
    wanted = pages.Wanted(statuses=sorted(LIVE), created_by=who.id)
    if len(pages.places(conn, wanted, limit=most)) >= most:
        reason = f"{who.id} has {most} runs that have not ended; wait for some, or cancel some"
        raise Refused(reason, CODE)
