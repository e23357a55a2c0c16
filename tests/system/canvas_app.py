"""The Celery app of docs/from-celery.md: tasks as a shop has them, and one line for wfcelery.

What a task does beside its result is a line in the list `shop.log` of the result backend.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from celery import Celery, Task, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from kombu.entity import Queue

from wfcelery import Workflows

BROKER = "SHOP_BROKER_URL"
DATABASE = "SHOP_DATABASE_URL"
VISIBILITY = "SHOP_VISIBILITY_S"
LOG = "shop.log"
PRICES = {"pen": 200, "ink": 500, "pad": 900}

_visible_s = float(os.environ.get(VISIBILITY, "3600"))

app = Celery("shop")
app.conf.update(
    broker_url=os.environ.get(BROKER, "redis://localhost:1/0"),
    # How soon the broker looks for what was taken and not acknowledged: with its defaults after 100 s.
    broker_transport_options={
        "visibility_timeout": _visible_s,
        "unacked_restore_interval": min(_visible_s, 10),
        "unacked_restore_throttle": 1,
    },
    result_backend=os.environ.get(BROKER, "redis://localhost:1/0"),
    result_expires=3600,
    task_queues=[Queue("shop"), Queue("shop.mail")],
    task_default_queue="shop",
    task_track_started=True,
    worker_prefetch_multiplier=1,
    worker_send_task_events=True,
    timezone="Europe/Zurich",
)


@app.task(name="shop.cost")  # type: ignore[untyped-decorator] # celery ships no types
def cost(sku: str) -> int:
    """Give the price in cents; `KeyError` for what the shop does not have."""
    return PRICES[sku]


@app.task(name="shop.with_tax")  # type: ignore[untyped-decorator] # same
def with_tax(cents: int) -> int:
    """Add 8 percent."""
    return cents * 108 // 100


@app.task(name="shop.multiply")  # type: ignore[untyped-decorator] # same
def multiply(cents: int, pieces: int = 1) -> int:
    """Give the price of several pieces."""
    return cents * pieces


@app.task(name="shop.total")  # type: ignore[untyped-decorator] # same
def total(prices: list[int]) -> int:
    """Add prices up."""
    return sum(prices)


@app.task(name="shop.note", ignore_result=True)  # type: ignore[untyped-decorator] # same
def note(text: object) -> object:
    """Write a line into the log."""
    app.backend.client.rpush(LOG, str(text))
    return text


@app.task(name="shop.nap")  # type: ignore[untyped-decorator] # same
def nap(seconds: float, text: str) -> str:
    """Take so long, and note the beginning and the end."""
    note.run(f"{text} begins")
    time.sleep(seconds)
    note.run(f"{text} ends")
    return text


@app.task(name="shop.hold")  # type: ignore[untyped-decorator] # same
def hold(name: str) -> str:
    """Take as long as the key `shop.hold.NAME` is there."""
    note.run(f"{name} holds")
    while app.backend.client.exists(f"shop.hold.{name}"):
        time.sleep(0.02)
    return name


@app.task(  # type: ignore[untyped-decorator] # same
    name="shop.charge", bind=True, autoretry_for=(ConnectionError,), retry_backoff=1, max_retries=3
)
def charge(self: Task, order: str) -> dict[str, Any]:
    """Succeeds at the second try."""
    if self.request.retries < 1:
        raise ConnectionError("the bank is busy")
    return {"order": order, "tries": self.request.retries + 1}


@app.task(name="shop.insist", bind=True, max_retries=1, default_retry_delay=0.1)  # type: ignore[untyped-decorator] # same
def insist(self: Task, times: int) -> int:
    """Ask for another try so many times; Celery stops after the second."""
    if self.request.retries < times:
        raise self.retry()
    return int(self.request.retries + 1)


@app.task(name="shop.crash", acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator] # same
def crash(name: str) -> int:
    """Takes its process with it the first time."""
    times = int(app.backend.client.incr(f"shop.crash.{name}"))
    if times == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return times


@app.task(name="shop.ask", rate_limit="2/s")  # type: ignore[untyped-decorator] # same
def ask(text: str) -> str:
    """Ask a service that wants no more than two questions in a second."""
    note.run(f"{text} begins")
    note.run(f"{text} ends")
    return text


@app.task(name="shop.count", soft_time_limit=1, time_limit=2)  # type: ignore[untyped-decorator] # same
def count(seconds: float) -> str:
    """Stop in good order when the time is over."""
    try:
        time.sleep(seconds)
    except SoftTimeLimitExceeded:
        return "as far as I came"
    return "all of it"


@shared_task(name="shop.pack")  # type: ignore[untyped-decorator] # same
def pack(order: str) -> str:
    """Tell somebody through another task, which belongs to whatever app is the current one."""
    tell.delay(f"{order} is packed")
    return order


@shared_task(name="shop.tell", ignore_result=True)  # type: ignore[untyped-decorator] # same
def tell(text: str) -> None:
    """Write a line into the log."""
    note.run(f"{text}, says {_who()}")


ALLOWED = [
    "shop.cost",
    "shop.with_tax",
    "shop.multiply",
    "shop.total",
    "shop.note",
    "shop.nap",
    "shop.hold",
    "shop.charge",
    "shop.insist",
    "shop.crash",
    "shop.ask",
    "shop.count",
    "shop.pack",
    "shop.who",
]
workflows = Workflows(app, os.environ.get(DATABASE), allow=ALLOWED, user="shop", timeout_s=20.0)


@app.task(name="shop.nightly")  # type: ignore[untyped-decorator] # same
def nightly(day: str) -> str:
    """Start the flow of the night, once for each day."""
    return workflows.start("nightly", {"day": day}, key=day).id


@app.task(name="shop.who", bind=True)  # type: ignore[untyped-decorator] # same
def who(self: Task) -> dict[str, Any]:
    """Tell where this is."""
    return {"by": _who(), "task": self.name, "id": self.request.id, "retries": self.request.retries}


def _who() -> str:
    """Name the kind of process that this is."""
    return os.environ.get("SHOP_PROCESS", "test")
