"""What a flow is, once it has been read and found good: steps, what each does, and where it goes on.

Everything here is data. `document` makes it from YAML or JSON, `validate` looks for faults,
`decide` walks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from wfcelery.core.expressions import Condition, Template
from wfcelery.core.values import Json


class Label(StrEnum):
    """The kinds of ways out of a step. An edge is (source, label, index): `then x` and `else x` are two."""

    NEXT = "next"
    JOIN = "join"
    PARALLEL = "parallel"
    IF = "if"
    ELSE = "else"
    ON = "on"
    ERROR = "error"
    DENY = "deny"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Edge:
    """One way from a step to another; `event` names the outcome for `on`, `index` the place in a list."""

    source: str
    label: Label
    target: str
    index: int = 0
    event: str = ""

    @property
    def id(self) -> str:
        """Name the edge among its source's edges, as events write it."""
        if self.label is Label.ON:
            return f"on:{self.event}"
        if self.label in (Label.IF, Label.PARALLEL):
            return f"{self.label.value}:{self.index}"
        return self.label.value

    @property
    def choice(self) -> str:
        """Name the outcome that takes this edge: `next`, `join` and `parallel` are all taken by `next`."""
        return "next" if self.label in (Label.NEXT, Label.JOIN, Label.PARALLEL) else self.id


class JoinMode(StrEnum):
    """When a step with several ways in begins; a number of live tokens is `Step.join_count`."""

    ALL = "all"
    ANY = "any"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waiting times that grow by `factor` up to `max_s`, each shortened by up to the share `jitter`."""

    initial_s: float
    factor: float
    max_s: float
    jitter: float


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed attempt is followed by another, and after how long."""

    max_attempts: int = 3
    backoff: tuple[float, ...] | Exponential = (30.0, 120.0, 300.0)
    no_retry_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """Call a tool."""

    tool: str
    args: Template


class OnTimeout(StrEnum):
    """What happens to a gate that nobody answered in time."""

    DENY = "deny"
    APPROVE = "approve"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True)
class Gate:
    """Wait for people. `approvers` are ids of people, or groups written `group:NAME`.

    `pass_result`: what follows an approval sees the result that came in, not the decision.
    """

    approvers: tuple[str, ...] = ()
    quorum: int = 1
    allow_self: bool = False
    require_comment: bool = False
    form: Mapping[str, Json] | None = None
    notify: tuple[str, ...] = ()
    timeout_s: float | None = None
    on_timeout: OnTimeout = OnTimeout.DENY
    escalate_to: tuple[str, ...] = ()
    remind_every_s: float | None = None
    pass_result: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a named signal."""

    signal: str
    key: Template | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait for a number of seconds."""

    seconds: Template


@dataclass(frozen=True, slots=True)
class Until:
    """Wait for a moment, written in ISO 8601."""

    moment: Template


@dataclass(frozen=True, slots=True)
class SubFlow:
    """Run another flow; `definition_id` is pinned when the parent is defined."""

    name: str
    version: int | None
    input: Template
    wait: bool = True
    definition_id: str | None = None


class OnItemError(StrEnum):
    """What a foreach does when an item has failed for good."""

    FAIL = "fail"
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class Foreach:
    """Do the same for each item of a list, at most `concurrency` at a time."""

    items: Template
    body: Call | SubFlow
    concurrency: int
    on_item_error: OnItemError = OnItemError.FAIL


@dataclass(frozen=True, slots=True)
class Pass:
    """Do nothing: the result that came in goes on."""


Action: TypeAlias = Call | Gate | Wait | Delay | Until | Foreach | SubFlow | Pass


class OnLost(StrEnum):
    """What happens to a step whose worker vanished under it."""

    RETRY = "retry"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it does, where it goes on, and under which policies (already resolved)."""

    name: str
    action: Action
    edges: tuple[Edge, ...] = ()
    conditions: tuple[Condition, ...] = ()
    done: bool = False
    join_mode: JoinMode = JoinMode.ALL
    join_count: int = 0
    optional: bool = False
    retry: Retry = field(default_factory=Retry)
    timeout_s: float | None = None
    queue: str | None = None
    priority: int | None = None
    on_lost: OnLost = OnLost.RETRY
    description: str = ""

    def edge(self, label: Label) -> Edge | None:
        """Give the one edge with that label, where there can be but one."""
        return next((edge for edge in self.edges if edge.label is label), None)


class KeyScope(StrEnum):
    """Among which live runs a business key is unique."""

    FLOW = "flow"
    VERSION = "version"
    GLOBAL = "global"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Flow:
    """A whole flow. `ways_in` and `kept` are derived once, when it is read.

    `kept` names the steps whose results something may read later: the rest need not be remembered.
    `lenient` is the flat form, in which a missing `input.*` is empty text. `notify` names who is told of its
    gates and of the end of its runs, `author` who defined it.
    """

    name: str
    start: str
    steps: Mapping[str, Step]
    ways_in: Mapping[str, tuple[Edge, ...]]
    kept: frozenset[str]
    description: str = ""
    input_schema: Mapping[str, Json] | None = None
    key: Template | None = None
    key_scope: KeyScope = KeyScope.FLOW
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    output: Template | None = None
    lenient: bool = False
    notify: tuple[str, ...] = ()
    author: str = ""
