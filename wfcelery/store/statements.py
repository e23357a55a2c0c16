"""Bulk statements in the driver's own words, made once and kept.

Writing a step is the engine's innermost loop: SQLAlchemy's handling of parameters costs several times what
the database does. Here is the only place that goes around it; the words still come from the schema.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from wfcelery.errors import StaleState
from wfcelery.store.database import end_transaction
from wfcelery.store.failures import DRIVER_ERRORS
from wfcelery.store.times import Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Table

Value: TypeAlias = "str | int | float | bool | None"
Row: TypeAlias = "tuple[Value, ...]"


def insert(conn: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Add `rows`; the values of each stand in the order of `columns`."""
    if rows:
        _say(conn, _insert(conn.dialect.name, table, columns), rows)


def update(
    conn: Connection,
    table: Table,
    columns: tuple[str, ...],
    guards: tuple[str, ...],
    rows: Sequence[Row],
    *,
    more: str = "",
) -> None:
    """Set `columns` in the rows that `guards` name; every row must be hit, or `StaleState` is raised.

    A row holds the values first, then those of the guards; `more` is a further condition in SQL.
    """
    if rows:
        hit = _say(conn, _update(conn.dialect.name, table, columns, guards, more), rows)
        if hit != len(rows):
            raise StaleState(table.name, len(rows), hit)


def _say(conn: Connection, statement: str, rows: Sequence[Row]) -> int:
    cursor = conn.connection.cursor()
    try:
        if len(rows) == 1:
            cursor.execute(statement, rows[0])
        else:
            cursor.executemany(statement, rows)
    except DRIVER_ERRORS:
        end_transaction(conn)
        raise
    else:
        return cursor.rowcount
    finally:
        cursor.close()


@lru_cache(maxsize=256)
def _insert(dialect: str, table: Table, columns: tuple[str, ...]) -> str:
    places = ", ".join(_place(dialect, table, column) for column in columns)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608


@lru_cache(maxsize=4096)
def _update(dialect: str, table: Table, columns: tuple[str, ...], guards: tuple[str, ...], more: str) -> str:
    values = ", ".join(f"{column} = {_place(dialect, table, column)}" for column in columns)
    same = " AND ".join(f"{column} = {_place(dialect, table, column)}" for column in guards)
    if more:
        same = f"{same} AND {more}"
    return f"UPDATE {table.name} SET {values} WHERE {same}"  # noqa: S608


def _place(dialect: str, table: Table, column: str) -> str:
    if dialect != "postgresql":
        return "?"
    return "to_timestamp(%s)" if isinstance(table.c[column].type, Time) else "%s"
