"""The door of our processes: what comes off a queue is looked at before Celery touches it.

Celery and kombu end the whole process on a message that is not formed as they expect, and put it back into
its queue while they end: one forged or damaged message would stop every worker, one after the other, for
ever. Nothing here decides whether a message may be believed; that is what seals are for.
"""

from __future__ import annotations

import binascii
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from celery.app.amqp import AMQP
from kombu.connection import Connection
from kombu.transport import redis

from wfcelery.broker.names import STEP_TASK

logger: Final = logging.getLogger("wfcelery.door")

_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What kombu's reader of JSON raises on one text or another."""


class Channel(redis.Channel):
    """Takes messages from queues; one that cannot be read is gone, with a line in the log."""

    do_restore = False
    """Kombu puts nothing back when a connection ends: the worker itself hands back what it has not begun, and
    a second copy from here would run beside the one that the executor sends then."""

    def _brpop_read(self, **options: object) -> object:
        return self._read(super()._brpop_read, **options)

    def _receive_one(self, client: object) -> object:
        return self._read(super()._receive_one, client)

    def _read(self, read: Callable[..., object], *args: object, **options: object) -> object:
        self.connection.at_door = False
        try:
            return read(*args, **options)
        except _UNREADABLE:
            if self.connection.at_door:
                raise
            logger.error("a message was dropped: it cannot be read")  # noqa: TRY400 - nothing of ours has failed
            return True


class Transport(redis.Transport):
    """Hands on what is formed as Celery needs it."""

    Channel = Channel
    at_door = False
    """A message was read, and is on its way to whoever consumes its queue."""

    def _deliver(self, message: object, queue: str) -> None:
        self.at_door = True
        fault = fault_of(message, is_task=not _is_talk(queue))
        if fault is None:
            super()._deliver(message, queue)
        else:
            logger.error("a message in %s was dropped: %s", queue, fault)


class GuardedConnection(Connection):
    """A connection to Redis or Valkey, by whatever kind of URL, that goes through the door."""

    def get_transport_cls(self) -> type[Transport]:
        """Give the transport."""
        return Transport


class Amqp(AMQP):  # type: ignore[misc] # celery ships no types
    """Makes every connection of an app one with a door."""

    Connection = GuardedConnection


def fault_of(message: object, *, is_task: bool = True) -> str | None:
    """Say what is wrong with the form of a Celery message as kombu keeps it; None if nothing is."""
    if not isinstance(message, Mapping):
        return "it is not an object"
    for part, rules in (_RULES if is_task else _RULES | _OF_TALK).items():
        fields = message.get(part) if part else message
        if not isinstance(fields, Mapping):
            return f"{part} is not an object"
        for name, is_good in rules.items():
            if not is_good(fields.get(name)):
                return f"{part + '.' if part else ''}{name} is not what Celery writes there"
    headers = message["headers"]
    if is_task and headers["task"] == STEP_TASK and (headers.get("eta") or headers.get("expires")):
        return "it is a step, and these neither wait for a time nor expire"
    return None


def _is_talk(queue: str) -> bool:
    """Tell whether a queue is for remote control, its replies or events: these call no task."""
    return queue.endswith(".celery.pidbox") or queue.startswith("celeryev.")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _may_be_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _may_be_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and value >= 0)


def _may_be_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _may_be_time(value: object) -> bool:
    if not isinstance(value, str):
        return value is None
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _may_be_limits(value: object) -> bool:
    return value is None or (isinstance(value, list) and len(value) == 2 and all(map(_may_be_number, value)))  # noqa: PLR2004


def _is_base64(value: object) -> bool:
    if not isinstance(value, str) or not value:
        return False
    try:
        binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        return False
    return True


def _is(wanted: object) -> Callable[[object], bool]:
    return lambda value: value == wanted


_RULES: Final[dict[str, Mapping[str, Callable[[object], bool]]]] = {
    "": {
        "content-type": _is("application/json"),
        "content-encoding": _is("utf-8"),
        "body": _is_base64,
    },
    "properties": {
        "delivery_tag": _is_name,
        "body_encoding": _is("base64"),
        "delivery_info": lambda value: isinstance(value, Mapping),
        "reply_to": _may_be_text,
        "correlation_id": _may_be_text,
        "priority": _may_be_count,
    },
    "headers": {
        "task": _is_name,
        "id": _is_name,
        "root_id": _may_be_text,
        "parent_id": _may_be_text,
        "group": _may_be_text,
        "shadow": _may_be_text,
        "eta": _may_be_time,
        "expires": _may_be_time,
        "retries": _may_be_count,
        "timelimit": _may_be_limits,
        "argsrepr": _may_be_text,
        "kwargsrepr": _may_be_text,
        "origin": _may_be_text,
        "compression": _is(None),
    },
}
_OF_TALK: Final[dict[str, Mapping[str, Callable[[object], bool]]]] = {
    "headers": {"compression": _is(None)},
}
