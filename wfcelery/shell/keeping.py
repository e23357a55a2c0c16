"""What is done again and again beside the real work, and goes on whatever happens."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from wfcelery.errors import NotReachable

logger: Final = logging.getLogger("wfcelery.worker")

MOST_WORDS: Final = 100


def keep(closed: threading.Event, every_s: float, duties: Sequence[Callable[[], None]]) -> None:
    """Do every duty every so many seconds until `closed`.

    While the broker is away there is nothing to do. Any other trouble of one duty is written to the log, once
    for the same words, and keeps neither the others nor the next round from being tried.
    """
    complained: set[str] = set()
    while not closed.wait(every_s):
        for duty in duties:
            try:
                duty()
            except NotReachable:
                break
            except Exception as error:
                words = f"{type(error).__name__}: {error}"
                if words not in complained and len(complained) < MOST_WORDS:
                    complained.add(words)
                    logger.exception("a duty failed, and is tried again: %s", words)
