"""One executor at a time: a lease with an epoch that every write transaction checks.

SQLite in a file: the kernel holds a lock on a file beside the database, and frees it however the holder
ends. PostgreSQL: a row that expires by the database's own clock unless it is renewed. In memory there is
one process: whoever acquires last is the executor. Each acquisition raises the epoch, so that a holder that
was paused and overtaken cannot commit. Only the holder migrates the tables: `acquire` does, where it takes
the lease.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wfcelery.errors import LostLease, NotReachable
from wfcelery.store import migrations
from wfcelery.store.database import POSTGRESQL

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

    from wfcelery.store.database import Database

SHARD: Final = 0
_EPOCH: Final = f"SELECT epoch FROM executor WHERE shard = {SHARD}"  # noqa: S608


@dataclass(slots=True)
class Lease:
    """The right to write, until `release`, or until somebody with a higher epoch takes it."""

    database: Database
    owner: str
    epoch: int
    ttl_s: float
    _held: ExitStack = field(default_factory=ExitStack, repr=False)

    def check(self, conn: Connection) -> None:
        """Raise `LostLease` unless this is still the executor; holds others off until the commit."""
        check(conn, self.epoch)

    def renew(self, conn: Connection, now: float) -> None:
        """Put off the moment at which somebody else may take over."""
        at, until = _clock(self.database.kind, now), _clock(self.database.kind, now, self.ttl_s)
        words = f"UPDATE executor SET renewed_at = {at}, expires_at = {until} WHERE {_mine(self.epoch)}"  # noqa: S608
        if conn.exec_driver_sql(words).rowcount != 1:
            raise LostLease(self.epoch)

    def release(self) -> None:
        """Let the next one take over at once. Harmless when the lease is lost or released already."""
        with self._held, self.database.transaction() as conn:
            conn.exec_driver_sql(
                f"UPDATE executor SET owner = NULL, expires_at = NULL WHERE {_mine(self.epoch)}"  # noqa: S608
            )

    def abandon(self) -> None:
        """Drop it without a word in the tables, as the kernel does for a process that dies."""
        self._held.close()


def acquire(database: Database, owner: str, *, ttl_s: float, now: float) -> Lease | None:
    """Become the executor and bring the tables up to date, or give None while somebody else is.

    `now` matters in SQLite only; PostgreSQL goes by its own clock.
    """
    with ExitStack() as held:
        if database.path is not None and not _lock(held, database.path):
            return None
        with database.transaction() as conn:
            if database.kind == POSTGRESQL and not _is_free(conn):
                return None
            migrations.upgrade(conn)
            epoch = _raise_epoch(conn, database.kind, owner, now, ttl_s)
        return Lease(database, owner, epoch, ttl_s, held.pop_all())


def check(conn: Connection, epoch: int) -> None:
    """Raise `LostLease` unless `epoch` is the current one; holds others off until the transaction ends."""
    locking = " FOR UPDATE" if conn.dialect.name == POSTGRESQL else ""
    if conn.exec_driver_sql(_EPOCH + locking).scalar() != epoch:
        raise LostLease(epoch)


def holder(conn: Connection) -> str | None:
    """Name who has the lease, as far as the tables say; None if nobody, or before there are tables."""
    if migrations.version(conn) is None:
        return None
    found = conn.exec_driver_sql(f"SELECT owner FROM executor WHERE shard = {SHARD}").scalar()  # noqa: S608
    return None if found is None else str(found)


def _lock(held: ExitStack, database: Path) -> bool:
    database = database.resolve()  # one lock, by whatever name the file is opened
    path = database.with_name(f"{database.name}.executor.lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        raise NotReachable(str(path), str(exc.strerror)) from exc
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(conn: Connection) -> bool:
    """Tell whether nobody has the lease; a row that is locked belongs to an executor in mid-transaction."""
    migrations.take_turn(conn)
    if migrations.version(conn) is None:
        return True
    alive = "owner IS NOT NULL AND expires_at > clock_timestamp()"
    words = f"SELECT {alive} FROM executor WHERE shard = {SHARD} FOR UPDATE SKIP LOCKED"  # noqa: S608
    found = conn.exec_driver_sql(words).first()
    if found is not None:
        return not found[0]
    return conn.exec_driver_sql(_EPOCH).first() is None


def _raise_epoch(conn: Connection, kind: str, owner: str, now: float, ttl_s: float) -> int:
    at, until = _clock(kind, now), _clock(kind, now, ttl_s)
    place = "%s" if kind == POSTGRESQL else "?"
    words = (
        "INSERT INTO executor (shard, epoch, owner, renewed_at, expires_at) "  # noqa: S608
        f"VALUES ({SHARD}, 1, {place}, {at}, {until}) ON CONFLICT (shard) DO UPDATE SET "
        "epoch = executor.epoch + 1, owner = excluded.owner, "
        "renewed_at = excluded.renewed_at, expires_at = excluded.expires_at"
    )
    conn.exec_driver_sql(words, (owner,))
    return int(conn.exec_driver_sql(_EPOCH).scalar_one())


def _mine(epoch: int) -> str:
    return f"shard = {SHARD} AND epoch = {epoch:d}"


def _clock(kind: str, now: float, later: float = 0.0) -> str:
    """Write a moment: by the database's clock where executors may be on several machines."""
    if kind == POSTGRESQL:
        return f"clock_timestamp() + interval '1 second' * {later!r}"
    return repr(float(now + later))
