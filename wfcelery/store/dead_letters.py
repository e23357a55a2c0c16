"""Messages that could not be handled, set aside with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from wfcelery.store.schema import dead_letters

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message as it came, and what went wrong with it."""

    id: int
    at: float
    run_id: str | None
    message: str
    error: str


def put(conn: Connection, *, at: float, run_id: str | None, message: str, error: str) -> None:
    """Set a message aside. What no database can hold in a text is written as an escape."""
    values = {"at": at, "run_id": run_id, "message": _storable(message), "error": _storable(error)}
    conn.execute(insert(dead_letters), values)


def listing(conn: Connection, limit: int = 100) -> list[DeadLetter]:
    """List the newest first."""
    query = select(dead_letters).order_by(dead_letters.c.id.desc()).limit(limit)
    return [DeadLetter(*row) for row in conn.execute(query)]


def get(conn: Connection, letter_id: int) -> DeadLetter | None:
    """Read one."""
    found = conn.execute(select(dead_letters).where(dead_letters.c.id == letter_id)).first()
    return None if found is None else DeadLetter(*found)


def forget(conn: Connection, before: float) -> int:
    """Delete those set aside before a moment; say how many."""
    return conn.execute(delete(dead_letters).where(dead_letters.c.at < before)).rowcount


def _storable(text: str) -> str:
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
