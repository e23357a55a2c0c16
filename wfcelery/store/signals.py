"""Signals for which nobody waited yet: to one run, in order; by key, for whoever will wait, for a while."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, literal_column, or_, select

from wfcelery.core.state import StoredSignal
from wfcelery.core.values import canonical, digest
from wfcelery.store import statements
from wfcelery.store.schema import signals, workflow_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from wfcelery.core.effects import KeepSignal

_table = signals.c
_COLUMNS = ("id", "run_id", "name", "key", "payload", "created_at", "expires_at")
_stored = (_table.id, _table.name, _table.key, _table.payload)
_of_runs = (
    select(_table.run_id, *_stored)
    .where(_table.used_at.is_(None), _table.run_id.in_(bindparam("ids", expanding=True)))
    .order_by(_table.seq)
)
_moment = bindparam("now", type_=_table.expires_at.type)
_by_key = (
    select(*_stored)
    .where(
        _table.used_at.is_(None),
        _table.run_id.is_(None),
        _table.name == bindparam("name"),
        _table.key == bindparam("key"),
        or_(_table.expires_at.is_(None), _table.expires_at > _moment),
    )
    .order_by(_table.seq)
    .limit(1)
)


_waiting = (
    select(workflow_steps.c.workflow_id)
    .where(
        literal_column("workflow_steps.waits_for = 'signal'"),
        workflow_steps.c.args_digest == bindparam("shown"),
    )
    .order_by(workflow_steps.c.workflow_id)
)


def keep(conn: Connection, kept: Sequence[KeepSignal], *, now: float) -> None:
    """Store signals to runs, in this order."""
    rows = [(one.signal_id, one.run_id, one.name, one.key, canonical(one.payload), now, None) for one in kept]
    statements.insert(conn, signals, _COLUMNS, rows)


def keep_for_key(conn: Connection, signal: StoredSignal, *, now: float, expires_at: float | None) -> None:
    """Store a signal by key for the first who will wait for it before it expires."""
    row = (signal.id, None, signal.name, signal.key, canonical(signal.payload), now, expires_at)
    statements.insert(conn, signals, _COLUMNS, [row])


def use(conn: Connection, ids: Sequence[str], *, now: float) -> None:
    """Mark signals as taken; each must be there and unused."""
    rows = [(now, one) for one in ids]
    statements.update(conn, signals, ("used_at",), ("id",), rows, more="used_at IS NULL")


def find(conn: Connection, name: str, key: str, *, now: float) -> StoredSignal | None:
    """Give the oldest unused signal by key."""
    found = conn.execute(_by_key, {"name": name, "key": key, "now": now}).first()
    return None if found is None else StoredSignal(found.id, found.name, found.key, json.loads(found.payload))


def waiting(conn: Connection, name: str, key: str) -> list[str]:
    """List the live runs in which a step waits for this signal with this key, once for each such step."""
    shown = digest(canonical({"signal": name, "key": key}))
    return list(conn.execute(_waiting, {"shown": shown}).scalars())


def of_runs(conn: Connection, run_ids: Sequence[str]) -> dict[str, tuple[StoredSignal, ...]]:
    """Read the unused signals of runs, in the order in which they came."""
    found: dict[str, tuple[StoredSignal, ...]] = {}
    if run_ids:
        for row in conn.execute(_of_runs, {"ids": list(run_ids)}):
            signal = StoredSignal(row.id, row.name, row.key, json.loads(row.payload))
            found[row.run_id] = (*found.get(row.run_id, ()), signal)
    return found


def expire(conn: Connection, now: float, *, used_before: float | None = None) -> int:
    """Delete the signals whose time is over, and those that were used before a moment; say how many."""
    over = _table.expires_at.is_not(None) & (_table.expires_at <= now)
    if used_before is not None:
        over |= _table.used_at.is_not(None) & (_table.used_at < used_before)
    return conn.execute(delete(signals).where(over)).rowcount
