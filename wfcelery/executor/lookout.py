"""The executor's eye on what is out: feeds the watch, and turns its judgement into findings.

It knows which queue a step goes to; the watch knows who is alive. What the watch judges lost is told to the
run like any other message, after what is in the mailbox.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import StepBegun, StepDone, StepLost
from wfcelery.core.state import StepRef, StepStatus
from wfcelery.errors import WfceleryError
from wfcelery.executor.messages import Holding, Message, Sign
from wfcelery.executor.packer import Packer
from wfcelery.executor.ports import MarkerPost
from wfcelery.executor.watch import Watch, WatchClock
from wfcelery.store import steps, workers
from wfcelery.store.changes import RunChange

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from wfcelery.executor.definitions import Definitions

WITH_A_WORKER: Final = frozenset({StepStatus.READY, StepStatus.RUNNING})
MOST_STEPS: Final = 1_000_000


class Lookout:
    """Sees what was handed over, who speaks, and what nobody has."""

    def __init__(self, watch: Watch, post: MarkerPost, packer: Packer) -> None:
        self._watch = watch
        self._packer = packer
        self._brief: set[StepRef] = set()
        self._post = post
        self._clock = WatchClock()
        self._now = 0.0
        self._nonce: str | None = None
        self._knows_workers = False

    def look_again(self, conn: Connection, definitions: Definitions) -> int:
        """Find what is out and was not known to be: of an earlier executor, or of a commit in doubt.

        Tells how many steps that were.
        """
        if not self._knows_workers:
            self._watch.known(((row.name, row.boot_id) for row in workers.known(conn)), self._now)
            self._knows_workers = True
        unknown = [step for step in steps.out(conn, MOST_STEPS) if step.ref not in self._watch]
        for step in unknown:
            self._watch.found([(step.ref, *self._place_of(conn, definitions, step))], self._now)
            if step.worker is not None:
                self._watch.found_held(step.ref, step.worker, self._now)
        return len(unknown)

    def hear(self, signs: Iterable[Sign], messages: Iterable[Message]) -> list[StepBegun]:
        """Take in signs of life; tell of steps that are now known to have begun."""
        self._brief.clear()
        for message in messages:
            if isinstance(message, StepDone):
                if message.brief:
                    self._brief.add(message.ref)
            elif isinstance(message, StepBegun):
                self._watch.begun(message, self._now)
        return [begun for sign in signs for begun in self._watch.hear(sign, self._now)]

    def handed(self, steps: Sequence[Dispatch]) -> None:
        """Take note that these were handed over, or that nobody knows whether they were."""
        out = [(step.ref, *self._post.place(step.queue, step.priority)) for step in steps]
        self._watch.sent(out, self._now)
        self._packer.out = len(self._watch)

    def changed(self, changes: Iterable[RunChange]) -> None:
        """Stop watching what is no longer with a worker."""
        for change in changes:
            for write in change.writes.values():
                before, after = write.before, write.after
                if before is not None and before.fence and before.fence != after.fence:
                    # It was handed back and got another fence: the copy that came back is gone.
                    old = StepRef(change.after.id, after.name, after.item, after.attempt, before.fence)
                    self._watch.ended(old)
                if after.fence and after.status not in WITH_A_WORKER:
                    ref = StepRef(change.after.id, after.name, after.item, after.attempt, after.fence)
                    self._watch.ended(ref)
                    if after.tool is not None:
                        self._packer.note(after.tool, brief=ref in self._brief)

    def tick(self, nonce: str, *, judge: bool) -> list[StepLost]:
        """Let time pass, as far as the broker was heard; send markers; judge. `nonce` is the broker's own."""
        self._now = self._clock.tick(time.monotonic(), heard=True)
        if nonce != self._nonce:
            if self._nonce is not None:
                self._watch.flushed(self._now)
            self._nonce = nonce
        markers = self._watch.markers(self._now)
        if markers:
            self._post.mark(markers)
        return self._watch.judge(self._now) if judge else []

    def _place_of(self, conn: Connection, definitions: Definitions, step: steps.Out) -> tuple[str, int]:
        try:
            spec = definitions.get(conn, step.definition_id).flow.steps[step.ref.step]
        except (KeyError, WfceleryError):
            # A definition that can no longer be read must not keep the others from being watched.
            return self._post.place(None, None)
        return self._post.place(spec.queue, spec.priority)


def write_workers(conn: Connection, signs: Iterable[Sign], now: float) -> None:
    """Write down who is alive, for people."""
    holdings = [sign for sign in signs if isinstance(sign, Holding)]
    if holdings:
        workers.put(conn, holdings, now)
