"""Our few Celery tasks. Each hands over at once to the role that this process plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfcelery.broker.names import (
    DOORBELL_TASK,
    MARKER_TASK,
    NOTIFY_TASK,
    STEP_TASK,
    TICK_TASK,
    WATCHDOG_TASK,
)
from wfcelery.shell import roles
from wfcelery.shell.bench import OrderRefused, StepFailure

if TYPE_CHECKING:
    from celery import Celery, Task

_OPTIONS = {
    "shared": False,
    "ignore_result": True,
    "acks_late": False,
    "reject_on_worker_lost": False,
    "serializer": "json",
    "time_limit": None,
    "soft_time_limit": None,
    "rate_limit": None,
}


def install(app: Celery) -> None:
    """Add our tasks and roles to an app; nothing else of it changes. Harmless when done before."""
    if DOORBELL_TASK in app.tasks:
        return
    app.task(doorbell, name=DOORBELL_TASK, Strategy="wfcelery.shell.bell:strategy", **_OPTIONS)
    app.task(tick, name=TICK_TASK, **_OPTIONS)
    app.task(watchdog, name=WATCHDOG_TASK, **_OPTIONS)
    app.task(notify, name=NOTIFY_TASK, **_OPTIONS)
    receiving = {
        "Strategy": "wfcelery.shell.receiving:strategy",
        "Request": "wfcelery.shell.receiving:StepRequest",
    }
    app.task(step, name=STEP_TASK, throws=(OrderRefused, StepFailure), bind=True, **receiving, **_OPTIONS)
    app.task(marker, name=MARKER_TASK, Strategy="wfcelery.shell.receiving:marker_strategy", **_OPTIONS)
    app.steps["worker"].add(roles.RoleStep)
    app.steps["consumer"].add(roles.ConnectedStep)


def doorbell() -> None:
    """A timer is due. Bells that ring at once are answered before they become a task (`shell/bell.py`)."""
    roles.executor().answer_bell()


def tick() -> None:
    """A second has passed, says beat."""
    roles.executor().hear_beat()


def watchdog() -> None:
    """Look for steps that nobody has, says beat."""
    roles.executor().hear_beat()


def notify(*notice_ids: str) -> None:
    """Send notices, by their ids."""
    roles.notifier().tell(notice_ids)


def step(self: Task, *orders: str) -> None:
    """Call a tool, or several one after the other."""
    roles.bench().work(orders, self.request)


def marker(sealed: str) -> None:
    """Never runs: a marker has done its work when it is taken from its queue."""
