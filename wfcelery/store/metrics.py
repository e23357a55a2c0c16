"""What is counted in the tables for whoever watches the system.

Only what is still open is counted, each by an index that holds nothing else: the finished, of which there
may be millions, are passed by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, func, select

from wfcelery.core.state import LIVE, StepStatus
from wfcelery.store.schema import NoticeStatus, dead_letters, is_status, notices, workflow_steps, workflows
from wfcelery.store.times import Time

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

_steps = workflow_steps.c


@dataclass(frozen=True, slots=True)
class Counts:
    """How many there are of what is open. `waiting`: pending steps by what they wait for."""

    runs: Mapping[str, int] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    held: int = 0
    timers: int = 0
    timers_due: int = 0
    notices: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0


def _count(status: StepStatus) -> Select[int]:
    return select(func.count()).select_from(workflow_steps).where(is_status(workflow_steps, status))


RUNS: Final = (
    select(workflows.c.status, workflows.c.held, func.count())
    .where(is_status(workflows, *LIVE))
    .group_by(workflows.c.status, workflows.c.held)
)
READY: Final = _count(StepStatus.READY)
RUNNING: Final = _count(StepStatus.RUNNING)
# Pending steps have no index of their own; they are few among the steps of live runs.
PENDING: Final = (
    select(_steps.waits_for, func.count())
    .select_from(workflows.join(workflow_steps, _steps.workflow_id == workflows.c.id))
    .where(is_status(workflows, *LIVE), is_status(workflow_steps, StepStatus.PENDING))
    .group_by(_steps.waits_for)
)
TIMERS: Final = (
    select(func.count())
    .select_from(workflow_steps)
    .where(is_status(workflow_steps, StepStatus.PENDING), _steps.due_at.is_not(None))
)
# Those of runs that are held act when they are resumed.
DUE: Final = (
    select(func.count())
    .select_from(workflow_steps.join(workflows, workflows.c.id == _steps.workflow_id))
    .where(
        is_status(workflow_steps, StepStatus.PENDING),
        _steps.due_at <= bindparam("now", type_=Time()),
        ~workflows.c.held,
    )
)
NOTICES: Final = {
    status: select(func.count()).select_from(notices).where(is_status(notices, status))
    for status in (NoticeStatus.WAITING, NoticeStatus.FAILED)
}
LETTERS: Final = select(func.count()).select_from(dead_letters)


def counts(conn: Connection, now: float) -> Counts:
    """Count everything that is open."""
    live = [(str(status), bool(held), int(count)) for status, held, count in conn.execute(RUNS)]
    waiting = {str(reason or ""): int(count) for reason, count in conn.execute(PENDING)}
    return Counts(
        runs={each.value: sum(n for status, _, n in live if status == each) for each in sorted(LIVE)},
        steps={
            StepStatus.PENDING.value: sum(waiting.values()),
            StepStatus.READY.value: conn.execute(READY).scalar_one(),
            StepStatus.RUNNING.value: conn.execute(RUNNING).scalar_one(),
        },
        waiting={reason: count for reason, count in sorted(waiting.items()) if reason},
        held=sum(count for _, held, count in live if held),
        timers=conn.execute(TIMERS).scalar_one(),
        timers_due=conn.execute(DUE, {"now": now}).scalar_one(),
        notices={status.value: conn.execute(query).scalar_one() for status, query in NOTICES.items()},
        dead_letters=conn.execute(LETTERS).scalar_one(),
    )
