"""Reading gates for people: one with its history, and those that wait."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import Integer, bindparam, func, or_, select, text, tuple_

from wfcelery.core.state import NO_ITEM, Attempt, Run, StepStatus, Vote
from wfcelery.core.values import Json
from wfcelery.store import rows
from wfcelery.store.schema import is_status, votes, workflow_events, workflow_steps, workflows

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Connection

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


_run_columns = [column.label(f"run_{column.name}") for column in rows.RUN]
_gates = select(*rows.ATTEMPT, _steps.id.label("step_id"), *_run_columns).select_from(_with_run)
_of_step = (
    _steps.workflow_id == bindparam("run_id"),
    _steps.item == NO_ITEM,
    _steps.name == bindparam("step"),
)
_attempt = bindparam("attempt", type_=Integer)
_find = (
    _gates.add_columns(_steps.args)
    .where(*_of_step, _steps.args.is_not(None), or_(_attempt.is_(None), _steps.attempt == _attempt))
    .order_by(_steps.attempt.desc())
    .limit(1)
)
_most = bindparam("most", type_=Integer)
_waiting = _gates.where(*_waits).order_by(_steps.ready_at.desc(), _steps.id.desc()).limit(_most)
_waiting_before = _waiting.where(
    tuple_(_steps.ready_at, _steps.id)
    < tuple_(bindparam("ready_at", type_=_steps.ready_at.type), bindparam("id", type_=_steps.id.type))
)
_newest = select(func.max(_steps.attempt)).where(*_of_step)
_told = (
    select(_events.at, _events.type, _events.actor, _events.data)
    .where(
        _events.workflow_id == bindparam("run_id"),
        _events.step == bindparam("step"),
        _events.item == bindparam("item"),
        _events.attempt == bindparam("attempt"),
    )
    .order_by(_events.seq)
    .limit(MOST_VOTES)
)
_cast = (
    select(votes)
    .where(_votes.workflow_id.in_(bindparam("run_ids", expanding=True)))
    .order_by(_votes.id)
    .limit(_most)
)
_ended = (StepStatus.DONE.value, StepStatus.FAILED.value, StepStatus.CANCELLED.value)
_past = (
    select(*rows.ATTEMPT, func.substr(_steps.result, 1, LONGEST_RESULT).label("result"))
    .where(_steps.workflow_id == bindparam("run_id"), _steps.item == NO_ITEM, _steps.status.in_(_ended))
    .order_by(_steps.position.desc())
    .limit(MOST_PAST)
)
_earlier = (
    select(_runs.id)
    .where(
        _runs.name == bindparam("name"),
        _runs.created_at <= bindparam("created_at", type_=_runs.created_at.type),
        _runs.id != bindparam("run_id"),
    )
    .order_by(_runs.created_at.desc(), _runs.id.desc())
    .limit(MOST_RUNS_BACK)
)
_approved = (
    select(_steps.workflow_id, _steps.completed_at, _steps.args, _runs.definition_id)
    .select_from(_with_run)
    .where(
        _steps.workflow_id.in_(_earlier),
        _steps.item == NO_ITEM,
        _steps.name == bindparam("step"),
        is_status(workflow_steps, StepStatus.DONE),
        _steps.args.is_not(None),
        func.coalesce(_steps.took, "").not_like("%deny"),
    )
    .order_by(_steps.completed_at.desc())
    .limit(5)
)


def find(conn: Connection, run_id: str, step: str, attempt: int | None = None) -> GateRow | None:
    """Read an attempt at a gate, the newest unless one is named; None if it has not opened."""
    found = conn.execute(_find, {"run_id": run_id, "step": step, "attempt": attempt}).first()
    return None if found is None else _gate(found, rows.value(found.args))


def waiting(conn: Connection, limit: int, before: tuple[float, str] | None = None) -> list[GateRow]:
    """List the gates that wait, newest first, without what they show; `before`: `ready_at` and id of one."""
    if before is None:
        return [_gate(row) for row in conn.execute(_waiting, {"most": limit})]
    last = {"most": limit, "ready_at": before[0], "id": before[1]}
    return [_gate(row) for row in conn.execute(_waiting_before, last)]


def newest_attempt(conn: Connection, run_id: str, step: str) -> int:
    """Give the number of the newest attempt at a step; 0 if there is none."""
    return conn.execute(_newest, {"run_id": run_id, "step": step}).scalar() or 0


def events(conn: Connection, run_id: str, attempt: Attempt) -> list[GateEvent]:
    """List what has happened to an attempt at a gate, oldest first."""
    place = {"run_id": run_id, "step": attempt.name, "item": attempt.item, "attempt": attempt.attempt}
    found = conn.execute(_told, place)
    return [GateEvent(row.at, row.type, row.actor, json.loads(row.data)) for row in found]


def votes_of(conn: Connection, run_ids: Sequence[str]) -> dict[str, list[GateVote]]:
    """Read the votes of runs, in the order in which they were cast."""
    found: dict[str, list[GateVote]] = {}
    if run_ids:
        wanted = {"run_ids": list(run_ids), "most": MOST_VOTES * len(run_ids)}
        for row in conn.execute(_cast, wanted):
            vote = Vote(row.step, row.attempt, row.voter, row.approve, row.comment, json.loads(row.form))
            found.setdefault(row.workflow_id, []).append(GateVote(vote, row.at))
    return found


def past(conn: Connection, run_id: str) -> list[PastStep]:
    """List the steps of a run that have ended, the last ones if they are many; skipped ones are left out."""
    return [PastStep(rows.attempt(row), row.result) for row in conn.execute(_past, {"run_id": run_id})][::-1]


def approved_before(conn: Connection, row: GateRow) -> list[Approved]:
    """List when the same gate was passed in earlier runs of the flow, the newest first; a few of them."""
    run = row.run
    wanted = {"name": run.name, "created_at": run.created_at, "run_id": run.id, "step": row.attempt.name}
    return [
        Approved(each.workflow_id, each.definition_id, each.completed_at, rows.value(each.args))
        for each in conn.execute(_approved, wanted)
    ]


def _gate(row: Any, shown: Json = None) -> GateRow:  # noqa: ANN401 - a row of SQLAlchemy
    return GateRow(row.step_id, rows.run(_RunRow(row)), rows.attempt(row), shown)


class _RunRow:
    """The columns of the run in a row that also has those of a step."""

    def __init__(self, row: Any) -> None:  # noqa: ANN401 - same
        self._row = row

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a column of any type
        return getattr(self._row, f"run_{name}")
