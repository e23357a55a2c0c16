"""Bulk statements in the driver's own words, made once and kept.

Writing a step is the engine's innermost loop: SQLAlchemy's handling of parameters costs several times what
the database does. Here is the only place that goes around it; the words still come from the schema.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Boolean, Integer

from wfcelery.errors import StaleState, StoreError
from wfcelery.store.database import POSTGRESQL, end_transaction
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
        many = len(rows) > 1
        _say(conn, _insert(conn.dialect.name, table, columns, many=many), table, columns, rows)


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
        statement = _update(conn.dialect.name, table, columns, guards, more, many=len(rows) > 1)
        hit = _say(conn, statement, table, columns + guards, rows)
        if hit != len(rows):
            raise StaleState(table.name, len(rows), hit)


def _say(
    conn: Connection, statement: str, table: Table, columns: tuple[str, ...], rows: Sequence[Row]
) -> int:
    transaction = conn.get_transaction()
    if transaction is None or not transaction.is_active:
        # Past SQLAlchemy nobody else would refuse it, and SQLite would commit it at once.
        raise StoreError(f"{table.name}: a statement of this transaction failed; nothing was written")
    cursor: Any = conn.connection.cursor()
    try:
        if len(rows) == 1:
            cursor.execute(statement, rows[0])
        elif conn.dialect.name == POSTGRESQL:
            # An update is planned anew each time: a plan made while the table was empty is no plan for later.
            prepare = None if statement.startswith("INSERT") else False
            cursor.execute(statement, _by_column(table, columns, rows), prepare=prepare)
        else:
            cursor.executemany(statement, rows)
        return int(cursor.rowcount)
    except DRIVER_ERRORS:
        end_transaction(conn)
        raise
    finally:
        cursor.close()


def _by_column(table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> list[str]:
    """Write rows as an array for each column, in PostgreSQL's notation: the driver takes ten times longer."""
    return [
        _array(values, quoted=_array_of(table, column) == "text")
        for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]


def _array(values: Row, *, quoted: bool) -> str:
    if quoted:
        words = ["NULL" if value is None else f'"{_escaped(str(value))}"' for value in values]
    else:
        words = ["NULL" if value is None else str(value) for value in values]
    return f"{{{','.join(words)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@lru_cache(maxsize=256)
def _insert(dialect: str, table: Table, columns: tuple[str, ...], *, many: bool) -> str:
    into = f"INSERT INTO {table.name} ({', '.join(columns)})"
    if many and dialect == POSTGRESQL:
        values = ", ".join(_taken(table, column, place) for place, column in enumerate(columns))
        return f"{into} SELECT {values} FROM {_unnested(table, columns)}"  # noqa: S608
    return f"{into} VALUES ({', '.join(_place(dialect, table, column) for column in columns)})"


@lru_cache(maxsize=4096)
def _update(
    dialect: str, table: Table, columns: tuple[str, ...], guards: tuple[str, ...], more: str, *, many: bool
) -> str:
    at_once = many and dialect == POSTGRESQL
    given = [
        f"{column} = {_taken(table, column, place) if at_once else _place(dialect, table, column)}"
        for place, column in enumerate(columns + guards)
    ]
    values, same = ", ".join(given[: len(columns)]), " AND ".join(given[len(columns) :])
    source = f" FROM {_unnested(table, columns + guards)}" if at_once else ""
    also = f" AND {more}" if more else ""
    return f"UPDATE {table.name} SET {values}{source} WHERE {same}{also}"  # noqa: S608


def _place(dialect: str, table: Table, column: str) -> str:
    if dialect != POSTGRESQL:
        return "?"
    return "to_timestamp(%s)" if isinstance(table.c[column].type, Time) else "%s"


def _unnested(table: Table, columns: tuple[str, ...]) -> str:
    """Write arrays, one for each column, as a table: PostgreSQL takes many rows in one statement."""
    arrays = ", ".join(f"%s::{_array_of(table, column)}[]" for column in columns)
    names = ", ".join(f"v{place}" for place in range(len(columns)))
    return f"unnest({arrays}) AS given ({names})"


def _taken(table: Table, column: str, place: int) -> str:
    value = f"given.v{place}"
    return f"to_timestamp({value})" if isinstance(table.c[column].type, Time) else value


@lru_cache(maxsize=1024)
def _array_of(table: Table, column: str) -> str:
    kind = table.c[column].type
    if isinstance(kind, Time):
        return "float8"
    if isinstance(kind, Boolean):
        return "bool"
    return "int8" if isinstance(kind, Integer) else "text"
