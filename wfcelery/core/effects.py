"""What follows from a decision besides the run itself: what the executor must do, as one closed union."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from wfcelery.core.messages import ChildEnded
from wfcelery.core.state import Prepared, StepRef
from wfcelery.core.values import Json


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Hand a ready step to a worker.

    `again`: the worker says that it begins before it calls the tool, because the same attempt was handed over
    before, an earlier one took its worker with it, or the step must not run twice (`on_lost: hold`).
    """

    ref: StepRef
    flow: str
    tool: str
    prepared: Prepared
    user: str
    timeout_s: float | None
    queue: str | None
    priority: int | None
    again: bool = False


@dataclass(frozen=True, slots=True)
class StopStep:
    """Ask whoever runs the step to stop: its result is no longer needed."""

    ref: StepRef


@dataclass(frozen=True, slots=True)
class StartChild:
    """Begin a sub-run."""

    child_id: str
    definition_id: str
    input: Json
    parent: StepRef
    root_id: str
    created_by: str
    wait: bool


@dataclass(frozen=True, slots=True)
class CancelChild:
    """Cancel a sub-run because its parent's step was."""

    child_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class HoldChild:
    """Hold a sub-run with its parent, or let it go on with it."""

    child_id: str
    hold: bool


@dataclass(frozen=True, slots=True)
class TellParent:
    """A sub-run has ended: its parent's step can go on."""

    ended: ChildEnded


@dataclass(frozen=True, slots=True)
class FindSignal:
    """A keyed wait has opened: a signal by key may have been stored before."""

    run_id: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class KeepSignal:
    """Store a signal for which nobody waits yet."""

    signal_id: str
    run_id: str
    name: str
    key: str | None
    payload: Json


@dataclass(frozen=True, slots=True)
class UseSignal:
    """A stored signal has been taken by a step."""

    signal_id: str


@dataclass(frozen=True, slots=True)
class CastVote:
    """Write down one person's word at a gate."""

    run_id: str
    step: str
    attempt: int
    voter: str
    approve: bool
    comment: str
    form: Json


class NoticeKind(StrEnum):
    """What people are told of."""

    GATE_OPENED = "gate_opened"
    GATE_REMINDER = "gate_reminder"
    GATE_ESCALATED = "gate_escalated"
    GATE_DECIDED = "gate_decided"
    RUN_FAILED = "run_failed"
    RUN_FINISHED = "run_finished"


@dataclass(frozen=True, slots=True)
class Notify:
    """Tell people of something. `to`: people, `group:NAME`, `channel:NAME`, or addresses with `://`."""

    run_id: str
    kind: NoticeKind
    to: tuple[str, ...]
    step: str | None = None
    attempt: int = 0
    data: dict[str, Json] = field(default_factory=dict)


Effect: TypeAlias = (
    Dispatch
    | StopStep
    | StartChild
    | CancelChild
    | HoldChild
    | TellParent
    | FindSignal
    | KeepSignal
    | UseSignal
    | CastVote
    | Notify
)
