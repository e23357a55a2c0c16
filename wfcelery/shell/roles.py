"""Which part a Celery worker process plays, found out when it starts, from the queues that it consumes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from celery import bootsteps
from celery.signals import worker_process_init, worker_process_shutdown, worker_shutdown

from wfcelery import settings
from wfcelery.broker.names import EXECUTOR_QUEUE, NOTIFY_QUEUE, STEPS_QUEUE
from wfcelery.errors import InvalidSettings
from wfcelery.shell import guard

if TYPE_CHECKING:
    from celery.worker import WorkController
    from celery.worker.consumer import Consumer

    from wfcelery.shell.bench import Bench
    from wfcelery.shell.executor_role import ExecutorRole
    from wfcelery.shell.notifier_role import NotifierRole
    from wfcelery.shell.worker_role import WorkerRole

TICK_S = 1.0
OWN_APP = "wfcelery"


class _Process:
    """What this process is. A process plays one part: Celery's own state is one per process, too."""

    executor: ExecutorRole | None = None
    notifier: NotifierRole | None = None
    worker: WorkerRole | None = None
    bench: Bench | None = None
    making_bench = threading.Lock()


def executor() -> ExecutorRole:
    """Give the executor that this process is."""
    if _Process.executor is None:
        message = (
            f"this worker consumes {EXECUTOR_QUEUE} but is no executor; start it with `wfcelery executor`"
        )
        raise InvalidSettings("queues", message)
    return _Process.executor


def notifier() -> NotifierRole:
    """Give the notifier that this process is."""
    if _Process.notifier is None:
        message = f"this worker consumes {NOTIFY_QUEUE} but is no notifier; start it with `wfcelery notifier`"
        raise InvalidSettings("queues", message)
    return _Process.notifier


def worker() -> WorkerRole:
    """Give the worker that this process is the main process of."""
    if _Process.worker is None:
        message = (
            "steps arrive at a Celery worker that is not set up for them; start it with `wfcelery worker`"
        )
        raise InvalidSettings("queues", message)
    return _Process.worker


def bench() -> Bench:
    """Give the bench at which this process calls tools."""
    if _Process.bench is None:
        with _Process.making_bench:  # the threads of a pool come here at the same time
            if _Process.bench is None:
                _Process.bench = worker().make_bench()
    return _Process.bench


class RoleStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery ships no types
    """Makes the process an executor (and waits for the lease), a notifier or a worker, before any message."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: WorkController, **kwargs: object) -> None:
        """Take the part before the pool starts its children: they inherit what is loaded here."""
        super().__init__(parent, **kwargs)
        queues = frozenset(parent.app.amqp.queues.consume_from)
        if EXECUTOR_QUEUE in queues:
            from wfcelery.shell.executor_role import ExecutorRole  # noqa: PLC0415 - a worker loads no SQL

            guard.check_executor(parent, queues)
            _Process.executor = ExecutorRole(parent.app, _settings(), parent.hostname)
        elif NOTIFY_QUEUE in queues:
            from wfcelery.shell.notifier_role import NotifierRole  # noqa: PLC0415 - same

            guard.check_notifier(parent, queues)
            _Process.notifier = NotifierRole(parent.app, _settings())
        elif STEPS_QUEUE in queues or parent.app.main == OWN_APP:
            from wfcelery.shell.worker_role import WorkerRole  # noqa: PLC0415 - it knows the roles

            guard.check_worker(parent)
            _Process.worker = WorkerRole(parent, _settings(), queues)

    def start(self, parent: WorkController) -> None:  # noqa: ARG002 - celery's signature
        """Play the part; an executor waits here until it has the lease."""
        if _Process.executor is not None:
            _Process.executor.stand_by()
        if _Process.worker is not None:
            _Process.worker.begin()

    def stop(self, parent: WorkController) -> None:  # noqa: ARG002 - celery's signature
        """Hand back what the pool does not have; what it has it finishes, and stops later."""
        if _Process.worker is not None:
            _Process.worker.leave()


class ConnectedStep(bootsteps.StartStopStep):  # type: ignore[misc] # same
    """Tells the role whenever the broker is connected: an executor ticks by itself from then on."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Consumer) -> None:
        """Tick at once, and then each second; a lost connection clears the timer, the next comes here."""
        role = _Process.executor
        if role is not None:
            parent.timer.call_after(0, role.begin)
            parent.timer.call_repeatedly(TICK_S, role.tick)
        if _Process.notifier is not None:
            parent.timer.call_after(0, _Process.notifier.beat)
            parent.timer.call_repeatedly(TICK_S, _Process.notifier.beat)
        if _Process.worker is not None:
            _Process.worker.connected()

    def stop(self, parent: Consumer) -> None:
        """Nothing to do: the consumer clears its timer."""


@worker_process_init.connect  # type: ignore[untyped-decorator] # celery ships no types
def _begin_child(**_kwargs: object) -> None:
    """A pool's child must not share what its parent has open."""
    _Process.bench = None


@worker_process_shutdown.connect  # type: ignore[untyped-decorator] # same
def _end_child(**_kwargs: object) -> None:
    if _Process.bench is not None:
        _Process.bench.close()


@worker_shutdown.connect  # type: ignore[untyped-decorator] # same
def _end(**_kwargs: object) -> None:
    if _Process.worker is not None:
        _Process.worker.close()
    if _Process.executor is not None:
        _Process.executor.close()
    if _Process.notifier is not None:
        _Process.notifier.close()


def _settings() -> settings.Settings:
    # A worker that was given its own key shall not find the secret in the folder that it happens to run in.
    has_own_key = bool(os.environ.get("WFCELERY_WORKER_KEY"))
    return settings.load({}, os.environ, Path.cwd(), system=not has_own_key)


__all__ = ["ConnectedStep", "RoleStep", "bench", "executor", "notifier", "worker"]
