"""What a Celery worker must be like to play a part of ours. Each refusal says what to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wfcelery.broker.names import EXECUTOR_QUEUE, NOTIFY_QUEUE
from wfcelery.errors import InvalidSettings

if TYPE_CHECKING:
    from celery import Celery
    from celery.worker import WorkController

REDIS: Final = ("redis", "rediss", "redis+socket", "unix")
NOTIFIER_POOLS: Final = ("threads", "solo")


def check_executor(worker: WorkController, queues: frozenset[str]) -> None:
    """Refuse a worker that cannot be the single writer."""
    _check_app(worker.app)
    pool = pool_name(worker)
    if pool != "solo":
        reason = f"the executor runs on the solo pool, not on {pool}; start it with `--pool solo`"
        raise InvalidSettings("worker_pool", reason)
    others = sorted(queues - {EXECUTOR_QUEUE})
    if others:
        reason = f"an executor consumes {EXECUTOR_QUEUE} alone; give {', '.join(others)} to another worker"
        raise InvalidSettings("queues", reason)


def check_notifier(worker: WorkController, queues: frozenset[str]) -> None:
    """Refuse a worker that cannot send notices: its pool's children would share one database connection."""
    _check_app(worker.app)
    pool = pool_name(worker)
    if pool not in NOTIFIER_POOLS:
        reason = f"the notifier runs on threads, not on {pool}; start it with `--pool threads`"
        raise InvalidSettings("worker_pool", reason)
    others = sorted(queues - {NOTIFY_QUEUE})
    if others:
        reason = f"a notifier consumes {NOTIFY_QUEUE} alone; give {', '.join(others)} to another worker"
        raise InvalidSettings("queues", reason)


def check_worker(worker: WorkController) -> None:
    """Refuse a worker that could lose or repeat steps behind our back."""
    _check_app(worker.app)


def pool_name(worker: WorkController) -> str:
    """Name the kind of pool: solo, prefork, threads, gevent."""
    cls = worker.pool_cls
    module = cls if isinstance(cls, str) else cls.__module__
    return str(module).rpartition(".")[2].replace("thread", "threads") if "." in str(module) else str(module)


def _check_app(app: Celery) -> None:
    conf = app.conf
    if conf.task_always_eager:
        raise InvalidSettings(
            "task_always_eager", "must be off: a step that runs at once was never handed over"
        )
    if "json" not in conf.accept_content and "application/json" not in conf.accept_content:
        raise InvalidSettings("accept_content", "must contain json: our messages are JSON")
    scheme = str(conf.broker_url or "").partition("://")[0]
    if scheme not in REDIS:
        reason = f"wfcelery needs Redis or Valkey, not {scheme or 'nothing'}; give it like redis://localhost:6379/0"
        raise InvalidSettings("broker_url", reason)
