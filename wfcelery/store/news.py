"""What has changed in a run and its sub-runs since somebody looked last: the cost is that of the news."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import or_, select

from wfcelery.core import ids
from wfcelery.core.state import LIVE, Loop, WaitsFor
from wfcelery.store import rows
from wfcelery.store.schema import is_status, workflow_events, workflow_steps, workflows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from wfcelery.core.state import Attempt, Run

CHUNK: Final = 500
_steps = workflow_steps.c
_events = workflow_events.c


@dataclass(frozen=True, slots=True)
class News:
    """A run as it stands, and the rows of its steps that events have told of since the last look."""

    run: Run
    attempts: tuple[Attempt, ...]


@dataclass(slots=True)
class Watched:
    """Remembers how far each run of a tree was read. `look` gives what is new, parents before sub-runs."""

    run_id: str
    _read: dict[str, int] = field(default_factory=dict)

    def look(self, conn: Connection) -> list[News]:
        """Read what has happened since the last look; empty if there is no such run."""
        told = []
        for run in runs_of(conn, self.run_id):
            seq = self._read.get(run.id, 0)
            if run.seq > seq:
                self._read[run.id] = run.seq
                told.append(_news(conn, run, seq))
        return told


def runs_of(conn: Connection, first: str, *, most_live: int | None = None) -> list[Run]:
    """Give a run and the runs below it, each after its parent; nothing if there is no such run.

    With `most_live`, only those below it that are live, and about so many of the whole tree.
    """
    root = select(workflows.c.root_id).where(workflows.c.id == first).scalar_subquery()
    query = select(*rows.RUN).where(workflows.c.root_id == root)
    if most_live is None:
        query = query.order_by(workflows.c.id)
    else:
        wanted = or_(workflows.c.id == first, is_status(workflows, *LIVE))
        query = query.where(wanted).order_by(workflows.c.id != first, workflows.c.id).limit(most_live + 1)
    runs = {row.id: rows.run(row) for row in conn.execute(query)}
    below: dict[str, list[Run]] = {}
    for run in runs.values():
        if run.parent is not None:
            below.setdefault(run.parent.run_id, []).append(run)
    ordered = [runs[first]] if first in runs else []
    for run in ordered:  # It grows while it is walked: each run is followed by those below it.
        ordered += below.get(run.id, ())
    return ordered


def _news(conn: Connection, run: Run, seq: int) -> News:
    places = (
        select(_events.step, _events.item, _events.attempt)
        .where(
            _events.workflow_id == run.id,
            _events.seq > seq,
            _events.seq <= run.seq,
            _events.step.is_not(None),
            _events.attempt > 0,
        )
        .distinct()
    )
    wanted = [ids.step_id(run.id, *place) for place in conn.execute(places)]
    attempts: list[tuple[int, Attempt]] = []
    for start in range(0, len(wanted), CHUNK):
        found = select(_steps.position, *rows.ATTEMPT).where(_steps.id.in_(wanted[start : start + CHUNK]))
        attempts += [(row.position, rows.attempt(row[1:])) for row in conn.execute(found)]
    told = tuple(attempt for _, attempt in sorted(attempts, key=lambda each: each[0]))
    return News(run._replace(loops=_loops(conn, run, told)), told)


def _loops(conn: Connection, run: Run, told: Sequence[Attempt]) -> dict[str, Loop]:
    """Tell how many items the loops under way have; nobody needs the rest of a loop to look at it."""
    wanted = [
        ids.step_id(run.id, each.name, each.item, each.attempt)
        for each in told
        if each.waits_for is WaitsFor.ITEMS
    ]
    if not wanted:
        return {}
    found = conn.execute(select(_steps.name, _steps.args).where(_steps.id.in_(wanted)))
    items = {row.name: json.loads(row.args)["items"] for row in found if row.args is not None}
    return {name: Loop(each, range(len(each))) for name, each in items.items()}
