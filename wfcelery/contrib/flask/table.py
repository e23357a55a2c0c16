"""The outbox in the application's own database: a table that it migrates, and how the relay works on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.exc import SQLAlchemyError

from wfcelery.errors import NotReachable
from wfcelery.workflows.outbox import Entry

NAME: Final = "wfcelery_outbox"
ID_LENGTH: Final = 64
AT_ONCE: Final = 500


def outbox_table(metadata: MetaData, name: str = NAME) -> Table:
    """Add the outbox to the application's tables; its migrations make it like any other."""
    long_text = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
    return Table(
        name,
        metadata,
        Column("id", String(ID_LENGTH), primary_key=True),
        Column("request", long_text, nullable=False),
        Column("created_at", Double, nullable=False),
        Column("tries", Integer, nullable=False),
        Column("next_at", Double, nullable=True),
        Column("error", Text, nullable=False),
        Index(f"ix_{name}_next_at", "next_at"),
    )


def put(conn: Connection, table: Table, entry: Entry) -> None:
    """Write a row in the transaction of the caller."""
    conn.execute(insert(table).values(values_of(entry)))


def values_of(entry: Entry) -> dict[str, object]:
    """Give a row as its columns."""
    return asdict(entry)


@dataclass(frozen=True, slots=True)
class OutboxRows:
    """The rows, as who sends them sees them: what the application has committed, and nothing else.

    Every call is a transaction of its own. Raises `NotReachable` if the database does not answer.
    """

    engine: Engine
    table: Table

    def due(self, now: float, limit: int) -> Sequence[Entry]:
        """Give the rows whose moment has come, the oldest first."""
        at = self.table.c.next_at
        oldest = select(self.table).where(at <= now).order_by(at, self.table.c.id).limit(limit)
        with self._begin() as conn:
            return [_entry(row) for row in conn.execute(oldest)]

    def committed(self, ids: Sequence[str]) -> Sequence[Entry]:
        """Give those of these rows that are there."""
        found = select(self.table).where(self.table.c.id.in_(ids[:AT_ONCE]))
        with self._begin() as conn:
            return [_entry(row) for row in conn.execute(found)]

    def waiting(self) -> int:
        """Count the rows that were neither answered nor refused yet."""
        with self._begin() as conn:
            rows = conn.execute(select(self.table.c.id).where(self.table.c.next_at.is_not(None)))
            return len(rows.all())

    def remove(self, ids: Sequence[str]) -> None:
        """Delete rows; one that is gone already is no trouble."""
        with self._begin() as conn:
            for begin in range(0, len(ids), AT_ONCE):
                conn.execute(delete(self.table).where(self.table.c.id.in_(ids[begin : begin + AT_ONCE])))

    def keep(self, entries: Sequence[Entry]) -> None:
        """Write what has come of rows that are still there."""
        if not entries:
            return
        changed = ("request", "tries", "next_at", "error")
        statement = (
            update(self.table)
            .where(self.table.c.id == bindparam("of"))
            .values({name: bindparam(f"new_{name}") for name in changed})
        )
        with self._begin() as conn:
            for each in entries:
                row = asdict(each)
                conn.execute(statement, {"of": each.id} | {f"new_{name}": row[name] for name in changed})

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        try:
            with self.engine.begin() as conn:
                yield conn
        except SQLAlchemyError as error:
            # The words of the driver, without the statement and its values.
            said = str(getattr(error, "orig", None) or type(error).__name__)
            raise NotReachable(f"the outbox {self.table.name}", said) from error


def _entry(row: Row[Any]) -> Entry:
    return Entry(row.id, row.request, row.created_at, row.tries, row.next_at, row.error)
