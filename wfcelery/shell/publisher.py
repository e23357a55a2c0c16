"""Handing steps to workers and notices to the notifier: Celery messages, published after the commit."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import (
    DOORBELL_TASK,
    EXECUTOR_QUEUE,
    MARKER_TASK,
    NOTIFY_QUEUE,
    NOTIFY_TASK,
    PRIORITY_STEPS,
    STEP_TASK,
    STEPS_QUEUE,
)
from wfcelery.broker.sender import Sender
from wfcelery.broker.task_message import task_message
from wfcelery.core.effects import Dispatch
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.errors import NotReachable
from wfcelery.executor.messages import MarkerSeen
from wfcelery.executor.packer import Packer
from wfcelery.executor.watch import Marker
from wfcelery.wire.keys import Keyring
from wfcelery.wire.orders import ref_text, task_id_of, write_order
from wfcelery.wire.seal import Seal

PRIORITY: Final = 5
"""Of a step that asks for none: in the middle, so that others can be before it and after it."""

GRACE_S: Final = 5.0
"""How long a tool may take to end after its time is over, before its process is killed."""

LONGEST_REPR: Final = 300

NOTICES_AT_ONCE: Final = 100
"""How many notices one message names."""


class Publisher:
    """A `Dispatcher`, `MarkerPost` and `NoticePost` over Celery. What fails is `NotReachable`."""

    def __init__(self, sender: Sender, mailbox: RedisMailbox, ring: Keyring, packer: Packer) -> None:
        self._sender = sender
        self._mailbox = mailbox
        self._ring = ring
        self._packer = packer
        self._seal = Seal(ring)

    def place(self, queue: str | None, priority: int | None) -> tuple[str, int]:
        """Name the queue, and the line within it, that a step with these wishes waits in."""
        wanted = PRIORITY if priority is None else priority
        return queue or STEPS_QUEUE, max(step for step in PRIORITY_STEPS if step <= wanted)

    def send(self, steps: Sequence[Dispatch]) -> None:
        """Publish the steps; under load, several short ones in one message."""
        lines: dict[tuple[str, int], list[bytes]] = {}
        for pack in self._packer.packs(steps):
            place = self.place(pack[0].queue, pack[0].priority)
            lines.setdefault(place, []).append(self._message(pack, *place))
        self._sender.post(lines)

    def mark(self, markers: Sequence[Marker]) -> None:
        """Send markers down their queues: sealed, so that whoever takes one can only hand it on."""
        for marker in markers:
            seen = MarkerSeen(marker.queue, marker.priority, marker.epoch, marker.number)
            message = task_message(
                MARKER_TASK,
                marker.queue,
                task_id=str(uuid.uuid4()),
                priority=marker.priority,
                args=(self._seal.write(seen).decode(),),
            )
            with contextlib.suppress(NotReachable):
                self._sender.post({(marker.queue, marker.priority): [message]})

    def stop(self, refs: Sequence[StepRef]) -> None:
        """Ask whoever has these to stop."""
        with contextlib.suppress(NotReachable):
            self._mailbox.add_stops([ref_text(ref) for ref in refs])

    def ring(self, ids: Sequence[str]) -> None:
        """Tell the notifier which notices are to be sent: their ids only, it reads the rows itself."""
        messages = [
            task_message(
                NOTIFY_TASK,
                NOTIFY_QUEUE,
                task_id=str(uuid.uuid4()),
                args=tuple(ids[begin : begin + NOTICES_AT_ONCE]),
            )
            for begin in range(0, len(ids), NOTICES_AT_ONCE)
        ]
        with contextlib.suppress(NotReachable):
            self._sender.post({(NOTIFY_QUEUE, 0): messages})

    def wake(self, at: float) -> None:
        """Ring the executor's bell at that time: a Celery task with an ETA."""
        eta = datetime.fromtimestamp(at, UTC).isoformat()
        message = task_message(DOORBELL_TASK, EXECUTOR_QUEUE, task_id=str(uuid.uuid4()), eta=eta)
        with contextlib.suppress(NotReachable):
            self._sender.post({(EXECUTOR_QUEUE, 0): [message]})

    def _message(self, pack: Sequence[Dispatch], queue: str, priority: int) -> bytes:
        first = pack[0]
        limit = first.timeout_s
        names = {f"{step.flow}.{step.ref.step}" for step in pack}
        return task_message(
            STEP_TASK,
            queue,
            task_id=task_id_of(step.ref for step in pack),
            priority=priority,
            args=tuple(write_order(step, self._ring) for step in pack),
            shadow=names.pop() if len(names) == 1 else f"{first.flow}.*",
            argsrepr=shown(pack),
            time_limit=None if limit is None else limit + GRACE_S,
            soft_time_limit=limit,
        )


def shown(pack: Sequence[Dispatch]) -> str:
    """Write what a message asks for, for operators; secrets are references here, not values."""
    if len(pack) > 1:
        return f"({len(pack)} steps of runs {', '.join(step.ref.run_id for step in pack)})"
    step = pack[0]
    ref = step.ref
    item = "" if ref.item == NO_ITEM else f", item={ref.item}"
    text = f"(run={ref.run_id}, step={ref.step}{item}, try={ref.attempt}, args={step.prepared.args!r})"
    return text if len(text) <= LONGEST_REPR else text[: LONGEST_REPR - 4] + "...)"
