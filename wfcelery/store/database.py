"""The database: how it is opened, and the two ways to talk to it.

`transaction` is for the one writer, `reading` for everybody. Whatever goes wrong inside, nothing is
committed: the first failed statement ends the transaction, and what is tried after it is refused. (SQLite
rolls back by itself when the disk is full and would commit whatever follows, statement by statement.)
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from wfcelery.core.state import RunStatus, StepStatus, WaitsFor
from wfcelery.errors import InvalidSettings, NotReachable, StoreError
from wfcelery.store.failures import translated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
    from sqlalchemy.pool import ConnectionPoolEntry

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
BUSY_TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 4
# A writer that is stopped in mid-transaction holds the lease's row; after this long the server lets it go.
IDLE_TIMEOUT_S: Final = 10

_ON_SQLITE: Final = (
    f"PRAGMA busy_timeout={int(BUSY_TIMEOUT_S * 1000)}",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
)
_WAL: Final = "PRAGMA journal_mode=WAL"
_PATIENCE_S: Final = 0.01
_ON_POSTGRESQL: Final = (
    "SET TIME ZONE 'UTC'",
    f"SET idle_in_transaction_session_timeout = '{IDLE_TIMEOUT_S}s'",
)
# Told how, SQLite's driver takes our words as they are; else it asks each first whether it can be adapted.
for _words in (RunStatus, StepStatus, WaitsFor):
    sqlite3.register_adapter(_words, str.__str__)

_SPELLINGS: Final = {
    "sqlite": SQLITE,
    "sqlite+pysqlite": SQLITE,
    "postgres": POSTGRESQL,
    "postgresql": POSTGRESQL,
    "postgresql+psycopg": POSTGRESQL,
}


class Database:
    """An open database: SQLite in a file or in memory, or PostgreSQL. Threads may share it; forks may not."""

    def __init__(self, url: str) -> None:
        self.url, self.kind = _understood(url)
        self.name = self.url.render_as_string(hide_password=True)
        self.path = _path(self.url) if self.kind == SQLITE else None
        try:
            self._writers, self._readers = self._engines()
        except (ArgumentError, NoSuchModuleError) as exc:
            raise InvalidSettings("database_url", f"cannot be used: {exc}") from exc
        except ModuleNotFoundError as exc:
            reason = f"needs the module {exc.name}; install wfcelery[postgres]"
            raise InvalidSettings("database_url", reason) from exc
        self._writer: Connection | None = None
        self._turn = threading.RLock()

    @property
    def in_memory(self) -> bool:
        """Tell whether it is gone when it is closed."""
        return self.kind == SQLITE and self.path is None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Write: everything inside is committed together, or nothing is. Threads take turns."""
        with self._turn, translated(self.name), self._writing() as conn:
            transaction = conn.begin()
            with transaction:
                yield conn
                if not transaction.is_active:
                    raise StoreError(
                        f"{self.name}: a statement of this transaction failed; nothing was written"
                    )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read one consistent state; writing is refused, and nothing is ever committed."""
        # One connection is the whole database in memory: there, readers take turns with the writer.
        turn: AbstractContextManager[object] = self._turn if self.in_memory else nullcontext()
        with turn, translated(self.name), self._readers.connect() as conn, _unchanged(conn):
            yield conn

    def close(self) -> None:
        """Let go of every connection."""
        with self._turn:
            self._drop_writer()
        self._writers.dispose()
        self._readers.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Keep the writer's connection while nothing goes wrong: to fetch one costs as much as a step."""
        if self._writer is None:
            self._writer = self._writers.connect()
        try:
            yield self._writer
        except BaseException:
            self._drop_writer()
            raise

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _engines(self) -> tuple[Engine, Engine]:
        if self.kind == POSTGRESQL:
            arguments = {"connect_timeout": CONNECT_TIMEOUT_S}
            engine = create_engine(self.url, connect_args=arguments, pool_use_lifo=True)
            event.listen(engine, "connect", partial(_prepare, statements=_ON_POSTGRESQL))
            event.listen(engine, "handle_error", _end_transaction)
            reading = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            return engine, engine.execution_options(**reading)
        if self.path is None:
            arguments = {"check_same_thread": False}
            engine = create_engine("sqlite://", poolclass=StaticPool, connect_args=arguments)
            return _with_sqlite_habits(engine, "BEGIN IMMEDIATE", _ON_SQLITE), engine
        _make_folder(self.path.parent, self.name)
        # Two pools: switching a connection between the two makes SQLite forget every prepared statement.
        writers, readers = (
            create_engine(self.url, connect_args={"timeout": BUSY_TIMEOUT_S}) for _ in range(2)
        )
        return (
            _with_sqlite_habits(writers, "BEGIN IMMEDIATE", (*_ON_SQLITE, _WAL)),
            _with_sqlite_habits(readers, "BEGIN", (*_ON_SQLITE, "PRAGMA query_only=ON")),
        )


