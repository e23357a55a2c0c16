"""Reading page by page: what a page costs is bounded in rows and in bytes, however large a run has become.

A page is chosen by light rows first, which hold no payloads; then only what is on it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, literal, select, tuple_

from wfcelery.core.values import canonical
from wfcelery.store.schema import workflow_events, workflow_steps, workflows
from wfcelery.store.views import RUN, STEP, WITH_DEFINITION, shown

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Column, Connection, Label

    from wfcelery.core.values import Json

CHUNK: Final = 500
_runs = workflows.c
_steps = workflow_steps.c
_events = workflow_events.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which runs are looked for; what is None does not matter. `until` is the first moment too late."""

    statuses: Sequence[str] = ()
    name: str | None = None
    key: str | None = None
    created_by: str | None = None
    tag: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands in the list, and whose it is."""

    id: str
    created_at: float
    name: str
    created_by: str
    status: str


def _size(*columns: Column[Any]) -> Label[int]:
    lengths = [func.coalesce(func.length(each), 0) for each in columns]
    return sum(lengths[1:], lengths[0]).label("size")


_PLACE: Final = (
    _runs.id,
    _runs.created_at,
    _runs.name,
    _runs.created_by,
    _runs.status,
)


def place(conn: Connection, run_id: str) -> Place | None:
    """Find one run."""
    found = conn.execute(select(*_PLACE).where(_runs.id == run_id)).first()
    return None if found is None else Place(*found)


def definition_of(conn: Connection, run_id: str) -> str:
    """Name the definition of a run that is there."""
    found: str = conn.execute(select(_runs.definition_id).where(_runs.id == run_id)).scalar_one()
    return found


def places(
    conn: Connection, wanted: Wanted, *, after: tuple[float, str] | None = None, limit: int
) -> list[Place]:
    """List runs, the newest first; `after` is the moment and id of the last one of the page before."""
    query = select(*_PLACE)
    if wanted.statuses:
        query = query.where(_runs.status.in_(list(wanted.statuses)))
    if wanted.since is not None:
        query = query.where(_runs.created_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(_runs.created_at < wanted.until)
    equal = {_runs.name: wanted.name, _runs.key: wanted.key, _runs.created_by: wanted.created_by}
    for column, value in equal.items():
        if value is not None:
            query = query.where(column == value)
    if wanted.tag is not None:
        # A whole tag of the JSON text, with its quotes; LIKE would not tell cases apart on SQLite.
        query = query.where(func.replace(_runs.tags, canonical(wanted.tag), "") != _runs.tags)
    if after is not None:
        last = tuple_(literal(after[0], _runs.created_at.type), literal(after[1]))
        query = query.where(tuple_(_runs.created_at, _runs.id) < last)
    newest = query.order_by(_runs.created_at.desc(), _runs.id.desc()).limit(limit)
    return [Place(*row) for row in conn.execute(newest)]


def sizes(conn: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Say how large the payloads of runs are, by id."""
    size = _size(_runs.input, _runs.output, _runs.error)
    return {row.id: row.size for row in conn.execute(select(_runs.id, size).where(_runs.id.in_(list(ids))))}


def runs(conn: Connection, ids: Sequence[str]) -> list[dict[str, Json]]:
    """Read runs without their steps, in the order of their ids as given."""
    found: dict[str, dict[str, Json]] = {}
    for start in range(0, len(ids), CHUNK):
        some = _runs.id.in_(ids[start : start + CHUNK])
        query = select(*RUN).select_from(WITH_DEFINITION).where(some)
        found |= {str(row["id"]): shown(row) for row in conn.execute(query).mappings()}
    return [found[run_id] for run_id in ids if run_id in found]


def steps(
    conn: Connection, run_id: str, *, after: int = -1, limit: int, most_bytes: int
) -> tuple[list[dict[str, Json]], int | None]:
    """Read steps of a run after a position; give also the last position, if more steps follow."""
    light = (
        select(_steps.position, _size(_steps.args, _steps.result, _steps.error))
        .where(_steps.workflow_id == run_id, _steps.position > after)
        .order_by(_steps.position)
        .limit(limit + 1)
    )
    last, is_last = _cut(conn.execute(light).all(), limit, most_bytes)
    if last is None:
        return [], None
    query = (
        select(*STEP)
        .where(_steps.workflow_id == run_id, _steps.position > after, _steps.position <= last)
        .order_by(_steps.position)
    )
    return [shown(row) for row in conn.execute(query).mappings()], None if is_last else last


def last_event(conn: Connection, run_id: str, *, after: int, limit: int, most_bytes: int) -> int | None:
    """Say up to which event a page after `after` goes; None if there is none."""
    light = (
        select(_events.seq, _size(_events.data))
        .where(_events.workflow_id == run_id, _events.seq > after)
        .order_by(_events.seq)
        .limit(limit)
    )
    return _cut(conn.execute(light).all(), limit, most_bytes)[0]


def _cut(rows: Sequence[tuple[int, int]], limit: int, most_bytes: int) -> tuple[int | None, bool]:
    """Give the position of the last row that fits, at least one, and whether nothing comes after it."""
    last, total = None, 0
    for count, (position, size) in enumerate(rows):
        total += size
        if count == limit or (count > 0 and total > most_bytes):
            return last, False
        last = position
    return last, True
