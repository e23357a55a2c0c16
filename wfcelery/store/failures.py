"""What drivers say when something goes wrong, translated once into our own errors."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError, InterfaceError, InvalidRequestError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from wfcelery.errors import NotReachable, StoreError, WfceleryError

try:
    import psycopg
except ModuleNotFoundError:  # an extra: SQLite needs nothing
    DRIVER_ERRORS: tuple[type[Exception], ...] = (sqlite3.Error,)
    OUT_OF_REACH: tuple[type[Exception], ...] = ()
else:
    DRIVER_ERRORS = (sqlite3.Error, psycopg.Error)
    OUT_OF_REACH = (psycopg.OperationalError, psycopg.InterfaceError)

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIQUE_VIOLATION = "23505"
_UNIQUE = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
# Mistakes in what was asked, which SQLite reports by the same class as a disk that is full.
_OUR_FAULT = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_READONLY)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Let no driver's error out: `NotReachable` if the database `what` cannot work, else `StoreError`."""
    try:
        yield
    except PoolTimeout as exc:
        raise NotReachable(what, "all connections are in use") from exc
    except DBAPIError as exc:
        raise _ours(what, exc, exc.orig) from exc
    except DRIVER_ERRORS as exc:
        raise _ours(what, exc, exc) from exc
    except InvalidRequestError as exc:
        raise StoreError(f"{what} was asked wrongly: {exc}") from exc


def _ours(what: str, exc: Exception, said: BaseException | None) -> WfceleryError:
    lines = str(said).strip().splitlines()
    reason = lines[0] if lines else type(said).__name__
    if _is_out_of_reach(exc, said):
        return NotReachable(what, reason)
    return StoreError(f"{what} refused a statement: {reason}")


def is_unique_violation(said: BaseException) -> bool:
    """Tell whether a driver's error means that a row was refused because its like is already there."""
    if isinstance(said, sqlite3.Error):
        return said.sqlite_errorcode in _UNIQUE
    return getattr(said, "sqlstate", None) == UNIQUE_VIOLATION


def _is_out_of_reach(exc: Exception, said: BaseException | None) -> bool:
    if isinstance(said, sqlite3.Error):
        code = getattr(said, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return code == sqlite3.SQLITE_NOTADB or (
            isinstance(said, sqlite3.OperationalError) and code not in _OUR_FAULT
        )
    if isinstance(exc, DBAPIError):
        return exc.connection_invalidated or isinstance(exc, (OperationalError, InterfaceError))
    return isinstance(said, OUT_OF_REACH)
