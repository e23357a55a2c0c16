"""The workers that were heard: who they are, which queues they consume, what they said last."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from wfcelery.core import ids
from wfcelery.core.values import Json, canonical
from wfcelery.store.database import POSTGRESQL
from wfcelery.store.schema import workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from wfcelery.executor.messages import Holding


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process as it was heard last. `at` is its own clock, `seen_at` the executor's.

    `active` and `unsent` are ids of steps; of those that wait in it only the number is kept.
    """

    name: str
    boot_id: str
    seen_at: float
    queues: tuple[str, ...]
    pool: str
    at: float
    reserved: int
    active: tuple[str, ...]
    unsent: tuple[str, ...]


_all = select(workers).order_by(workers.c.name)
_left = delete(workers).where(
    workers.c.name == bindparam("gone"), workers.c.boot_id == bindparam("gone_boot_id")
)


def put(conn: Connection, holdings: Sequence[Holding], now: float) -> None:
    """Write what workers said, in this order, over what each said before; one that leaves is deleted."""
    last: dict[str, Holding] = {}
    for holding in holdings:
        before = last.get(holding.worker)
        if not holding.leaving or before is None or before.boot_id == holding.boot_id:
            last[holding.worker] = holding  # A process that leaves does not take its successor with it.
    rows = [_row(holding, now) for holding in last.values() if not holding.leaving]
    left = [
        {"gone": holding.worker, "gone_boot_id": holding.boot_id}
        for holding in last.values()
        if holding.leaving
    ]
    if rows:
        conn.execute(_upsert(conn.dialect.name), rows)
    if left:
        conn.execute(_left, left)


def known(conn: Connection) -> list[WorkerRow]:
    """List the workers that have not left, by name; some may have vanished."""
    return [
        _worker(row.name, row.boot_id, row.seen_at, row.queues, row.holding) for row in conn.execute(_all)
    ]


def forget(conn: Connection, before: float) -> int:
    """Delete those that were not heard since a moment; say how many."""
    return conn.execute(delete(workers).where(workers.c.seen_at < before)).rowcount


@lru_cache(maxsize=2)
def _upsert(dialect: str) -> postgresql.Insert | sqlite.Insert:
    insert = postgresql.insert(workers) if dialect == POSTGRESQL else sqlite.insert(workers)
    new = insert.excluded
    return insert.on_conflict_do_update(
        index_elements=[workers.c.name],
        set_={column: new[column] for column in ("boot_id", "seen_at", "queues", "holding")},
    )


def _row(holding: Holding, now: float) -> dict[str, str | float]:
    said: Json = {
        "pool": holding.pool,
        "at": holding.at,
        "reserved": len(holding.reserved),
        "active": [ids.step_id(*ref[:4]) for ref, _ in holding.active],
        "unsent": [ids.step_id(*ref[:4]) for ref in holding.unsent],
    }
    return {
        "name": holding.worker,
        "boot_id": holding.boot_id,
        "seen_at": now,
        "queues": canonical(holding.queues),
        "holding": canonical(said),
    }


def _worker(name: str, boot_id: str, seen_at: float, queues: str, holding: str) -> WorkerRow:
    said = json.loads(holding)
    return WorkerRow(
        name=name,
        boot_id=boot_id,
        seen_at=seen_at,
        queues=tuple(json.loads(queues)),
        pool=said["pool"],
        at=said["at"],
        reserved=said["reserved"],
        active=tuple(said["active"]),
        unsent=tuple(said["unsent"]),
    )
