"""Who is at work on this database, as far as the tables say, and what waits for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from wfcelery.core.state import LIVE, StepStatus
from wfcelery.store import definitions
from wfcelery.store.schema import dead_letters, executor, is_status, workflow_steps, workflows

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from wfcelery.core.flow import Flow


@dataclass(frozen=True, slots=True)
class ExecutorSeen:
    """The lease as it was read. Alive: somebody has it, and it has not run out."""

    owner: str | None
    epoch: int
    renewed_at: float | None
    expires_at: float | None

    def is_alive(self, now: float) -> bool:
        """Tell whether an executor renews the lease."""
        return self.owner is not None and self.expires_at is not None and self.expires_at > now


@dataclass(frozen=True, slots=True)
class Waiting:
    """Steps of one queue that have been handed over, or must be, and have not begun."""

    queue: str | None
    count: int
    oldest: float | None


def executor_seen(conn: Connection) -> ExecutorSeen | None:
    """Read the lease; None if no executor has ever been here."""
    columns = executor.c
    query = select(columns.owner, columns.epoch, columns.renewed_at, columns.expires_at)
    found = conn.execute(query.where(columns.shard == 0)).first()
    return None if found is None else ExecutorSeen(*found)


def waiting(conn: Connection, flow_of: Callable[[str], Flow]) -> list[Waiting]:
    """Count the steps that nobody has begun, by the queue that their flow names (None: the usual one)."""
    steps = workflow_steps.c
    query = (
        select(workflows.c.definition_id, steps.name, func.count(), func.min(steps.ready_at))
        .select_from(workflow_steps.join(workflows, workflows.c.id == steps.workflow_id))
        .where(
            is_status(workflow_steps, StepStatus.READY, StepStatus.RUNNING),
            steps.started_at.is_(None),
            ~workflows.c.held,
        )
        .group_by(workflows.c.definition_id, steps.name)
    )
    counts: dict[str | None, Waiting] = {}
    for definition_id, name, count, oldest in conn.execute(query):
        queue = flow_of(definition_id).steps[name].queue
        known = counts.get(queue, Waiting(queue, 0, None))
        moments = [moment for moment in (known.oldest, oldest) if moment is not None]
        counts[queue] = Waiting(queue, known.count + count, min(moments, default=None))
    return sorted(counts.values(), key=lambda each: each.queue or "")


def definitions_in_use(conn: Connection) -> list[str]:
    """Name the newest version of every flow, and those that live runs have."""
    of_live = select(workflows.c.definition_id).where(is_status(workflows, *LIVE)).distinct()
    newest = {each.id for each in definitions.listing(conn)}
    return sorted(newest | set(conn.execute(of_live).scalars()))


def count_dead_letters(conn: Connection) -> int:
    """Count the messages that were set aside."""
    return conn.execute(select(func.count()).select_from(dead_letters)).scalar_one()
