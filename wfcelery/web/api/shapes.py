"""The documented objects: what clients get. Times are ISO 8601 in UTC."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, WithJsonSchema

from wfcelery.web.api.fields import Shown

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Next = Annotated[
    str | None, Field(description="Give it as `cursor` to get the next page; null: there is none.")
]


class Problem(Shown):
    """What went wrong (RFC 9457). `code` is the last part of `type`; docs/errors.md lists them."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str
    path: str | None = Field(default=None, description="What in the request is wrong.")
    faults: list[Fault] | None = Field(default=None, description="Every fault of the flow.")
    ids: list[str] | None = Field(default=None, description="What to repeat a request with that is in doubt.")


class Fault(Shown):
    """One fault of a flow."""

    code: str
    message: str
    path: str
    line: int | None
    column: int | None
    hint: str


class ErrorShown(Shown):
    """Why a run or a step has failed."""

    type: str
    message: str


class StepShown(Shown):
    """One attempt at a step; `item` counts those of a foreach."""

    id: str
    name: str
    item: int | None
    attempt: int
    status: str
    tool: str | None
    args: JsonValue
    result: JsonValue
    error: ErrorShown | None
    ready_at: Time | None
    due_at: Time | None
    started_at: Time | None
    completed_at: Time | None
    worker: str | None


class RunListed(Shown):
    """A run without its steps."""

    id: str
    name: str
    version: int
    status: Literal["running", "paused", "completed", "failed", "cancelled"]
    input: JsonValue
    output: JsonValue
    error: ErrorShown | None
    created_by: str
    key: str | None
    tags: list[str]
    created_at: Time
    completed_at: Time | None


class RunShown(RunListed):
    """A run with its first steps; `steps_next`, if there are more, is the cursor for `/runs/{id}/steps`."""

    steps: list[StepShown]
    steps_next: Next


class RunPage(Shown):
    """Runs, the newest first. A page may be shorter than asked for, and even empty, before the last."""

    items: list[RunListed]
    next: Next


class StepPage(Shown):
    """Steps in the order in which they appeared."""

    items: list[StepShown]
    next: Next


class EventShown(Shown):
    """Something that happened; those of the run itself name no step."""

    seq: int
    at: Time
    type: str
    step: str | None
    item: int | None
    attempt: int | None
    actor: str | None
    data: dict[str, JsonValue]


class EventPage(Shown):
    """Events, the oldest first. `next`: give it as `after`; null: there are no more by now."""

    items: list[EventShown]
    next: int | None


class Started(Shown):
    """The run; `created`: this request began it, and no earlier one."""

    id: str
    created: bool


class Stands(Shown):
    """How a run stands after what was asked for."""

    id: str
    status: str


class ReasonShown(Shown):
    """One thing that a run waits for."""

    code: str
    message: str
    step: str | None
    item: int | None
    since: Time | None
    until: Time | None


class Explained(Shown):
    """Why a run is not moving."""

    run_id: str
    status: str
    reasons: list[ReasonShown]


class DefinitionListed(Shown):
    """One version of a flow."""

    id: str
    name: str
    version: int
    created_by: str
    created_at: Time


class DefinitionShown(DefinitionListed):
    """One version of a flow with its document; `versions` are those in use, the newest first."""

    document: dict[str, JsonValue]
    versions: list[int]


class DefinitionPage(Shown):
    """The newest version of every flow."""

    items: list[DefinitionListed]
    next: Next


class Defined(Shown):
    """A version of a flow, as it was made, found or put out of use."""

    id: str
    name: str
    version: int


class Validated(Shown):
    """A flow without faults."""

    name: str
    faults: list[Fault]


class VoteShown(Shown):
    """One person's word; `via` is the surface on which it was said."""

    by: str
    approve: bool
    comment: str
    form: JsonValue
    at: Time
    via: str | None


class DecidedShown(Shown):
    """How a gate was decided; `timed_out`: by the clock."""

    by: list[str]
    at: Time | None
    comment: str
    timed_out: bool


class ComingShown(Shown):
    """A step that follows an approval. `frozen`: exactly these arguments run."""

    step: str
    kind: str
    what: str
    description: str
    args: JsonValue
    frozen: bool
    when: str | None


class GateListed(Shown):
    """A gate. `objection` says why the asker cannot decide it; null: they can."""

    id: str
    run_id: str
    flow: str
    version: int
    step: str
    attempt: int
    newest_attempt: int
    state: Literal["open", "approved", "denied", "cancelled"]
    description: str
    flow_description: str
    created_by: str
    author: str
    key: str | None
    opened_at: Time | None
    deadline: Time | None
    approvers: list[str]
    escalated: bool
    quorum: int
    allow_self: bool
    require_comment: bool
    form: dict[str, JsonValue] | None
    votes: list[VoteShown]
    decided: DecidedShown | None
    on_deny: str
    on_timeout: str
    objection: str | None


class GateShown(GateListed):
    """A gate with what an approval lets run; `action_hash` names exactly that."""

    input: JsonValue
    runs_next: list[ComingShown]
    action_hash: str | None


class GatePage(Shown):
    """Gates of a run that have opened."""

    items: list[GateShown]
    next: Next


class ApprovalPage(Shown):
    """Gates that wait, the newest first."""

    items: list[GateListed]
    next: Next


class DecisionShown(Shown):
    """What came of it: decided, and how; or how many votes there are of those that it takes."""

    decided: bool
    approved: bool | None
    votes: int | None
    quorum: int | None


class FindingShown(Shown):
    """One thing that was looked at, and what to do about it."""

    check: str
    level: Literal["ok", "warn", "fail"]
    message: str
    advice: str | None


class ExecutorShown(Shown):
    """The executor; `alive`: it renews its lease."""

    alive: bool
    epoch: int
    renewed_at: Time | None


class WorkerShown(Shown):
    """A worker as it was heard last."""

    name: str
    queues: list[str]
    pool: str
    seen_at: Time
    active: int
    reserved: int


class QueueShown(Shown):
    """Steps that were handed over to a queue and have not begun."""

    queue: str
    waiting: int
    oldest: Time | None


class SystemShown(Shown):
    """How the system is. `well`: no finding is a failure."""

    well: bool
    findings: list[FindingShown]
    executor: ExecutorShown | None
    workers: list[WorkerShown]
    queues: list[QueueShown]
    dead_letters: int | None


class Me(Shown):
    """Who asks. `permissions`: what they may do to some flow at least; each request is judged by itself."""

    id: str
    kind: str
    groups: list[str]
    is_open: bool
    permissions: list[str]
    csrf_token: str | None = Field(
        description="For requests with the session's cookie: send it as X-CSRF-Token."
    )
