"""Answering the doorbell as soon as it is taken from its queue.

A bell has no arguments, no result and nobody waits for it: it needs no request, no trace and no pool. Only
one that is to ring later goes Celery's own way, which keeps it until then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from celery.worker.strategy import default

from wfcelery.shell import roles

if TYPE_CHECKING:
    from celery import Celery, Task
    from celery.worker.consumer import Consumer
    from kombu.message import Message

logger: Final = logging.getLogger("wfcelery.executor")

Handler = Callable[..., Any]


def strategy(task: Task, app: Celery, consumer: Consumer) -> Handler:
    """Ring now, or let Celery ring at the time that the message names."""
    keep = default(task, app, consumer)

    def handle(message: Message, body: object, ack: Handler, reject: Handler, callbacks: object) -> None:
        if message.headers.get("eta"):
            keep(message, body, ack, reject, callbacks)
        else:
            ack(nothing, consumer.connection_errors)
            _answer()

    return handle


def _answer() -> None:
    """Answer it as a task would: what goes wrong is told and ends no process; the next tick tries again."""
    try:
        roles.executor().answer_bell()
    except Exception:
        logger.exception("a bell could not be answered")


def nothing(*_args: object, **_kwargs: object) -> None:
    """Acknowledging means nothing here: a message that was taken is gone."""
