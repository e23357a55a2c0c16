"""Reading one run for people, a part at a time: nothing here grows with the length of its history.

A run may have 100,000 items and a million events. Rows outside of loops are few (steps times attempts); items
and events are read by pages; of large values only the beginning is read unless they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, func, or_, select, text, tuple_

from wfcelery.core.state import NO_ITEM, PEOPLE, Attempt, Run, RunStatus, StepStatus
from wfcelery.core.values import Json
from wfcelery.errors import NotFound
from wfcelery.store import rows
from wfcelery.store.schema import (
    is_status,
    workflow_definitions,
    workflow_events,
    workflow_steps,
    workflows,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_ROWS: Final = 5_000
MOST_COUNTED: Final = 10_000
MOST_WAITS: Final = 500
PREVIEW: Final = 160
_runs = workflows.c
_steps = workflow_steps.c
_events = workflow_events.c
_result = func.substr(_steps.result, 1, PREVIEW).label("preview")
_ENDED: Final = (StepStatus.DONE, StepStatus.FAILED, StepStatus.SKIPPED, StepStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Head:
    """A run without its steps, the version of its flow, and its output."""

    run: Run
    version: int
    output: Json


@dataclass(frozen=True, slots=True)
class Shown:
    """An attempt, with the beginning of its result as JSON text."""

    attempt: Attempt
    preview: str | None


@dataclass(frozen=True, slots=True)
class Payload:
    """What an attempt was given and what came of it, as JSON text cut to a size; None if there is none."""

    args: str | None
    result: str | None
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One line of history."""

    seq: int
    at: float
    type: str
    step: str | None
    item: int
    attempt: int
    actor: str
    data: Json


@dataclass(frozen=True, slots=True)
class Tally:
    """How the items of a foreach stand. `is_exact`: all of them were counted, else the first many."""

    counts: dict[str, int]
    is_exact: bool


def position(conn: Connection, run_id: str) -> tuple[int, RunStatus, int] | None:
    """Tell how far a run has come: the number of its last event, its status, how many rows are open."""
    open_rows = select(func.count()).select_from(
        select(_steps.id)
        .where(_steps.workflow_id == run_id, _steps.item == NO_ITEM, _steps.status.not_in(_ENDED))
        .limit(1)
        .subquery()
    )
    query = select(_runs.seq, _runs.status, open_rows.scalar_subquery()).where(_runs.id == run_id)
    found = conn.execute(query).first()
    return None if found is None else (found[0], RunStatus(found[1]), found[2])


def head(conn: Connection, run_id: str) -> Head:
    """Read a run. Raises `NotFound`."""
    joined = workflows.join(workflow_definitions, workflow_definitions.c.id == _runs.definition_id)
    query = select(*rows.RUN, _runs.output, workflow_definitions.c.version).select_from(joined)
    found = conn.execute(query.where(_runs.id == run_id)).first()
    if found is None:
        raise NotFound("run", run_id)
    output = None if found.output is None else json.loads(found.output)
    return Head(rows.run(found), found.version, output)


def attempts(conn: Connection, run_id: str) -> list[Attempt]:
    """Read the attempts outside of loops, in the order in which they appeared."""
    query = select(*rows.ATTEMPT).where(_steps.workflow_id == run_id, _steps.item == NO_ITEM)
    return [rows.attempt(row) for row in conn.execute(query.order_by(_steps.position).limit(MOST_ROWS))]


def previews(conn: Connection, run_id: str, wanted: Sequence[Attempt]) -> list[Shown]:
    """Add the beginning of their results to attempts outside of loops."""
    places = [(each.name, each.attempt) for each in wanted]
    query = select(_steps.name, _steps.attempt, _result).where(
        _steps.workflow_id == run_id, _steps.item == NO_ITEM, tuple_(_steps.name, _steps.attempt).in_(places)
    )
    found = {(row.name, row.attempt): row.preview for row in conn.execute(query)} if places else {}
    return [Shown(each, found.get((each.name, each.attempt))) for each in wanted]


def opened(conn: Connection, run_id: str, names: Collection[str]) -> dict[tuple[str, int], float]:
    """Say when the attempts at steps outside of loops were first told of, by step and attempt."""
    query = (
        select(_events.step, _events.attempt, func.min(_events.at))
        .where(
            _events.workflow_id == run_id,
            _events.step.in_(sorted(names)),
            _events.item == NO_ITEM,
            text("workflow_events.transition"),  # Written out: else SQLite does not see its index.
            _events.type != "join_opened",  # It is not its turn yet.
        )
        .group_by(_events.step, _events.attempt)
    )
    return {(step, attempt): at for step, attempt, at in conn.execute(query)} if names else {}


def attempts_at(conn: Connection, run_id: str, step: str, item: int, *, limit: int = 50) -> list[Attempt]:
    """Read the attempts at one step, or one item of it, newest first."""
    query = select(*rows.ATTEMPT).where(
        _steps.workflow_id == run_id, _steps.item == item, _steps.name == step
    )
    return [rows.attempt(row) for row in conn.execute(query.order_by(_steps.attempt.desc()).limit(limit))]


