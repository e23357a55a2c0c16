"""Reading gates for people: one with its history, and those that wait."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, literal, select, text, tuple_

from wfcelery.core.state import NO_ITEM, Attempt, Run, StepStatus, Vote
from wfcelery.core.values import Json
from wfcelery.store import rows
from wfcelery.store.schema import is_status, votes, workflow_events, workflow_steps, workflows

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Connection
    from sqlalchemy import Row as SqlRow

MOST_PAST: Final = 100
"""How many steps before a gate are told of."""
MOST_VOTES: Final = 500
MOST_RUNS_BACK: Final = 50
"""How many earlier runs of the flow are looked through for the last approval of the same gate."""
LONGEST_RESULT: Final = 1_000
"""How much is read of the result of a step that only is told of."""

_steps = workflow_steps.c
_runs = workflows.c
_events = workflow_events.c
_votes = votes.c
_with_run = workflow_steps.join(workflows, _runs.id == _steps.workflow_id)
# Written out: a partial index is not seen through a parameter.
_waits = (text("workflow_steps.waits_for = 'approval'"), is_status(workflow_steps, StepStatus.PENDING))


@dataclass(frozen=True, slots=True)
class GateVote:
    """One person's word, with its moment and the surface on which it was said (empty if not known)."""

    vote: Vote
    at: float
    via: str = ""


@dataclass(frozen=True, slots=True)
class GateEvent:
    """Something that happened to a gate."""

    at: float
    type: str
    actor: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PastStep:
    """A step that has ended; `result` may be cut short."""

    attempt: Attempt
    result: str | None


@dataclass(frozen=True, slots=True)
class GateRow:
    """An attempt at a gate that has opened, with its run. `shown`: what approvers see of what follows."""

    id: str
    run: Run
    attempt: Attempt
    shown: Json = None


@dataclass(frozen=True, slots=True)
class Approved:
    """The last time that the gate was approved in another run of the flow."""

    run_id: str
    definition_id: str
    at: float
    shown: Json


def find(conn: Connection, run_id: str, step: str, attempt: int | None = None) -> GateRow | None:
    """Read an attempt at a gate, the newest unless one is named; None if it has not opened."""
    query = _gates(_steps.args).where(
        _steps.workflow_id == run_id, _steps.item == NO_ITEM, _steps.name == step, _steps.args.is_not(None)
    )
    if attempt is not None:
        query = query.where(_steps.attempt == attempt)
    found = conn.execute(query.order_by(_steps.attempt.desc()).limit(1)).first()
    return None if found is None else _gate(found, rows.value(found.args))


def waiting(conn: Connection, limit: int, before: tuple[float, str] | None = None) -> list[GateRow]:
    """List the gates that wait, newest first, without what they show; `before`: `ready_at` and id of one."""
    query = _gates().where(*_waits)
    if before is not None:
        last = literal(before[0], _steps.ready_at.type), literal(before[1], _steps.id.type)
        query = query.where(tuple_(_steps.ready_at, _steps.id) < tuple_(*last))
    newest = query.order_by(_steps.ready_at.desc(), _steps.id.desc()).limit(limit)
    return [_gate(row) for row in conn.execute(newest)]


def newest_attempt(conn: Connection, run_id: str, step: str) -> int:
    """Give the number of the newest attempt at a step; 0 if there is none."""
    query = select(func.max(_steps.attempt)).where(
        _steps.workflow_id == run_id, _steps.item == NO_ITEM, _steps.name == step
    )
    return conn.execute(query).scalar() or 0


def events(conn: Connection, run_id: str, attempt: Attempt) -> list[GateEvent]:
    """List what has happened to an attempt at a gate, oldest first."""
    query = select(_events.at, _events.type, _events.actor, _events.data).where(
        _events.workflow_id == run_id,
        _events.step == attempt.name,
        _events.item == attempt.item,
        _events.attempt == attempt.attempt,
    )
    found = conn.execute(query.order_by(_events.seq).limit(MOST_VOTES))
    return [GateEvent(row.at, row.type, row.actor, json.loads(row.data)) for row in found]


def votes_of(conn: Connection, run_ids: Sequence[str]) -> dict[str, list[GateVote]]:
    """Read the votes of runs, in the order in which they were cast."""
    found: dict[str, list[GateVote]] = {}
    if run_ids:
        query = select(votes).where(_votes.workflow_id.in_(list(run_ids))).order_by(_votes.id)
        for row in conn.execute(query.limit(MOST_VOTES * len(run_ids))):
            vote = Vote(row.step, row.attempt, row.voter, row.approve, row.comment, json.loads(row.form))
            found.setdefault(row.workflow_id, []).append(GateVote(vote, row.at))
    return found


def past(conn: Connection, run_id: str) -> list[PastStep]:
    """List the steps of a run that have ended, the last ones if they are many; skipped ones are left out."""
    ended = (StepStatus.DONE.value, StepStatus.FAILED.value, StepStatus.CANCELLED.value)
    result = func.substr(_steps.result, 1, LONGEST_RESULT).label("result")
    query = (
        select(*rows.ATTEMPT, result)
        .where(_steps.workflow_id == run_id, _steps.item == NO_ITEM, _steps.status.in_(ended))
        .order_by(_steps.position.desc())
        .limit(MOST_PAST)
    )
    return [PastStep(rows.attempt(row), row.result) for row in conn.execute(query)][::-1]


def approved_before(conn: Connection, row: GateRow) -> list[Approved]:
    """List when the same gate was passed in earlier runs of the flow, the newest first; a few of them."""
    earlier = (
        select(_runs.id)
        .where(_runs.name == row.run.name, _runs.created_at <= row.run.created_at, _runs.id != row.run.id)
        .order_by(_runs.created_at.desc(), _runs.id.desc())
        .limit(MOST_RUNS_BACK)
    )
    query = (
        select(_steps.workflow_id, _steps.completed_at, _steps.took, _steps.args, _runs.definition_id)
        .select_from(_with_run)
        .where(
            _steps.workflow_id.in_(earlier),
            _steps.item == NO_ITEM,
            _steps.name == row.attempt.name,
            is_status(workflow_steps, StepStatus.DONE),
            _steps.args.is_not(None),
            func.coalesce(_steps.took, "").not_like("%deny"),
        )
        .order_by(_steps.completed_at.desc())
        .limit(5)
    )
    return [
        Approved(each.workflow_id, each.definition_id, each.completed_at, rows.value(each.args))
        for each in conn.execute(query)
    ]


def _gates(*more: Any) -> Any:  # noqa: ANN401 - a query of SQLAlchemy has no narrower type
    columns = [column.label(f"run_{column.name}") for column in rows.RUN]
    return select(*rows.ATTEMPT, _steps.id.label("step_id"), *columns, *more).select_from(_with_run)


def _gate(row: SqlRow[Any], shown: Json = None) -> GateRow:
    return GateRow(row.step_id, rows.run(_RunRow(row)), rows.attempt(row), shown)


class _RunRow:
    """The columns of the run in a row that also has those of a step."""

    def __init__(self, row: SqlRow[Any]) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a column of any type
        return getattr(self._row, f"run_{name}")
