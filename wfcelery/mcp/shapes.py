"""What the tools give. Times are ISO 8601 in UTC. No answer holds a link, nor a secret."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from wfcelery.mcp.fields import Next, Shown

Value = Annotated[
    JsonValue, Field(description="Of a large one `cut`, its size in `bytes`, and how it `begins`.")
]
Status = Literal["running", "paused", "completed", "failed", "cancelled"]


class Defined(Shown):
    """A version of a flow. `created`: it is new; else the same flow was there already."""

    id: str
    name: str
    version: int
    created: bool
    gates: list[str] = Field(description="Every step that waits for a person's approval.")
    added_gates: list[str] = Field(
        description="Gates that you left out, and that were put before tools that require an approval."
    )


class DefinitionShown(Shown):
    """The newest version of a flow."""

    id: str
    name: str
    version: int
    description: str
    input: Value = Field(description="The JSON Schema that the input of a run must fit; null: anything.")
    created_by: str
    created_at: str | None
    document: Value = Field(description="The flow itself; only where one flow was asked for.")


class DefinitionPage(Shown):
    """Flows by name."""

    items: list[DefinitionShown]
    next: Next


class Started(Shown):
    """The run; `created`: this call began it, and no earlier one."""

    run_id: str
    created: bool
    status: Status | None = Field(description="Null: you may start runs of this flow, and not read them.")


class Failure(Shown):
    """Why a run or a step has failed."""

    type: str
    message: str


class RunListed(Shown):
    """A run in a list."""

    run_id: str
    flow: str
    version: int
    status: Status
    error: Failure | None
    created_by: str
    key: str | None
    tags: list[str]
    created_at: str | None
    completed_at: str | None


class RunPage(Shown):
    """Runs, the newest first. A page may be shorter than asked for, and even empty, before the last."""

    items: list[RunListed]
    next: Next


class StepShown(Shown):
    """One attempt at a step; `item` counts those of a foreach."""

    step: str
    item: int | None
    attempt: int
    status: str
    tool: str | None
    args: Value
    result: Value
    error: Failure | None
    due_at: str | None
    started_at: str | None
    completed_at: str | None


class Reason(Shown):
    """One thing that the run waits for."""

    code: str
    message: str
    step: str | None
    item: int | None
    since: str | None
    until: str | None


class GateShown(Shown):
    """A gate that waits for people. `objection` says why you cannot decide it; null: you can."""

    step: str
    attempt: int
    description: str
    approvers: list[str] = Field(description="Empty: every person with the right to decide.")
    quorum: int
    votes: int
    require_comment: bool
    form: Value
    deadline: str | None
    objection: str | None


class RunStatus(RunListed):
    """A run, why it is not moving, the gates that wait, and a page of its steps."""

    input: Value
    output: Value
    reasons: list[Reason]
    gates: list[GateShown]
    steps: list[StepShown]
    steps_next: Next


class EventShown(Shown):
    """Something that happened; what happened to the run itself names no step."""

    seq: int
    at: str | None
    type: str
    step: str | None
    item: int | None
    attempt: int | None
    actor: str | None
    data: Value


class EventPage(Shown):
    """Events, the oldest first. `next`: give it as `after`; null: there are no more by now."""

    items: list[EventShown]
    next: int | None


class Decision(Shown):
    """What came of it: decided, and how; or how many votes there are of those that it takes."""

    decided: bool
    approved: bool | None
    votes: int | None
    quorum: int | None


class Stands(Shown):
    """How the run stands after what was asked for."""

    run_id: str
    status: Status
