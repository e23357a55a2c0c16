"""Reading the database: nothing is created, nothing is changed, and tables that are not known are refused.

Who may not read is refused here, in the one place where commands open the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from wfcelery.cli import allowed
from wfcelery.errors import NotReachable
from wfcelery.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from wfcelery.rights import Resource


class Reader(Protocol):
    """Whoever lets us read one consistent state after the other."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Read one consistent state."""


@dataclass(frozen=True, slots=True)
class Right:
    """What whoever reads must be allowed, and where that is known: to which run, or to which flow."""

    permission: str = allowed.READ
    run: str = ""
    flow: str = ""


READ: Final = Right()


@contextmanager
def reading(settings: Settings, right: Right | None = READ) -> Iterator[Connection]:
    """Read one consistent state of the database that the settings name. Who may not gets `Forbidden`.

    Without a `right` nobody is asked: for what the executor asks about, and for what tells nothing.
    """
    with reading_again(settings, right) as database, database.reading() as conn:
        yield conn


@contextmanager
def reading_again(settings: Settings, right: Right | None = READ) -> Iterator[Reader]:
    """Open the database that the settings name, to read it several times."""
    from wfcelery.store import migrations
    from wfcelery.store.database import open_database

    require(settings)
    path = sqlite_path(settings.database_url)
    database = open_database(settings.database_url)
    try:
        with database.reading() as conn:
            if migrations.version(conn) is None:
                reason = "it has no tables of wfcelery; `wfcelery run` makes them, --database names another"
                raise NotReachable(f"database {path or database.name}", reason)
            migrations.require_known(conn)
            if right is not None and allowed.is_governed(settings):
                allowed.require(settings, right.permission, _resource(conn, right))
        yield database
    finally:
        database.close()


def _resource(conn: Connection, right: Right) -> Resource:
    """Say what is to be read. Of a run that is not there nothing is known: it is not said that it is not."""
    from wfcelery.rights import Resource
    from wfcelery.store import runs

    if not right.run:
        return Resource(flow=right.flow)
    for run_id, flow, created_by in runs.owners(conn, [right.run]):
        return Resource(flow=flow, run_id=run_id, created_by=created_by)
    return Resource(run_id=right.run)


def require(settings: Settings) -> None:
    """Refuse a file that is not there: who changes a run must not make an empty database instead."""
    path = sqlite_path(settings.database_url)
    if path is not None and not path.exists():
        reason = "there is no such file; `wfcelery run` makes it, --database names another"
        raise NotReachable(f"database {path}", reason)


def is_there(settings: Settings) -> bool:
    """Tell whether there is a database to ask; a server is taken to be there."""
    path = sqlite_path(settings.database_url)
    return path is None or (path.exists() and path.stat().st_size > 0)


def sqlite_path(url: str) -> Path | None:
    """Give the file of an SQLite database; None for a server, or for memory."""
    scheme, _, rest = url.partition(":///")
    if scheme not in ("sqlite", "sqlite+pysqlite"):
        return None
    name = rest.partition("?")[0]
    return Path(name) if name not in ("", ":memory:") else None
