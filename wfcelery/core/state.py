"""What is true of a run: plain values, the same in memory and in the tables.

An `Attempt` is one row of `workflow_steps`, without its arguments and result. A `Run` is one row of
`workflows` with the attempts that can still matter, and the payloads that can still be read.
Times are seconds since 1970 in UTC, rounded to milliseconds. What every decision makes or copies several of
is a named tuple: it is made and copied with a change five times quicker than a dataclass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from wfcelery.core.values import Json

NO_ITEM = -1
"""The item of a step that is not inside a foreach; never NULL, or uniqueness protects nothing."""


DEAD = "dead"
"""What a step `took` when it sent dead tokens on every way out."""


KEPT = "kept:"
"""Stands before the way that a step will take if its run is retried: it ended after the run had failed."""


_EMPTY: Mapping[Any, Any] = MappingProxyType({})


class RunStatus(StrEnum):
    """The states of a run. Paused: waits for a person or a signal, or is held by an operator."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


LIVE = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})


class StepStatus(StrEnum):
    """The states of a step. Ready: must be on its way to a worker; running: known to be handed over."""

    PENDING = "pending"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


OPEN = frozenset({StepStatus.PENDING, StepStatus.READY, StepStatus.RUNNING})


class WaitsFor(StrEnum):
    """Why a pending step is pending."""

    JOIN = "join"
    APPROVAL = "approval"
    SIGNAL = "signal"
    TIME = "time"
    RETRY = "retry"
    ITEMS = "items"
    FLOW = "flow"
    REPORT = "report"
    PERSON = "person"


PEOPLE = frozenset({WaitsFor.APPROVAL, WaitsFor.SIGNAL, WaitsFor.PERSON})


@dataclass(frozen=True, slots=True)
class Error:
    """Why an attempt or a run failed, as the tables and JSON show it."""

    type: str
    message: str

    def as_json(self) -> dict[str, Json]:
        """Write it as the documented object."""
        return {"type": self.type, "message": self.message}


Key: TypeAlias = tuple[str, int]
"""A step within its run: its name and its item."""


class Attempt(NamedTuple):
    """One attempt at a step: the control columns of its row.

    `tries` counts the failures spent from the retry budget, `losses` those from that for vanished workers.
    `took` names the way out that was taken once its tokens have gone out (`Edge.choice`), or is `DEAD`;
    None as long as they have not: a step that ends after its run has failed keeps them (`KEPT` and the way,
    where the tool named it).
    """

    name: str
    item: int = NO_ITEM
    attempt: int = 1
    status: StepStatus = StepStatus.PENDING
    tool: str | None = None
    waits_for: WaitsFor | None = None
    missing: int = 0
    live: int = 0
    tries: int = 0
    losses: int = 0
    fence: int = 0
    escalated: bool = False
    took: str | None = None
    ready_at: float | None = None
    due_at: float | None = None
    sent_at: float | None = None
    started_at: float | None = None
    completed_at: float | None = None
    worker: str | None = None
    error: Error | None = None
    args_digest: str | None = None
    result_digest: str | None = None

    @property
    def key(self) -> Key:
        """Name the step within its run."""
        return self.name, self.item

    @property
    def is_open(self) -> bool:
        """Tell whether it can still change."""
        return self.status in OPEN


class StepRef(NamedTuple):
    """One handing-over of one attempt: what a report must name exactly."""

    run_id: str
    step: str
    item: int
    attempt: int
    fence: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """Arguments ready for a tool; `secrets` says which places of them are filled in by the worker."""

    args: Json
    secrets: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's word at a gate."""

    step: str
    attempt: int
    voter: str
    approve: bool
    comment: str = ""
    form: Json = None


@dataclass(frozen=True, slots=True)
class StoredSignal:
    """A signal that came before anybody waited for it."""

    id: str
    name: str
    key: str | None
    payload: Json


Collected: TypeAlias = "tuple[int, Json, Collected] | None"
"""The results of a foreach so far, newest first: adding one costs the same at any length."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A foreach under way: which items are yet to start, how many are out, what came back.

    `order` names the items in the order in which they start, `next` the place in it; `again` says from which
    attempt on an item counts that is repeated by an operator's retry. `came_in` is the result that came in,
    kept if the items read it. `closed`: an item has failed, and those not under way were cancelled.
    """

    items: Sequence[Json]
    order: Sequence[int]
    again: Mapping[int, int] = field(default_factory=dict)
    next: int = 0
    out: int = 0
    collected: Collected = None
    size: int = 0
    error: Error | None = None
    error_item: int = NO_ITEM
    came_in: Json = None
    closed: bool = False

    def with_result(self, item: int, value: Json, size: int) -> Loop:
        """Add an item's result, `size` characters long."""
        return replace(self, collected=(item, value, self.collected), size=self.size + size)

    def with_error(self, item: int, error: Error) -> Loop:
        """Add an item's failure; of several, that of the lowest item is told, in whatever order they came."""
        if self.error is not None and self.error_item <= item:
            return self
        told = Error(error.type, f"item {item} failed: {error.message}")
        return replace(self, error=told, error_item=item)


class Run(NamedTuple):
    """One run, as far as the next decision may need it.

    `attempts` holds the newest attempt of each step, and of each open item of a foreach.
    `fired` names the joins of any or n that have fired, `losers` the steps that nothing needs since.
    `open`, `active` and `people` count its open rows: all, those with a worker, those that wait for somebody.
    """

    id: str
    definition_id: str
    name: str
    input: Json
    created_by: str
    created_at: float
    status: RunStatus = RunStatus.RUNNING
    held: bool = False
    key: str | None = None
    key_space: str | None = None
    tags: tuple[str, ...] = ()
    parent: StepRef | None = None
    root_id: str = ""
    error: Error | None = None
    last_done: str | None = None
    output_digest: str | None = None
    seq: int = 0
    updated_at: float = 0.0
    completed_at: float | None = None
    cancelled_at: float | None = None
    attempts: Mapping[Key, Attempt] = _EMPTY
    prepared: Mapping[Key, Prepared] = _EMPTY
    results: Mapping[str, Json] = _EMPTY
    frozen: Mapping[str, Mapping[str, Prepared]] = _EMPTY
    loops: Mapping[str, Loop] = _EMPTY
    votes: tuple[Vote, ...] = ()
    signals: tuple[StoredSignal, ...] = ()
    fired: frozenset[str] = frozenset()
    losers: frozenset[str] = frozenset()
    open: int = 0
    active: int = 0
    people: int = 0

    @property
    def is_live(self) -> bool:
        """Tell whether anything may still start in it."""
        return self.status in LIVE
