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

GRACE_S: Final = 3.0
"""How long the relay leaves a new row to the process that wrote it."""


@dataclass(slots=True)
class PromptSender:
    """One for each application. Its thread begins with the first start, and anew in a fork."""

    relay: Callable[[], Relay]
    _queues: dict[int, queue.SimpleQueue[_Written]] = field(default_factory=dict)

    def wake(self, rows: OutboxRows, run_id: str, *, looked_for_s: float = 0.0) -> None:
        """Send a row if it is committed, or is so within `looked_for_s`. Raises nothing."""
        waiting = self._queues.get(os.getpid())
        if waiting is None:
            waiting = self._hire()
        waiting.put(_Written(rows, run_id, looked_for_s))

    def _hire(self) -> queue.SimpleQueue[_Written]:
        made: queue.SimpleQueue[_Written] = queue.SimpleQueue()
        # No lock: one that another thread holds while the process forks would never be free in the child.
        kept = self._queues.setdefault(os.getpid(), made)
        if kept is made:
            threading.Thread(target=self._serve, args=(made,), name="wfcelery-outbox", daemon=True).start()
        return kept

    def _serve(self, waiting: queue.SimpleQueue[_Written]) -> None:
        while True:
            try:
                self._send(waiting.get())
            except WfceleryError as error:
                logger.warning("a start waits in the outbox for the relay: %s", error)
            except Exception:
                logger.exception("a start waits in the outbox for the relay")

    def _send(self, written: _Written) -> None:
        found = _committed(written)
        if not found:
            return
        made = self.relay().deliver(found, time.time())
        written.rows.keep((*made.waiting, *made.refused))
        written.rows.remove(made.answered)
        for each in made.refused:
            logger.error("the start of run %s was refused: %s", each.id, each.error)
        for each in made.waiting:
            logger.warning("the start of run %s waits in the outbox: %s", each.id, each.error)


@dataclass(frozen=True, slots=True)
class _Written:
    rows: OutboxRows
    run_id: str
    looked_for_s: float


def _committed(written: _Written) -> Sequence[Entry]:
    """Look for the row while it may still be committed; one that was rolled back never is."""
    deadline = time.monotonic() + written.looked_for_s
    waits = pauses(0.005, 0.1)
    while True:
        found = written.rows.committed([written.run_id])
        if found or time.monotonic() >= deadline:
            return found
        time.sleep(next(waits))