def payload(conn: Connection, run_id: str, step: str, item: int, attempt: int, *, longest: int) -> Payload:
    """Read the arguments and the result of one attempt, at most `longest` characters of each."""
    query = select(
        func.substr(_steps.args, 1, longest),
        func.substr(_steps.result, 1, longest),
        func.coalesce(func.length(_steps.args), 0),
        func.coalesce(func.length(_steps.result), 0),
    ).where(_steps.workflow_id == run_id, _steps.item == item, _steps.name == step, _steps.attempt == attempt)
    args, result, of_args, of_result = conn.execute(query).one()
    return Payload(args, result, max(of_args, of_result) > longest)


def items(
    conn: Connection, run_id: str, step: str, *, after: tuple[int, int] = (NO_ITEM, 0), limit: int
) -> list[Shown]:
    """Read a page of the items of a foreach; `after` is the (item, attempt) where the page before ended."""
    item, attempt = after
    query = (
        select(*rows.ATTEMPT, _result)
        .where(
            _steps.workflow_id == run_id,
            _steps.item >= max(0, item),
            _steps.name == step,
            or_(_steps.item > item, and_(_steps.item == item, _steps.attempt > attempt)),
        )
        .order_by(_steps.item, _steps.attempt)
        .limit(limit)
    )
    return [Shown(rows.attempt(row), row.preview) for row in conn.execute(query)]


def tally(conn: Connection, run_id: str, step: str) -> Tally:
    """Count the items of a foreach by status, the newest attempt of each; the first `MOST_COUNTED` rows."""
    first = (
        select(_steps.item, _steps.attempt, _steps.status)
        .where(_steps.workflow_id == run_id, _steps.item > NO_ITEM, _steps.name == step)
        .order_by(_steps.item, _steps.name, _steps.attempt)
        .limit(MOST_COUNTED)
    )
    newest: dict[int, str] = {}
    count = 0
    for item, _, status in conn.execute(first):
        newest[item] = status
        count += 1
    counts: dict[str, int] = {}
    for status in newest.values():
        counts[status] = counts.get(status, 0) + 1
    return Tally(counts, count < MOST_COUNTED)


def total_items(conn: Connection, run_id: str, step: str) -> int | None:
    """Say how many items a foreach has; None if it has not begun."""
    query = (
        select(_steps.args)
        .where(_steps.workflow_id == run_id, _steps.item == NO_ITEM, _steps.name == step)
        .order_by(_steps.attempt.desc())
        .limit(1)
    )
    found = conn.execute(query).scalar()
    args = None if found is None else json.loads(found)
    return len(args["items"]) if isinstance(args, dict) and isinstance(args.get("items"), list) else None


def events(conn: Connection, run_id: str, *, before: int | None = None, limit: int) -> list[Event]:
    """Read a page of history, newest first; `before` is the number of the last event of the page before."""
    query = select(
        _events.seq,
        _events.at,
        _events.type,
        _events.step,
        _events.item,
        _events.attempt,
        _events.actor,
        _events.data,
    ).where(_events.workflow_id == run_id)
    if before is not None:
        query = query.where(_events.seq < before)
    found = conn.execute(query.order_by(_events.seq.desc()).limit(limit))
    return [Event(*row[:-1], json.loads(row.data)) for row in found]


def existing(conn: Connection, run_ids: Sequence[str]) -> dict[str, str]:
    """Give the status of those runs that exist, by id."""
    query = select(_runs.id, _runs.status).where(_runs.id.in_(list(run_ids)))
    return {row.id: row.status for row in conn.execute(query)} if run_ids else {}


def waits(conn: Connection, run_ids: Sequence[str]) -> dict[str, list[tuple[str, Attempt]]]:
    """List the steps of these runs that wait for somebody, by run, each with the id of its definition."""
    query = (
        select(*rows.ATTEMPT, _steps.workflow_id, _runs.definition_id)
        .select_from(workflow_steps.join(workflows, _runs.id == _steps.workflow_id))
        .where(
            _steps.workflow_id.in_(list(run_ids)),
            _steps.item == NO_ITEM,
            is_status(workflow_steps, StepStatus.PENDING),
            _steps.waits_for.in_(sorted(PEOPLE)),
        )
        .order_by(_steps.workflow_id, _steps.position)
        .limit(MOST_WAITS)
    )
    found: dict[str, list[tuple[str, Attempt]]] = {}
    for row in conn.execute(query) if run_ids else ():
        found.setdefault(row.workflow_id, []).append((row.definition_id, rows.attempt(row)))
    return found


def counts_since(conn: Connection, moment: float) -> dict[str, int]:
    """Count the runs of each flow that have started since a moment, among the newest `MOST_COUNTED`."""
    newest = (
        select(_runs.name)
        .where(_runs.created_at >= moment)
        .order_by(_runs.created_at.desc(), _runs.id.desc())
        .limit(MOST_COUNTED)
        .subquery()
    )
    query = select(newest.c.name, func.count()).group_by(newest.c.name)
    return {name: count for name, count in conn.execute(query)}  # noqa: C416 - a row is no pair to mypy