def open_database(url: str) -> Database:
    """Open the database at `url`. Nothing is created in it, and a server is not asked before it is needed."""
    return Database(url)


def _understood(url: str) -> tuple[URL, str]:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidSettings(
            "database_url", "is not a URL; write sqlite:///FILE or postgresql://HOST/NAME"
        ) from None
    kind = _SPELLINGS.get(parsed.drivername)
    if kind is None:
        reason = f"names {parsed.drivername}; wfcelery speaks sqlite and postgresql"
        raise InvalidSettings("database_url", reason)
    return parsed.set(drivername="sqlite" if kind == SQLITE else "postgresql+psycopg"), kind


def _path(url: URL) -> Path | None:
    if url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database)).absolute()


def _make_folder(folder: Path, name: str) -> None:
    try:
        # Inputs and results are nobody else's business.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise NotReachable(name, f"its folder cannot be made: {exc.strerror}") from exc


def _with_sqlite_habits(engine: Engine, begin: str, statements: tuple[str, ...]) -> Engine:
    event.listen(engine, "connect", partial(_prepare, statements=statements))
    event.listen(engine, "begin", partial(_begin_sqlite, statement=begin))
    event.listen(engine, "handle_error", _end_transaction)
    return engine


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry, statements: tuple[str, ...]) -> None:
    if isinstance(connection, sqlite3.Connection):
        # The driver's own idea of when a transaction begins is switched off: `_begin_sqlite` says it.
        connection.isolation_level = None
    cursor = connection.cursor()
    try:
        for statement in statements:
            _insist(cursor, statement)
    finally:
        cursor.close()
    connection.commit()


def _insist(cursor: DBAPICursor, statement: str) -> None:
    """Say it again while another process has the file: SQLite itself has no patience with `journal_mode`."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PATIENCE_S)
        else:
            return


def _begin_sqlite(conn: Connection, statement: str) -> None:
    conn.connection.cursor().execute(statement)


@contextmanager
def _unchanged(conn: Connection) -> Iterator[None]:
    """Undo whatever is written inside, and complain of it: in memory, SQLite has no other read-only mode."""
    driver = conn.connection.driver_connection
    before = driver.total_changes if isinstance(driver, sqlite3.Connection) else 0
    with conn.begin() as transaction:
        yield
        if isinstance(driver, sqlite3.Connection) and driver.total_changes != before:
            raise StoreError("a reader tried to write; nothing was written")
        transaction.rollback()


def _end_transaction(context: ExceptionContext) -> None:
    if context.connection is not None and not context.is_disconnect:
        end_transaction(context.connection)


def end_transaction(conn: Connection) -> None:
    """Close the transaction in which a statement failed: SQLAlchemy then refuses everything that follows."""
    transaction = conn.get_transaction()
    if transaction is not None and transaction.is_active:
        transaction.rollback()
