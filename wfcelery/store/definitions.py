"""Definitions: immutable, addressed by a digest of what they say, numbered per name, deleted only softly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, insert, select, update

from wfcelery.core.values import canonical
from wfcelery.store.schema import workflow_definitions

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Connection, Row


@dataclass(frozen=True, slots=True)
class Definition:
    """One version of a flow. `pins` says which definition each sub-flow meant when it was defined."""

    id: str
    name: str
    version: int
    document: str
    pins: Mapping[str, str]
    depth: int
    created_by: str
    created_at: float
    deleted_at: float | None = None


_table = workflow_definitions
_columns = _table.c
_by_id = select(_table).where(_columns.id == bindparam("id"))
_newest = (
    select(_table)
    .where(_columns.name == bindparam("name"), _columns.deleted_at.is_(None))
    .order_by(_columns.version.desc())
)
_one = _newest.where(_columns.version == bindparam("version"))
_last_version = select(func.max(_columns.version)).where(_columns.name == bindparam("name"))


def add(
    conn: Connection,
    definition_id: str,
    *,
    name: str,
    document: str,
    created_by: str,
    now: float,
    pins: Mapping[str, str] | None = None,
    depth: int = 0,
) -> Definition:
    """Store a canonical document as the next version of `name`; one that is known already is given back.

    `definition_id` is `ids.definition_id` of it. A known one that was deleted is taken back into use.
    """
    known = get(conn, definition_id)
    if known is not None:
        if known.deleted_at is None:
            return known
        conn.execute(update(_table).where(_columns.id == known.id).values(deleted_at=None))
        return _definition(conn.execute(_by_id, {"id": known.id}).one())
    last = conn.execute(_last_version, {"name": name}).scalar() or 0
    pinned = dict(pins or {})
    made = Definition(definition_id, name, last + 1, document, pinned, depth, created_by, now)
    conn.execute(
        insert(_table),
        {
            "id": made.id,
            "name": name,
            "version": made.version,
            "document": document,
            "pins": canonical(pinned),
            "depth": depth,
            "created_by": created_by,
            "created_at": now,
        },
    )
    return made


def get(conn: Connection, definition_id: str) -> Definition | None:
    """Read a definition by its id, also a deleted one: runs point at it for life."""
    found = conn.execute(_by_id, {"id": definition_id}).first()
    return None if found is None else _definition(found)


def find(conn: Connection, name: str, version: int | None = None) -> Definition | None:
    """Read a version of a flow, or the newest; deleted ones are not found."""
    if version is None:
        found = conn.execute(_newest.limit(1), {"name": name}).first()
    else:
        found = conn.execute(_one, {"name": name, "version": version}).first()
    return None if found is None else _definition(found)


def versions(conn: Connection, name: str) -> list[Definition]:
    """List the versions of a flow, newest first."""
    return [_definition(row) for row in conn.execute(_newest, {"name": name})]


def listing(conn: Connection) -> list[Definition]:
    """List the newest version of every flow, by name."""
    shown = _columns.deleted_at.is_(None)
    newest = select(_columns.name, func.max(_columns.version)).where(shown).group_by(_columns.name).subquery()
    query = select(_table).join(newest, (_columns.name == newest.c[0]) & (_columns.version == newest.c[1]))
    return [_definition(row) for row in conn.execute(query.order_by(_columns.name))]


def delete(conn: Connection, name: str, version: int | None = None, *, now: float) -> int:
    """Put a version, or all of a flow, out of use; say how many. Runs that point at them go on."""
    these = (_columns.name == name) & _columns.deleted_at.is_(None)
    if version is not None:
        these &= _columns.version == version
    return conn.execute(update(_table).where(these).values(deleted_at=now)).rowcount


def _definition(row: Row[Any]) -> Definition:
    fields = dict(row._mapping)  # noqa: SLF001 -- SQLAlchemy's public name for it
    fields["pins"] = json.loads(fields["pins"])
    return Definition(**fields)
