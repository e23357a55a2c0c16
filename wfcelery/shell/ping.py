"""Asking a worker whether it answers. Workers know no database: the broker is where they can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery.utils.nodenames import host_format
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from wfcelery.errors import NotReachable
from wfcelery.shell.celery_app import make_app

if TYPE_CHECKING:
    from wfcelery.settings import Settings


def full_name(name: str) -> str:
    """Spell a worker's name out, as Celery does when it starts: `%h` is this machine."""
    return str(host_format(name))


def answers(settings: Settings, name: str, timeout_s: float) -> bool:
    """Tell whether the worker of this name answers in time: its main loop takes messages and sends some.

    A worker on the solo pool answers between two steps only. Raises `NotReachable` without a broker.
    """
    app = make_app(settings)
    # One that is not there must be told of at once, not waited for.
    app.conf.update(broker_connection_retry=False, broker_connection_max_retries=0)
    try:
        said = app.control.ping(destination=[full_name(name)], timeout=timeout_s, limit=1)
    except (OSError, KombuError, RedisError) as error:
        raise NotReachable("the broker", str(error)) from error
    finally:
        app.close()
    return bool(said)
