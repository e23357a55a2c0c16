"""A host's own Celery application, as one finds them: its queue, routes, results, beat entry and two tasks.

wfcelery lives beside all that: one line, `Workflows(...)`.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, Task
from kombu.entity import Queue

from wfcelery import Workflows
from wfcelery.core.values import Json

BROKER = "SHOP_BROKER_URL"
DATABASE = "SHOP_DATABASE_URL"

SETTINGS: dict[str, Any] = {
    "broker_url": os.environ.get(BROKER, "redis://localhost:1/0"),
    "broker_transport_options": {"visibility_timeout": 7_200},
    "result_backend": os.environ.get(BROKER, "redis://localhost:1/0"),
    "result_expires": 600,
    "task_queues": [Queue("shop"), Queue("shop.mail")],
    "task_default_queue": "shop",
    "task_routes": {"shop.mail": {"queue": "shop.mail"}},
    "task_acks_late": True,
    "task_track_started": True,
    "task_serializer": "json",
    "accept_content": ["json", "yaml"],
    "worker_prefetch_multiplier": 2,
    "beat_schedule": {"count-stock": {"task": "shop.price", "schedule": 1.0, "kwargs": {"cents": 5}}},
    "timezone": "Europe/Zurich",
}

ORDER: Json = {
    "name": "order",
    "start": "price",
    "steps": {
        "price": {"tool": "shop.price", "args": {"cents": "{{input.cents}}"}, "next": "mail"},
        "mail": {"tool": "shop.mail", "args": {"to": "{{input.to}}"}, "done": True},
    },
    "output": {"price": "{{steps.price.result}}", "mail": "{{steps.mail.result}}"},
}

app = Celery("shop")
app.conf.update(SETTINGS)


@app.task(name="shop.price")  # type: ignore[untyped-decorator] # celery ships no types
def price(cents: int) -> dict[str, object]:
    """Add the tax; tells who has done it."""
    return {"total": cents * 108 // 100, "by": _who()}


@app.task(name="shop.mail", bind=True, max_retries=5)  # type: ignore[untyped-decorator] # same
def mail(self: Task, to: str) -> dict[str, object]:
    """Succeeds at the second try."""
    if self.request.retries < 1:
        raise self.retry(countdown=1.5, exc=ConnectionError("the mail server is busy"))
    return {"to": to, "tries": self.request.retries + 1, "by": _who()}


workflows = Workflows(
    app, os.environ.get(DATABASE), allow=["shop.price", "shop.mail"], user="shop", timeout_s=20.0
)


@app.task(name="shop.order")  # type: ignore[untyped-decorator] # same
def order(cents: int, to: str) -> str:
    """Start a workflow from within the shop, and give its id."""
    return workflows.start(ORDER, {"cents": cents, "to": to}).id


def _who() -> str:
    """Name the kind of process that this is: a worker of the shop's, or one of wfcelery's."""
    return "wfcelery" if "WFCELERY_WORKER_KEY" in os.environ else "shop"
