"""Handing steps to workers: Celery messages, published in one pipeline after the commit."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from wfcelery.broker.names import (
    DOORBELL_TASK,
    EXECUTOR_QUEUE,
    MARKER_TASK,
    PRIORITY_STEPS,
    STEP_TASK,
    STEPS_QUEUE,
)
from wfcelery.core.messages import Dispatch
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.errors import NotReachable
from wfcelery.executor.messages import MarkerSeen
from wfcelery.executor.packer import Packer
from wfcelery.executor.watch import Marker
from wfcelery.wire.keys import Keyring
from wfcelery.wire.orders import ref_text, write_order
from wfcelery.wire.seal import Seal

if TYPE_CHECKING:
    from celery import Celery
    from kombu.connection import Connection
    from kombu.messaging import Producer

    from wfcelery.broker.mailbox import RedisMailbox

PRIORITY: Final = 5
"""Of a step that asks for none: in the middle, so that others can be before it and after it."""

GRACE_S: Final = 5.0
"""How long a tool may take to end after its time is over, before its process is killed."""

IN_ONE_PIPELINE: Final = 1_000
LONGEST_REPR: Final = 300
TOGETHER: Final = "+"
"""Stands between the names of steps that travel in one message."""


class Publisher:
    """A `Dispatcher` and `MarkerPost` over Celery. What fails is `NotReachable`, and uncertain."""

    def __init__(self, app: Celery, mailbox: RedisMailbox, ring: Keyring, packer: Packer) -> None:
        self._app = app
        self._mailbox = mailbox
        self._ring = ring
        self._packer = packer
        self._seal = Seal(ring)
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    def place(self, queue: str | None, priority: int | None) -> tuple[str, int]:
        """Name the queue, and the line within it, that a step with these wishes waits in."""
        wanted = PRIORITY if priority is None else priority
        return queue or STEPS_QUEUE, max(step for step in PRIORITY_STEPS if step <= wanted)

    def send(self, steps: Sequence[Dispatch]) -> None:
        """Publish the steps; under load, several short ones in one message."""
        with self._publishing(len(steps)) as producer:
            for pack in self._packer.packs(steps):
                self._publish_steps(producer, pack)

    def mark(self, markers: Sequence[Marker]) -> None:
        """Send markers down their queues: sealed, so that whoever takes one can only hand it on."""
        with contextlib.suppress(NotReachable), self._publishing(len(markers)) as producer:
            for marker in markers:
                seen = MarkerSeen(marker.queue, marker.priority, marker.epoch, marker.number)
                sealed = self._seal.write(seen).decode()
                self._publish(
                    producer, MARKER_TASK, marker.queue, marker.priority, args=(sealed,), argsrepr="()"
                )

    def stop(self, refs: Sequence[StepRef]) -> None:
        """Ask whoever has these to stop."""
        with contextlib.suppress(NotReachable):
            self._mailbox.add_stops([ref_text(ref) for ref in refs])

    def wake(self, at: float) -> None:
        """Ring the executor's bell at that time."""
        eta = datetime.fromtimestamp(at, UTC)
        with contextlib.suppress(NotReachable), self._publishing(1) as producer:
            self._publish(producer, DOORBELL_TASK, EXECUTOR_QUEUE, 0, eta=eta, argsrepr="()")

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(OSError, KombuError, RedisError):
                connection.close()

    @contextlib.contextmanager
    def _publishing(self, count: int) -> Iterator[Producer]:
        try:
            if self._producer is None:
                self._connection = self._app.connection_for_write()
                self._producer = self._app.amqp.Producer(self._connection, auto_declare=False)
            producer = self._producer
            with producer.batch(IN_ONE_PIPELINE) if count > 1 else contextlib.nullcontext():
                yield producer
        except (OSError, KombuError, RedisError) as error:
            self.close()
            raise NotReachable("the broker", str(error)) from error

    def _publish_steps(self, producer: Producer, pack: Sequence[Dispatch]) -> None:
        first = pack[0]
        queue, priority = self.place(first.queue, first.priority)
        limit = first.timeout_s
        names = {f"{step.flow}.{step.ref.step}" for step in pack}
        self._publish(
            producer,
            STEP_TASK,
            queue,
            priority,
            task_id=TOGETHER.join(ref_text(step.ref) for step in pack),
            args=tuple(write_order(step, self._ring) for step in pack),
            shadow=names.pop() if len(names) == 1 else f"{first.flow}.*",
            argsrepr=shown(pack),
            time_limit=None if limit is None else limit + GRACE_S,
            soft_time_limit=limit,
        )

    def _publish(
        self,
        producer: Producer,
        task: str,
        queue: str,
        priority: int,
        *,
        task_id: str | None = None,
        **options: object,
    ) -> None:
        message = self._app.amqp.create_task_message(
            task_id or str(uuid.uuid4()), task, ignore_result=True, kwargsrepr="{}", **options
        )
        producer.publish(
            message.body,
            exchange="",
            routing_key=queue,
            serializer="json",
            priority=priority,
            headers=message.headers,
            **message.properties,
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
