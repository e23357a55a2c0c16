"""The answers to requests, kept under the id that the caller made: a repeat finds it and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, select

from wfcelery.core.values import Json, canonical
from wfcelery.store import statements
from wfcelery.store.schema import commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Command:
    """A request that was answered. `kind` names its message, `run_id` its run, `actor` who asked.

    `code` says which kind of refusal it was; empty if it was granted.
    """

    id: str
    kind: str
    run_id: str | None
    ok: bool
    at: float
    code: str = ""
    reason: str = ""
    data: Mapping[str, Json] = field(default_factory=dict)
    actor: str = ""


_some = select(commands).where(commands.c.id.in_(bindparam("ids", expanding=True)))
_COLUMNS = ("id", "kind", "run_id", "ok", "code", "reason", "data", "at", "actor")


def get_many(conn: Connection, ids: Sequence[str]) -> dict[str, Command]:
    """Read the answers that exist, by id."""
    if not ids:
        return {}
    return {
        row.id: Command(
            row.id,
            row.kind,
            row.run_id,
            row.ok,
            row.at,
            row.code,
            row.reason,
            json.loads(row.data),
            row.actor,
        )
        for row in conn.execute(_some, {"ids": list(ids)})
    }


def put_many(conn: Connection, answered: Sequence[Command]) -> None:
    """Write answers; each id is new."""
    rows = [
        (one.id, one.kind, one.run_id, one.ok, one.code, one.reason, canonical(one.data), one.at, one.actor)
        for one in answered
    ]
    statements.insert(conn, commands, _COLUMNS, rows)


def forget(conn: Connection, before: float) -> int:
    """Delete the answers given before a moment; say how many."""
    return conn.execute(delete(commands).where(commands.c.at < before)).rowcount
