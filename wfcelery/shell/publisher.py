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
REF_HEADER: Final = "wfcelery_ref"


class Publisher:
    """A `Dispatcher` and `MarkerPost` over Celery. What fails is `NotReachable`, and uncertain."""

    def __init__(self, app: Celery, mailbox: RedisMailbox, ring: Keyring) -> None:
        self._app = app
        self._mailbox = mailbox
        self._ring = ring
        self._seal = Seal(ring)
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    def place(self, queue: str | None, priority: int | None) -> tuple[str, int]:
        """Name the queue, and the line within it, that a step with these wishes waits in."""
        wanted = PRIORITY if priority is None else priority
        return queue or STEPS_QUEUE, max(step for step in PRIORITY_STEPS if step <= wanted)

    def send(self, steps: Sequence[Dispatch]) -> None:
        """Publish the steps, in order."""
        with self._publishing(len(steps)) as producer:
            for step in steps:
                self._publish_step(producer, step)

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

    def _publish_step(self, producer: Producer, step: Dispatch) -> None:
        queue, priority = self.place(step.queue, step.priority)
        limit = step.timeout_s
        self._publish(
            producer,
            STEP_TASK,
            queue,
            priority,
            task_id=f"{ref_text(step.ref)}",
            args=(write_order(step, self._ring),),
            shadow=f"{step.flow}.{step.ref.step}",
            argsrepr=shown(step),
            time_limit=None if limit is None else limit + GRACE_S,
            soft_time_limit=limit,
            headers={REF_HEADER: ref_text(step.ref)},
        )

    def _publish(
        self,
        producer: Producer,
        task: str,
        queue: str,
        priority: int,
        *,
        task_id: str | None = None,
        headers: dict[str, str] | None = None,
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
            headers={**message.headers, **(headers or {})},
            **message.properties,
        )


def shown(step: Dispatch) -> str:
    """Write a step's arguments for operators; secrets are references here, not values."""
    ref = step.ref
    item = "" if ref.item == NO_ITEM else f", item={ref.item}"
    text = f"(run={ref.run_id}, step={ref.step}{item}, try={ref.attempt}, args={step.prepared.args!r})"
    return text if len(text) <= LONGEST_REPR else text[: LONGEST_REPR - 4] + "...)"
