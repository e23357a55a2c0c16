"""Moments: seconds since 1970 in the engine, a database's own type in the tables, ISO 8601 for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import REAL, TIMESTAMP, Float, TypeDecorator

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Dialect
    from sqlalchemy.types import TypeEngine


class Time(TypeDecorator[float]):
    """A float in Python; REAL on SQLite, timestamptz on PostgreSQL. Exact for whole microseconds."""

    impl = Float
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the type that people who look into the tables expect."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(REAL())

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | datetime | None:
        """Give the driver what the column takes."""
        if value is None or dialect.name != "postgresql":
            return value
        return datetime.fromtimestamp(value, UTC)

    def process_result_value(self, value: float | datetime | None, dialect: Dialect) -> float | None:  # noqa: ARG002
        """Give back the seconds that were written."""
        return value.timestamp() if isinstance(value, datetime) else value


def iso(moment: float | None) -> str | None:
    """Write a moment as people and programs read it: UTC, milliseconds, `Z`."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
