"""What a worker's main process does with our messages before, beside and after the pool.

These are Celery's own hooks for a task: its `Strategy` sees each message as it is taken from the queue, its
`Request` is told how the pool got on with it.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Final

from billiard.exceptions import SoftTimeLimitExceeded, Terminated, WorkerLostError
from celery.worker.request import Request
from celery.worker.strategy import default
from kombu.exceptions import DecodeError

from wfcelery.core.messages import StepLost
from wfcelery.errors import InvalidSettings
from wfcelery.shell import roles
from wfcelery.shell.bell import Handler, nothing
from wfcelery.shell.bench import OrderRefused
from wfcelery.shell.orders import Orders, texts_in
from wfcelery.shell.worker_role import WorkerRole
from wfcelery.wire.orders import names_in

if TYPE_CHECKING:
    from billiard.einfo import ExceptionInfo
    from celery import Celery, Task
    from celery.worker.consumer import Consumer
    from kombu.message import Message

logger: Final = logging.getLogger("wfcelery.worker")

MALFORMED: Final = (TypeError, DecodeError)
"""A message that does not call the task as it must be called; what a tool raises never comes this far."""


def strategy(task: Task, app: Celery, consumer: Consumer) -> Handler:
    """Let a step through to the pool, unless it must not begin here."""
    take = default(task, app, consumer)

    def handle(message: Message, body: object, ack: Handler, reject: Handler, callbacks: object) -> None:
        name = str(message.headers.get("id") or "")
        texts = texts_in(message.payload)
        worker = _worker() if texts is not None else None
        if worker is None or texts is None:
            if texts is None:
                logger.error("a message was dropped: it does not call %s as the executor does", task.name)
            ack(nothing, consumer.connection_errors)
            return
        read = functools.partial(worker.orders, name, texts, message.headers.get("timelimit"))
        redelivered = bool((message.delivery_info or {}).get("redelivered"))
        if not worker.admits(name, read, redelivered=redelivered):
            ack(nothing, consumer.connection_errors)
            return
        try:
            take(message, body, ack, reject, callbacks)
        except BaseException:
            worker.refuse(name)
            raise

    return handle


def marker_strategy(task: Task, app: Celery, consumer: Consumer) -> Handler:  # noqa: ARG001 - celery's signature
    """Hand a marker on to the executor: everything queued before it has been taken."""

    def handle(message: Message, body: object, ack: Handler, reject: Handler, callbacks: object) -> None:  # noqa: ARG001
        # What cannot be read is Celery's to drop, as long as nobody acknowledged it.
        payload = message.payload
        ack(nothing, consumer.connection_errors)
        worker = _worker()
        if worker is not None:
            worker.pass_marker(payload)

    return handle


def _worker() -> WorkerRole | None:
    """Give the worker that this process is; None in an executor, where nobody sends steps in good faith."""
    try:
        return roles.worker()
    except InvalidSettings as error:
        logger.error("a message was dropped: %s", error)  # noqa: TRY400 - nothing of ours has failed
        return None


class StepRequest(Request):  # type: ignore[misc] # celery ships no types
    """Steps in the hands of this worker: reports what the pool's child can no longer report itself."""

    _given: Handler | None = None

    @functools.cached_property
    def orders(self) -> Orders:
        """What it truly orders; whatever is reported is about nothing else."""
        return roles.worker().orders(self.id, self.args, self.time_limits)

    @property
    def _apply_result(self) -> Handler | None:
        return self._given

    @_apply_result.setter
    def _apply_result(self, given: Handler | None) -> None:
        """Celery sets this, a weak reference to the pool's job, when it has given the request to the pool."""
        self._given = given
        if given is not None:
            roles.worker().given(self.id, given())

    def revoked(self) -> bool:
        """Have Celery drop what was handed back while it waited for the pool."""
        return not roles.worker().waits(self.id) or bool(super().revoked())

    def on_accepted(self, pid: int, time_accepted: float) -> None:
        """Take note that the pool has begun with it."""
        try:
            super().on_accepted(pid, time_accepted)
        finally:
            roles.worker().accepted(self.id)

    def on_timeout(self, soft: bool, timeout: float) -> None:  # noqa: FBT001 - celery's signature
        """Report a tool that did not end when its time was over; its process is killed."""
        super().on_timeout(soft, timeout)
        if not soft:
            worker = roles.worker()
            worker.forget(name for name in names_in(self.id) if name not in self.orders)
            worker.report_timeout(self.orders.values(), timeout, killed=True)

    def on_failure(
        self,
        exc_info: ExceptionInfo,
        send_failed_event: bool = True,  # noqa: FBT001, FBT002 - celery's signature
        return_ok: bool = False,  # noqa: FBT001, FBT002 - same
    ) -> None:
        """Report a step whose process died under it, or was killed by an operator.

        What a forged message names has not begun: its true order is welcome.
        """
        error = getattr(exc_info.exception, "exc", exc_info.exception)
        worker = roles.worker()
        if isinstance(error, (WorkerLostError, SystemExit, KeyboardInterrupt)):
            # Those of a pack that were reported before the process ended are over: for them this is no news.
            # Which of the others had begun is not known here: all count as begun, so that none runs twice.
            lost = [order.ref for order in self.orders.values()]
            worker.report(StepLost(ref, reason=_words(error), worker=worker.name) for ref in lost)
        elif isinstance(error, Terminated):
            worker.report_terminated(self.orders)
        elif isinstance(error, SoftTimeLimitExceeded):
            # It struck outside the bench's own care; what was reported before is over.
            worker.report_timeout(self.orders.values(), self.time_limits[1] or 0.0)
        elif isinstance(error, OrderRefused):
            worker.forget(error.args)
        elif isinstance(error, MALFORMED):
            worker.forget(names_in(self.id))
        super().on_failure(exc_info, send_failed_event=send_failed_event, return_ok=return_ok)


def _words(error: BaseException) -> str:
    return f"the process that ran it ended: {error}"
