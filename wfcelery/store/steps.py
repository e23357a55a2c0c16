"""Reading steps for the executor's sweeps: what they cost does not grow with history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Integer, bindparam, or_, select

from wfcelery.core.messages import TimerDue
from wfcelery.core.state import LIVE, PEOPLE, Attempt, StepRef, StepStatus
from wfcelery.core.values import Json
from wfcelery.store import rows
from wfcelery.store.schema import is_status, workflow_steps, workflows

if TYPE_CHECKING:
    from sqlalchemy import Connection

_steps = workflow_steps.c
_ref = (_steps.workflow_id, _steps.name, _steps.item, _steps.attempt, _steps.fence)
_with_run = workflow_steps.join(workflows, workflows.c.id == _steps.workflow_id)
# Without a root every run is meant; with one, that run and its sub-runs.
_root = bindparam("root", type_=workflows.c.root_id.type)
_of_root = or_(_root.is_(None), workflows.c.root_id == _root)
# A question about each row, and not a join: else SQLite begins with the runs, of which there are many.
_own_run = select(workflows.c.id).where(workflows.c.id == _steps.workflow_id, _of_root)
_is_meant = _own_run.correlate(workflow_steps).exists()
_goes_on = _own_run.where(~workflows.c.held, is_status(workflows, *LIVE)).correlate(workflow_steps).exists()
_is_timed = (is_status(workflow_steps, StepStatus.PENDING), _steps.due_at.is_not(None))

_newest = (
    select(*rows.ATTEMPT)
    .where(
        _steps.workflow_id == bindparam("run_id"),
        _steps.item == bindparam("item"),
        _steps.name == bindparam("step"),
    )
    .order_by(_steps.attempt.desc())
    .limit(1)
)
_ready = (
    select(*_ref)
    .where(is_status(workflow_steps, StepStatus.READY), _goes_on)
    .order_by(_steps.ready_at, _steps.id)
    .limit(bindparam("most", type_=Integer))
)
_running = (
    select(*_ref)
    .where(is_status(workflow_steps, StepStatus.RUNNING), _is_meant)
    .order_by(_steps.sent_at, _steps.id)
    .limit(bindparam("most", type_=Integer))
)
_due = (
    select(_steps.workflow_id, _steps.name, _steps.item, _steps.attempt)
    .where(*_is_timed, _steps.due_at <= bindparam("now", type_=_steps.due_at.type), _goes_on)
    .order_by(_steps.due_at, _steps.id)
    .limit(bindparam("most", type_=Integer))
)
_next_due = select(_steps.due_at).where(*_is_timed, _goes_on).order_by(_steps.due_at).limit(1)


_waiting = (
    select(*rows.ATTEMPT, _steps.workflow_id, _steps.args, workflows.c.definition_id)
    .select_from(_with_run)
    .where(
        workflows.c.root_id == bindparam("root"),
        is_status(workflow_steps, StepStatus.PENDING),
        _steps.waits_for.in_(sorted(PEOPLE)),
    )
    .order_by(_steps.workflow_id, _steps.position)
)


_out = (
    select(*_ref, workflows.c.definition_id, _steps.worker)
    .select_from(_with_run)
    .limit(bindparam("most", type_=Integer))
)
_out_ready = _out.where(is_status(workflow_steps, StepStatus.READY), _goes_on)
_out_running = _out.where(is_status(workflow_steps, StepStatus.RUNNING))


@dataclass(frozen=True, slots=True)
class Out:
    """A step that is, or must be, with a worker; `worker` if one has said that it runs it."""

    ref: StepRef
    definition_id: str
    worker: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A step that waits for somebody, and what it shows them."""

    run_id: str
    definition_id: str
    attempt: Attempt
    shown: Json


def find(conn: Connection, run_id: str, step: str, item: int) -> Attempt | None:
    """Read the newest attempt at a step."""
    found = conn.execute(_newest, {"run_id": run_id, "item": item, "step": step}).first()
    return None if found is None else rows.attempt(found)


def ready(conn: Connection, limit: int, root: str | None = None) -> list[StepRef]:
    """List the steps that must be on their way to a worker, oldest first; not those of held runs."""
    return [StepRef(*row) for row in conn.execute(_ready, {"most": limit, "root": root})]


def running(conn: Connection, limit: int, root: str | None = None) -> list[StepRef]:
    """List the steps that were handed over and have not ended, oldest first."""
    return [StepRef(*row) for row in conn.execute(_running, {"most": limit, "root": root})]


def out(conn: Connection, limit: int) -> list[Out]:
    """List the steps that are, or must be, on their way to a worker or with one, in order of handing over."""
    found = [
        row
        for query, order in ((_out_running, _steps.sent_at), (_out_ready, _steps.ready_at))
        for row in conn.execute(query.order_by(order, _steps.id), {"most": limit, "root": None})
    ]
    return [Out(StepRef(*row[:5]), row.definition_id, row.worker) for row in found]


def due(conn: Connection, now: float, limit: int, root: str | None = None) -> list[TimerDue]:
    """List the timers that have run out, earliest first; not those of held or ended runs."""
    return [TimerDue(*row) for row in conn.execute(_due, {"now": now, "most": limit, "root": root})]


def next_due(conn: Connection, root: str | None = None) -> float | None:
    """Say when the next timer runs out."""
    found: float | None = conn.execute(_next_due, {"root": root}).scalar()
    return found


def waiting(conn: Connection, root: str) -> list[Waiting]:
    """List the steps of a run and its sub-runs that wait for a person or a signal."""
    return [
        Waiting(row.workflow_id, row.definition_id, rows.attempt(row), rows.value(row.args))
        for row in conn.execute(_waiting, {"root": root})
    ]
