"""What it takes to say why a run is not moving: its open steps, and who could move them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, func, or_, select, text, tuple_

from wfcelery.core.state import NO_ITEM, OPEN, WaitsFor
from wfcelery.store import health, news, rows, votes, workers
from wfcelery.store.schema import workflow_events, workflow_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from wfcelery.core.flow import Flow, Step
    from wfcelery.core.state import Attempt, Error, Run, Vote
    from wfcelery.core.values import Json
    from wfcelery.store.workers import WorkerRow

MOST: Final = 200
"""How many open steps are looked at one by one."""

_steps = workflow_steps.c
_events = workflow_events.c
# What these wait for are rows of their own.
_INDIRECT: Final = (WaitsFor.JOIN.value, WaitsFor.ITEMS.value, WaitsFor.FLOW.value)
_OPENED: Final = ("gate_opened", "wait_opened", "step_postponed", "timer_set", "start_set", "step_ready")


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step that has not ended. `opened_at`: since when it waits; `before`: how the last attempt failed."""

    run: Run
    step: Step
    attempt: Attempt
    opened_at: float | None = None
    shown: Json = None
    votes: tuple[Vote, ...] = ()
    before: Error | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """A run, its open steps and those of its sub-runs, and who is at work on the database.

    `others` counts the open steps beyond the first `MOST`.
    """

    run: Run
    open: tuple[OpenStep, ...]
    executor: health.ExecutorSeen | None = None
    workers: tuple[WorkerRow, ...] = ()
    others: int = 0


def facts(conn: Connection, flow_of: Callable[[str], Flow], run_id: str) -> Facts | None:
    """Read everything about one run that says why it does not move; None if there is no such run."""
    runs = news.runs_of(conn, run_id, most_live=news.CHUNK)
    if not runs:
        return None
    live = {run.id: run for run in runs if run.is_live}
    found, others = _open_rows(conn, list(live))
    opened = _opened(conn, found)
    before = _before(conn, found)
    cast = votes.of_runs(conn, sorted({owner for owner, _, _ in found}))
    steps = tuple(
        OpenStep(
            run=live[owner],
            step=flow_of(live[owner].definition_id).steps[each.name],
            attempt=each,
            opened_at=opened.get((owner, each.name, each.item, each.attempt)),
            shown=shown,
            votes=_votes_at(each, cast.get(owner, ())),
            before=before.get((owner, each.name, each.item, each.attempt)),
        )
        for owner, each, shown in found
    )
    return Facts(runs[0], steps, health.executor_seen(conn), tuple(workers.known(conn)), others)


def _open_rows(conn: Connection, run_ids: Sequence[str]) -> tuple[list[tuple[str, Attempt, Json]], int]:
    """Read the open rows that wait for something outside of themselves, oldest first, and count the others.

    A loop's items are looked for only while the loop is open: there may be 100,000 that have ended.
    """
    some = run_ids[: news.CHUNK]
    is_open = _steps.status.in_(sorted(OPEN))
    outside = (_steps.workflow_id.in_(some), _steps.item == NO_ITEM, is_open)
    loops = conn.execute(
        select(_steps.workflow_id).where(*outside, _steps.waits_for == WaitsFor.ITEMS.value).distinct()
    ).scalars()
    looping = list(loops)
    wanted: tuple[ColumnElement[bool], ...] = (
        or_(and_(*outside), and_(_steps.workflow_id.in_(looping), _steps.item > NO_ITEM, is_open))
        if looping
        else and_(*outside),
        func.coalesce(_steps.waits_for, "").not_in(_INDIRECT),
    )
    shown = (_steps.workflow_id, _steps.waits_for, _steps.args)
    query = select(*rows.ATTEMPT, *shown).where(*wanted).order_by(_steps.workflow_id, _steps.position)
    found = []
    for row in conn.execute(query.limit(MOST)):
        attempt = rows.attempt(row)
        is_signal = attempt.waits_for is WaitsFor.SIGNAL
        found.append((row.workflow_id, attempt, json.loads(row.args) if is_signal and row.args else None))
    if len(found) < MOST:
        return found, 0
    count = conn.execute(select(func.count()).select_from(workflow_steps).where(*wanted)).scalar_one()
    return found, count - len(found)


def _opened(
    conn: Connection, found: Sequence[tuple[str, Attempt, Json]]
) -> Mapping[tuple[str, str, int, int], float]:
    """Say when each of these opened, by its event."""
    places = [(run_id, each.name, each.item, each.attempt) for run_id, each, _ in found]
    columns = (_events.workflow_id, _events.step, _events.item, _events.attempt)
    # The index is of transitions and sees only what is written out; SQLite wants the columns apart.
    query = select(*columns, func.max(_events.at).label("at")).where(
        _events.workflow_id.in_({place[0] for place in places}),
        _events.step.in_({place[1] for place in places}),
        _events.item.in_({place[2] for place in places}),
        tuple_(*columns).in_(places),
        _events.type.in_(_OPENED),
        text("workflow_events.transition"),
    )
    return {tuple(row[:4]): row.at for row in conn.execute(query.group_by(*columns))} if places else {}


def _before(
    conn: Connection, found: Sequence[tuple[str, Attempt, Json]]
) -> Mapping[tuple[str, str, int, int], Error]:
    """Say how the attempts before these failed."""
    places = [
        (run_id, each.name, each.item, each.attempt - 1) for run_id, each, _ in found if each.attempt > 1
    ]
    if not places:
        return {}
    columns = (_steps.workflow_id, _steps.name, _steps.item, _steps.attempt)
    query = select(*columns, _steps.error).where(tuple_(*columns).in_(places))
    told = {}
    for run_id, name, item, attempt, written in conn.execute(query):
        error = rows.error(written)
        if error is not None:
            told[run_id, name, item, attempt + 1] = error
    return told


def _votes_at(attempt: Attempt, cast: Iterable[Vote]) -> tuple[Vote, ...]:
    if attempt.item != NO_ITEM:
        return ()
    return tuple(vote for vote in cast if (vote.step, vote.attempt) == (attempt.name, attempt.attempt))
