"""What it takes to say why a run is not moving: its open steps, and who could move them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select, tuple_

from wfcelery.core.state import NO_ITEM, OPEN, WaitsFor
from wfcelery.store import health, news, rows, votes, workers
from wfcelery.store.schema import workflow_events, workflow_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

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
    """Read the open rows that wait for something outside of themselves, oldest first."""
    wanted = (
        _steps.workflow_id.in_(run_ids[: news.CHUNK]),
        _steps.status.in_(sorted(OPEN)),
        func.coalesce(_steps.waits_for, "").not_in(_INDIRECT),
    )
    shown = (_steps.workflow_id, _steps.waits_for, _steps.args)
    query = select(*rows.ATTEMPT, *shown).where(*wanted).order_by(_steps.workflow_id, _steps.position)
    found = []
    for row in conn.execute(query.limit(MOST)):
        attempt = rows.attempt(row)
        is_signal = attempt.waits_for is WaitsFor.SIGNAL
        found.append((row.workflow_id, attempt, json.loads(row.args) if is_signal and row.args else None))
    count = conn.execute(select(func.count()).select_from(workflow_steps).where(*wanted)).scalar_one()
    return found, max(0, count - len(found))


def _opened(
    conn: Connection, found: Sequence[tuple[str, Attempt, Json]]
) -> Mapping[tuple[str, str, int, int], float]:
    """Say when each of these opened, by its event."""
    places = [(run_id, each.name, each.item, each.attempt) for run_id, each, _ in found]
    columns = (_events.workflow_id, _events.step, _events.item, _events.attempt)
    query = select(*columns, func.max(_events.at).label("at")).where(
        tuple_(*columns).in_(places), _events.type.in_(_OPENED)
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
    for run_id, name, item, attempt, text in conn.execute(query):
        error = rows.error(text)
        if error is not None:
            told[run_id, name, item, attempt + 1] = error
    return told


def _votes_at(attempt: Attempt, cast: Iterable[Vote]) -> tuple[Vote, ...]:
    if attempt.item != NO_ITEM:
        return ()
    return tuple(vote for vote in cast if (vote.step, vote.attempt) == (attempt.name, attempt.attempt))
