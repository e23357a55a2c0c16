"""The Celery app of our own processes. A host's app keeps its own settings: these never touch it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from celery import Celery

from wfcelery.broker.names import EXECUTOR_QUEUE, TICK_TASK, WATCHDOG_TASK
from wfcelery.errors import InvalidSettings
from wfcelery.shell.door import Amqp
from wfcelery.shell.tasks import install

if TYPE_CHECKING:
    from wfcelery.settings import Settings

TRANSPORT: Final[dict[str, object]] = {
    # Popped is gone: the tables bring a lost step back, and nothing is ever delivered twice by the broker.
    "ack_emulation": False,
    "socket_timeout": 10,
    "socket_connect_timeout": 4,
    "socket_keepalive": True,
    "health_check_interval": 15,
}
TICK_S: Final = 1.0
WATCHDOG_S: Final = 5.0


def beat_schedule() -> dict[str, dict[str, object]]:
    """Give the entries for beat; each expires, so that a stopped executor finds no pile of them."""
    tick = {"queue": EXECUTOR_QUEUE, "expires": 2 * TICK_S, "ignore_result": True}
    watchdog = {"queue": EXECUTOR_QUEUE, "expires": 2 * WATCHDOG_S, "ignore_result": True}
    return {
        "wfcelery-tick": {"task": TICK_TASK, "schedule": TICK_S, "options": tick},
        "wfcelery-watchdog": {"task": WATCHDOG_TASK, "schedule": WATCHDOG_S, "options": watchdog},
    }


def make_app(settings: Settings) -> Celery:
    """Make the app that our executor, workers, beat and Flower run on."""
    if settings.broker_url is None:
        reason = "is not set; give it as WFCELERY_BROKER_URL, like redis://localhost:6379/0"
        raise InvalidSettings("broker_url", reason)
    app = Celery("wfcelery", broker=as_celery_url(settings.broker_url), amqp=Amqp)
    app.conf.update(
        broker_transport_options={**TRANSPORT, "global_keyprefix": settings.key_prefix},
        broker_connection_retry_on_startup=True,
        result_backend=None,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_serializer="json",
        event_serializer="json",
        accept_content=["json"],
        task_acks_late=False,
        task_reject_on_worker_lost=False,
        task_send_sent_event=False,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        timezone="UTC",
        enable_utc=True,
        beat_schedule=beat_schedule(),
    )
    install(app)
    return app


def as_celery_url(url: str) -> str:
    """Spell a socket's URL as Celery wants it."""
    return url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url
