"""Keeping the engine's own tables small: nobody repeats a request or waits for a signal for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wfcelery.store import commands, dead_letters, notices, signals, workers

if TYPE_CHECKING:
    from sqlalchemy import Connection

DAY_S: Final = 86_400.0
ANSWERS_KEPT_S: Final = 7 * DAY_S
WORKERS_KEPT_S: Final = DAY_S
LETTERS_KEPT_S: Final = 30 * DAY_S
NOTICES_KEPT_S: Final = 30 * DAY_S


def tidy(conn: Connection, now: float) -> None:
    """Delete what has been of no use for long."""
    commands.forget(conn, now - ANSWERS_KEPT_S)
    dead_letters.forget(conn, now - LETTERS_KEPT_S)
    notices.forget(conn, now - NOTICES_KEPT_S)
    signals.expire(conn, now, used_before=now - ANSWERS_KEPT_S)
    workers.forget(conn, now - WORKERS_KEPT_S)
