"""Sending a start as soon as it is committed, beside the request that wrote it: best effort, in a thread.

What it does not manage stays in the table for the relay.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from wfcelery.contrib.flask.table import OutboxRows
from wfcelery.errors import WfceleryError
from wfcelery.workflows.asking import pauses
from wfcelery.workflows.outbox import Entry, Relay

logger: Final = logging.getLogger("wfcelery.outbox")

LOOKED_FOR_S: Final = 1.0
"""How long a row is looked for: the caller may be about to commit it."""
GRACE_S: Final = 3.0
"""How long the relay leaves a new row to the process that wrote it."""


@dataclass(slots=True)
class PromptSender:
    """One for each application. Its thread begins with the first start, and anew in a fork."""

    relay: Callable[[], Relay]
    _queues: dict[int, queue.SimpleQueue[tuple[OutboxRows, Sequence[str]]]] = field(default_factory=dict)

    def wake(self, rows: OutboxRows, ids: Sequence[str]) -> None:
        """Send these rows now, if they are committed. Returns at once, and raises nothing."""
        waiting = self._queues.get(os.getpid())
        if waiting is None:
            waiting = self._hire()
        waiting.put((rows, tuple(ids)))

    def _hire(self) -> queue.SimpleQueue[tuple[OutboxRows, Sequence[str]]]:
        made: queue.SimpleQueue[tuple[OutboxRows, Sequence[str]]] = queue.SimpleQueue()
        # No lock: one that another thread holds while the process forks would never be free in the child.
        kept = self._queues.setdefault(os.getpid(), made)
        if kept is made:
            threading.Thread(target=self._serve, args=(made,), name="wfcelery-outbox", daemon=True).start()
        return kept

    def _serve(self, waiting: queue.SimpleQueue[tuple[OutboxRows, Sequence[str]]]) -> None:
        while True:
            rows, ids = waiting.get()
            try:
                self._send(rows, ids)
            except WfceleryError as error:
                logger.warning("a start waits in the outbox for the relay: %s", error)
            except Exception:
                logger.exception("a start waits in the outbox for the relay")

    def _send(self, rows: OutboxRows, ids: Sequence[str]) -> None:
        found = _committed(rows, ids)
        made = self.relay().deliver(found, time.time()) if found else None
        if made is None:
            return
        rows.keep((*made.waiting, *made.refused))
        rows.remove(made.answered)
        for each in made.refused:
            logger.error("the start of run %s was refused: %s", each.id, each.error)
        for each in made.waiting:
            logger.warning("the start of run %s waits in the outbox: %s", each.id, each.error)


def _committed(rows: OutboxRows, ids: Sequence[str]) -> Sequence[Entry]:
    """Look for the rows until all are there; those that were rolled back never will be."""
    deadline = time.monotonic() + LOOKED_FOR_S
    for pause in pauses(0.005, 0.1):
        found = rows.committed(ids)
        if len(found) == len(ids) or time.monotonic() > deadline:
            return found
        time.sleep(pause)
    return ()
