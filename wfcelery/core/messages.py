"""Everything that can happen to a run, as one closed union.

Reports come from workers, requests from people and programs, the rest from the executor itself.
A request carries the id of its command: its answer is kept under that id, so that a repeat is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from wfcelery.core.state import Error, RunStatus, StepRef
from wfcelery.core.values import Json


class Kind(StrEnum):
    """What kind of being acts. An agent never decides a gate."""

    PERSON = "person"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts. `at_terminal`: the person in front of an in-process run, who may answer its gates."""

    id: str
    kind: Kind = Kind.PERSON
    groups: tuple[str, ...] = ()
    at_terminal: bool = False


# -- reports of workers


@dataclass(frozen=True, slots=True)
class StepDone:
    """The tool returned. `brief`: it took no time worth speaking of."""

    ref: StepRef
    result: Json
    event: str | None = None
    worker: str | None = None
    started_at: float | None = None
    brief: bool = False


@dataclass(frozen=True, slots=True)
class StepFailed:
    """The tool raised, ran out of time, or could not be called."""

    ref: StepRef
    error: Error
    ancestors: tuple[str, ...] = ()
    retry: bool = True
    retry_after: float | None = None
    worker: str | None = None
    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class StepPostponed:
    """The tool said `later()`: somebody else will end the step."""

    ref: StepRef
    worker: str | None = None
    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class StepBegun:
    """The tool is being called."""

    ref: StepRef
    worker: str | None = None
    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class StepReturned:
    """A worker hands a step back that it has not begun: it must be handed over again."""

    ref: StepRef
    reason: str = ""
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class StepLost:
    """No living worker has the step.

    `counted`: the loss is charged to the step's own budget. Not `begun`: no worker is known to have called
    the tool, and unless the tables know better the same attempt is handed over again.
    """

    ref: StepRef
    counted: bool = True
    begun: bool = True
    reason: str = ""
    worker: str | None = None


# -- what the executor itself finds out


@dataclass(frozen=True, slots=True)
class StepSent:
    """The step was handed over: its message is on its way to a worker."""

    ref: StepRef


@dataclass(frozen=True, slots=True)
class StepUnsent:
    """A ready step is known to be on its way to nobody: it must be handed over (again)."""

    ref: StepRef


@dataclass(frozen=True, slots=True)
class TimerDue:
    """The clock has passed the `due_at` of a pending step."""

    run_id: str
    step: str
    item: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """A sub-run has ended."""

    parent: StepRef
    status: RunStatus
    output: Json
    error: Error | None


@dataclass(frozen=True, slots=True)
class Broken:
    """Deciding another message about this run raised: the run cannot go on."""

    run_id: str
    reason: str


# -- requests


@dataclass(frozen=True, slots=True)
class Decide:
    """Approve or deny a gate. `attempt`: the one that was looked at; a retry opens the gate anew.

    `via` names the surface on which it was said (link, console, api, cli, ...), for the record.
    """

    command_id: str
    run_id: str
    step: str
    approve: bool
    by: Principal
    comment: str = ""
    form: Json = None
    attempt: int | None = None
    via: str = ""


@dataclass(frozen=True, slots=True)
class Signal:
    """Tell a run something it may wait for."""

    command_id: str
    run_id: str
    name: str
    by: Principal
    payload: Json = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a run for good."""

    command_id: str
    run_id: str
    by: Principal
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """Let nothing new start until `Resume`."""

    command_id: str
    run_id: str
    by: Principal


@dataclass(frozen=True, slots=True)
class Resume:
    """Let a held run go on."""

    command_id: str
    run_id: str
    by: Principal


@dataclass(frozen=True, slots=True)
class RetryRun:
    """Reopen a failed run: new attempts for what failed or was cancelled by the failure."""

    command_id: str
    run_id: str
    by: Principal


@dataclass(frozen=True, slots=True)
class StepReady:
    """Let a pending step go on now: a plain gate, a wait, a delay, a retry, a parked step."""

    command_id: str
    run_id: str
    step: str
    by: Principal
    item: int = -1


@dataclass(frozen=True, slots=True)
class EndStep:
    """End a step whose tool said `later()`: with a result, or with an error."""

    command_id: str
    run_id: str
    step: str
    by: Principal
    item: int = -1
    result: Json = None
    event: str | None = None
    error: Error | None = None


Report: TypeAlias = StepDone | StepFailed | StepPostponed
Trace: TypeAlias = StepBegun | StepReturned | StepLost
Finding: TypeAlias = StepSent | StepUnsent | TimerDue | ChildEnded | Broken
Request: TypeAlias = Decide | Signal | Cancel | Hold | Resume | RetryRun | StepReady | EndStep
RunMessage: TypeAlias = Report | Trace | Finding | Request


@dataclass(frozen=True, slots=True)
class NewRun:
    """What it takes to begin a run; with an `objection` to its input it begins and fails at once."""

    run_id: str
    definition_id: str
    version: int
    input: Json
    by: Principal
    key: str | None = None
    tags: tuple[str, ...] = ()
    parent: StepRef | None = None
    root_id: str | None = None
    objection: str | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is told: done, or refused with the reason. Nothing changes on a refusal.

    `code` says which kind of refusal it is; it means nothing when `ok`.
    """

    ok: bool
    reason: str = ""
    code: str = "refused"
    data: dict[str, Json] = field(default_factory=dict)
