"""What waits for somebody, in the words that a prompt or a test needs."""

from __future__ import annotations

from dataclasses import dataclass

from wfcelery.core import ids
from wfcelery.core.flow import Flow, Gate, Wait
from wfcelery.core.gate_clock import deadline
from wfcelery.core.values import Json
from wfcelery.store import steps


@dataclass(frozen=True, slots=True)
class Waiting:
    """A gate, a wait or a parked step. `signal` is what a wait waits for, `shown` what follows a gate."""

    id: str
    run_id: str
    flow: str
    name: str
    signal: str | None = None
    gate: Gate | None = None
    shown: Json = None
    due_at: float | None = None
    escalated: bool = False

    @property
    def approvers(self) -> tuple[str, ...]:
        """Name who may decide; empty if any person may."""
        if self.gate is None:
            return ()
        return self.gate.approvers + (self.gate.escalate_to if self.escalated else ())


def describe(row: steps.Waiting, flow: Flow) -> Waiting:
    """Describe a step that waits."""
    attempt = row.attempt
    action = flow.steps[attempt.name].action
    return Waiting(
        id=ids.step_id(row.run_id, attempt.name, attempt.item, attempt.attempt),
        run_id=row.run_id,
        flow=flow.name,
        name=attempt.name,
        signal=action.signal if isinstance(action, Wait) else None,
        gate=action if isinstance(action, Gate) else None,
        shown=row.shown,
        due_at=deadline(action, attempt) if isinstance(action, Gate) else attempt.due_at,
        escalated=attempt.escalated,
    )
