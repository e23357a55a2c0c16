"""Short words for what pages show: how a step stands, how long it took, what a run waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wfcelery.core.flow import Flow, Gate, Wait
from wfcelery.core.state import Attempt, RunStatus, StepStatus, WaitsFor
from wfcelery.insight.reasons import about

_OF_RUN: Final = {
    RunStatus.RUNNING: "running",
    RunStatus.PAUSED: "waiting",
    RunStatus.COMPLETED: "done",
    RunStatus.FAILED: "failed",
    RunStatus.CANCELLED: "cancelled",
}
_FOR_SOMEBODY: Final = frozenset({WaitsFor.APPROVAL, WaitsFor.SIGNAL, WaitsFor.PERSON, WaitsFor.REPORT})
_AT_WORK: Final = frozenset({WaitsFor.ITEMS, WaitsFor.FLOW})
_SHORT_S: Final = 10.0


def sign_of_run(status: str) -> str:
    """Name the sign of a run's status, as the picture of a flow has it."""
    return _OF_RUN[RunStatus(status)]


def sign_of_step(attempt: Attempt) -> str:
    """Name the sign of a step. Who waits for somebody, or works through others, does not just wait."""
    if attempt.status is not StepStatus.PENDING:
        return attempt.status.value
    if attempt.waits_for in _FOR_SOMEBODY:
        return "waiting"
    return "running" if attempt.waits_for in _AT_WORK else "pending"


def took(seconds: float | None) -> str:
    """Write a length of time in a few characters."""
    if seconds is None:
        return ""
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < _SHORT_S else about(seconds)


def waits_for(flow: Flow, attempt: Attempt, now: float) -> str:
    """Say in a few words what an open step waits for; empty if it just runs."""
    step = flow.steps[attempt.name]
    match attempt.waits_for:
        case WaitsFor.APPROVAL:
            named = step.action.approvers if isinstance(step.action, Gate) else ()
            return f"approval by {either(named)}" if named else "approval"
        case WaitsFor.SIGNAL:
            return f"signal {step.action.signal}" if isinstance(step.action, Wait) else "a signal"
        case WaitsFor.PERSON:
            return "a person: its worker was lost"
        case WaitsFor.REPORT:
            return "a result from outside"
        case WaitsFor.RETRY:
            return f"the next try{_in(attempt.due_at, now)}"
        case WaitsFor.TIME:
            return f"its time{_in(attempt.due_at, now)}"
        case WaitsFor.JOIN:
            return "other steps"
        case _:
            return ""


def either(names: Sequence[str]) -> str:
    """Join names by `or`; many are counted."""
    shown = list(names[:3])
    if len(names) > len(shown):
        return f"{', '.join(shown)} or {len(names) - len(shown)} others"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _in(due_at: float | None, now: float) -> str:
    return "" if due_at is None or due_at <= now else f", in {about(due_at - now)}"
