"""A plain interpreter of flows, written from the rules and not from `decide`: slow, and obviously right.

It keeps a map from edge to token and looks at all ways in each time a token comes: no counters. Losers are
found by walking every path. Where a ticket (fence) is needed, it takes the engine's own: `handed` tells it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from wfcelery.core.effects import NoticeKind
from wfcelery.core.flow import (
    Call,
    Delay,
    Edge,
    Flow,
    Foreach,
    Gate,
    JoinMode,
    OnItemError,
    OnLost,
    OnTimeout,
    Pass,
    SubFlow,
    Until,
    Wait,
)
from wfcelery.core.ids import child_id
from wfcelery.core.messages import (
    Cancel,
    ChildEnded,
    Decide,
    EndStep,
    Hold,
    Kind,
    Principal,
    Resume,
    RetryRun,
    RunMessage,
    Signal,
    StepBegun,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReady,
    StepReturned,
    StepSent,
    StepUnsent,
    TimerDue,
)
from wfcelery.core.retry import wait_before
from wfcelery.core.state import NO_ITEM, Key, RunStatus, StepRef, StepStatus, WaitsFor
from wfcelery.errors import ExpressionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfcelery.core.expressions import Template
    from wfcelery.core.values import Json

PENDING, READY, RUNNING = StepStatus.PENDING, StepStatus.READY, StepStatus.RUNNING
DONE, FAILED, SKIPPED, CANCELLED = (
    StepStatus.DONE,
    StepStatus.FAILED,
    StepStatus.SKIPPED,
    StepStatus.CANCELLED,
)
LOSS_BUDGET = 3
Heard: TypeAlias = (
    StepSent | StepUnsent | StepDone | StepFailed | StepPostponed | StepBegun | StepReturned | StepLost
)
Granted: TypeAlias = Decide | Signal | Cancel | Hold | Resume | StepReady


@dataclass
class Row:
    """The newest attempt at a step, or at an item of it."""

    attempt: int = 1
    status: StepStatus = PENDING
    waits_for: WaitsFor | None = None
    due_at: float | None = None
    args: Json = None
    result: Json = None
    error: tuple[str, str] | None = None
    tries: int = 0
    losses: int = 0
    ref: StepRef | None = None
    escalated: bool = False
    votes: dict[str, tuple[bool, str]] = field(default_factory=dict)
    opened_at: float = 0.0
    began_with: Json = None
    child_begun: bool = False
    event: str | None = None
    counting: bool = False
    sent: bool = False
    begun: bool = False
    to_start: bool = False

    @property
    def is_open(self) -> bool:
        return self.status in (PENDING, READY, RUNNING)


@dataclass
class Loop:
    """A foreach under way."""

    items: list[Json]
    todo: list[int]
    results: dict[int, Json] = field(default_factory=dict)
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Handed:
    """One handing-over of work."""

    step: str
    item: int
    attempt: int
    args: Json
    again: bool


@dataclass(frozen=True)
class Told:
    """One thing that people are told of: which names, of which gate."""

    kind: NoticeKind
    to: tuple[str, ...]
    step: str | None = None
    attempt: int = 0


class Reference:
    """One run of one flow."""

    def __init__(
        self, flow: Flow, run_id: str, value: Json, by: str, now: float, *, at: float | None = None
    ) -> None:
        self.flow = flow
        self.run_id = run_id
        self.input = value
        self.by = by
        self.now = now
        self.status = RunStatus.RUNNING
        self.held = False
        self.error: str | None = None
        self.output: Json = None
        self.tokens: dict[Edge, tuple[bool, Json]] = {}
        self.queue: list[tuple[Edge, bool, Json]] = []
        self.rows: dict[Key, Row] = {}
        self.loops: dict[str, Loop] = {}
        self.signals: list[tuple[str, Json]] = []
        self.fired: set[str] = set()
        self.spoke: set[str] = set()
        self.dones: list[str] = []
        self.begun_joins: list[str] = []
        self.new_work: list[Handed] = []
        self.new_notices: list[Told] = []
        self.busy: list[str] = []
        self.new_children: list[tuple[str, int, int]] = []
        if at is None or at <= now:
            self.begin(flow.start, None)
        else:
            due_at = round(at, 3)
            self.rows[flow.start, NO_ITEM] = Row(waits_for=WaitsFor.TIME, due_at=due_at, to_start=True)
        self.settle()

    # -- what others see

    @property
    def is_live(self) -> bool:
        return self.status in (RunStatus.RUNNING, RunStatus.PAUSED)

    def handed(self, ref: StepRef) -> None:
        """Take note of the ticket under which the engine handed a step over, or began a sub-run."""
        row = self.rows.get((ref.step, ref.item))
        if row is not None and row.attempt == ref.attempt:
            row.ref = ref

    def send(self, message: RunMessage, now: float) -> None:
        """Let one thing happen."""
        self.now = now
        self.take(message)
        self.settle()

    def take(self, message: RunMessage) -> None:
        match message:
            case (
                StepSent()
                | StepUnsent()
                | StepDone()
                | StepFailed()
                | StepPostponed()
                | StepBegun()
                | StepReturned()
                | StepLost()
            ):
                row = self.rows.get((message.ref.step, message.ref.item))
                if row is not None and row.ref == message.ref and row.status in (READY, RUNNING):
                    self.hear(message, (message.ref.step, message.ref.item), row)
            case TimerDue():
                self.timer(message)
            case ChildEnded():
                self.child_ended(message)
            case EndStep():
                row = self.rows.get((message.step, message.item))
                if row is not None and row.waits_for is WaitsFor.REPORT and row.status is PENDING:
                    self.end_postponed(message)
            case RetryRun():
                self.reopen()
            case Decide() | Signal() | Cancel() | Hold() | Resume() | StepReady() if self.is_live:
                self.grant(message)

    def hear(self, report: Heard, key: Key, row: Row) -> None:
        """Take in what is said of a step by who has it, or of whether anybody has."""
        match report:
            case StepSent():
                row.status, row.sent = RUNNING, True
            case StepBegun():
                row.status, row.sent, row.begun = RUNNING, True, True
            case StepReturned():
                if not row.begun:
                    row.ref = None  # The copy that came back is gone: the next one has a ticket of its own.
                    self.hand_over_again(key, row)
            case StepLost(begun=False) if not row.begun:
                self.hand_over_again(key, row)
            case StepUnsent():
                if row.status is READY:
                    self.hand_over(key)
            case StepDone():
                self.end_well(key, report.result, report.event)
            case StepFailed():
                self.attempt_failed(key, report)
            case StepPostponed():
                self.postpone(key, row)
            case StepLost():
                self.lost(key, row, report.counted)

    def grant(self, request: Granted) -> None:
        match request:
            case Decide():
                row = self.rows.get((request.step, NO_ITEM))
                if row is None or request.attempt in (None, row.attempt):
                    self.vote(request.step, request.by, request.approve, request.comment)
            case Signal():
                self.signals.append((request.name, request.payload))
                self.match_signals()
            case Cancel():
                self.stop(RunStatus.CANCELLED, "cancelled")
            case Hold():
                self.held = True
            case Resume():
                if self.held:
                    self.held = False
                    for key in list(self.rows):
                        self.release(key)
                    self.ring_overdue()
            case StepReady():
                self.ready_now(request)

    def ring_overdue(self) -> None:
        """Timers that ran out while the run was held act when it is let go, one after the other."""
        timed = [
            (row.due_at, key, row.attempt) for key, row in self.rows.items() if row.is_open and row.due_at
        ]
        for _, (step, item), attempt in sorted(timed):
            self.send(TimerDue("", step, item, attempt), self.now)

    def reopen(self) -> None:
        """An operator's retry of a failed run: go on from what failed, with fresh budgets."""
        if self.status is not RunStatus.FAILED or any(row.is_open for row in self.rows.values()):
            return
        self.status, self.error = RunStatus.RUNNING, None
        kept, self.queue = self.queue, []
        silent = [name for name, item in self.rows if item == NO_ITEM and name not in self.spoke]
        counting = [name for name in silent if self.rows[name, NO_ITEM].counting]
        for edge, live, value in kept:
            if (edge.target, NO_ITEM) in self.rows:
                self.tokens[edge] = (live, value)
        for name in counting:
            row = self.rows[name, NO_ITEM]
            self.rows[name, NO_ITEM] = Row(attempt=row.attempt + 1, waits_for=WaitsFor.JOIN)
            self.look_at(name)
        for name in silent:
            if name in counting:
                continue
            if self.rows[name, NO_ITEM].status is DONE:
                self.speak_late(name)
            elif self.is_live:
                self.repeat(name)
        places = [name for name, item in self.rows if item == NO_ITEM]
        kept = [token for token in kept if token[0] not in self.tokens]
        self.queue += sorted(kept, key=lambda token: places.index(token[0].source))

    def speak_late(self, name: str) -> None:
        """Send the tokens of a step that ended well while its run was down."""
        row = self.rows[name, NO_ITEM]
        choice = "dead" if name in self.losers() else self.choice(name, row.result, row.event)
        if choice is None:
            self.stop(RunStatus.FAILED, "stuck")
            return
        if self.flow.steps[name].done and choice != "dead":
            self.dones.append(name)
        self.send_by(name, choice, row.result)

    def repeat(self, name: str) -> None:
        old, action = self.rows[name, NO_ITEM], self.flow.steps[name].action
        new = self.rows[name, NO_ITEM] = Row(
            attempt=old.attempt + 1, args=old.args, began_with=old.began_with
        )
        if name in self.losers():
            new.status = CANCELLED
            self.send_dead(name)
        elif isinstance(action, Foreach):
            loop = self.loops[name]
            new.waits_for = WaitsFor.ITEMS
            loop.errors = {}
            done = {item for (n, item), row in self.rows.items() if n == name and row.status is DONE}
            loop.todo = [item for item in range(len(loop.items)) if item not in done]
            self.busy.append(name)
        elif isinstance(action, Call) and old.args is not None:
            self.go_again((name, NO_ITEM), new)
        else:
            if self.flow.steps[name].join_mode is not JoinMode.ALL and len(self.flow.ways_in[name]) > 1:
                self.drop_losers()  # A join among them may have begun to count after it was lost.
            self.begin(name, self.came_in(name), new)

    def came_in(self, name: str) -> Json:
        """Give the result that a step sees now: at a join, of all that has come."""
        ways = self.flow.ways_in[name]
        live = [
            (edge.source, self.tokens[edge][1])
            for edge in ways
            if edge in self.tokens and self.tokens[edge][0]
        ]
        if len(ways) > 1:
            return dict(live)
        return live[0][1] if live else None

    # -- tokens

    def settle(self) -> None:
        """Deliver tokens in the order in which they were sent, then look whether the run has ended."""
        while self.is_live and (self.queue or self.busy):
            if not self.queue:
                self.open_items(self.busy.pop(0))
                continue
            edge, live, value = self.queue.pop(0)
            assert edge not in self.tokens, f"two tokens on {edge}"
            self.tokens[edge] = (live, value)
            self.look_at(edge.target)
        self.busy.clear()
        self.new_notices = [told for told in self.new_notices if not self.is_pointless(told)]
        self.new_work = [work for work in self.new_work if self.rows[work.step, work.item].status is READY]
        if not self.is_live:
            return
        rows = [row for row in self.rows.values() if row.is_open]
        if not rows:
            self.finish()
            return
        active = any(row.status in (READY, RUNNING) for row in rows)
        people = (WaitsFor.APPROVAL, WaitsFor.SIGNAL, WaitsFor.PERSON)
        waits = any(row.waits_for in people for row in rows)
        self.status = RunStatus.PAUSED if self.held or (waits and not active) else RunStatus.RUNNING

    def finish(self) -> None:
        if not self.dones:
            self.status = RunStatus.FAILED
            self.error = "stuck"
            self.tell(NoticeKind.RUN_FAILED, [self.by, *self.flow.notify])
            return
        self.status = RunStatus.COMPLETED
        self.tell(NoticeKind.RUN_FINISHED, self.flow.notify)
        if self.flow.output is None:
            self.output = self.rows[self.dones[-1], NO_ITEM].result
        else:
            self.output = self.flow.output.render(self.scope(None)).value

    def look_at(self, name: str) -> None:
        """Begin, skip or let wait a step, judged by all its ways in."""
        row = self.rows.get((name, NO_ITEM))
        if row is not None and row.waits_for is not WaitsFor.JOIN:
            return
        step = self.flow.steps[name]
        ways = self.flow.ways_in[name]
        came = [(edge, *self.tokens[edge]) for edge in ways if edge in self.tokens]
        live = [(edge, value) for edge, is_live, value in came if is_live]
        missing = len(ways) - len(came)
        if len(ways) == 1 or step.join_mode is JoinMode.ALL:
            fires, hopeless = missing == 0 and len(live) > 0, missing == 0 and not live
        else:
            needed = 1 if step.join_mode is JoinMode.ANY else step.join_count
            fires, hopeless = len(live) >= needed, len(live) + missing < needed
        number = 1 if row is None else row.attempt
        if fires and name in self.losers():
            self.rows[name, NO_ITEM] = Row(number, status=CANCELLED)
            self.send_dead(name)
        elif hopeless:
            self.rows[name, NO_ITEM] = Row(number, status=SKIPPED)
            self.send_dead(name)
        elif fires:
            if len(ways) > 1:
                self.begun_joins.append(name)
                if step.join_mode is not JoinMode.ALL:
                    self.fired.add(name)
                    self.drop_losers()
            value = live[0][1] if len(ways) == 1 else {edge.source: value for edge, value in live}
            self.begin(name, value)
        else:
            self.rows[name, NO_ITEM] = Row(number, waits_for=WaitsFor.JOIN)

    def send_dead(self, name: str) -> None:
        self.spoke.add(name)
        for edge in self.flow.steps[name].edges:
            self.queue.append((edge, False, None))

    def send_by(self, name: str, choice: str, value: Json) -> None:
        self.spoke.add(name)
        for edge in self.flow.steps[name].edges:
            self.queue.append((edge, edge.choice == choice, value if edge.choice == choice else None))

    # -- losers

    def losers(self) -> set[str]:
        """Every step all of whose paths come to a join of any or n that has fired."""
        if not self.fired:
            return set()
        return {name for name in self.flow.steps if all(self.fired.intersection(p) for p in self.paths(name))}

    def paths(self, name: str) -> list[list[str]]:
        """All paths from a step to an end of the flow, without the step itself."""
        step = self.flow.steps[name]
        found: list[list[str]] = [[]] if step.done or not step.edges else []
        for edge in step.edges:
            found += [[edge.target, *rest] for rest in self.paths(edge.target)]
        return found

    def drop_losers(self) -> None:
        losers = self.losers()
        for name in [name for name, item in self.rows if item == NO_ITEM and name in losers]:
            self.drop(name)

    def drop(self, name: str) -> None:
        """Cancel what has not been handed over; what runs goes on and will be written down."""
        self.drop_items(name)
        row = self.rows.get((name, NO_ITEM))
        if row is not None and row.is_open and row.status is not RUNNING:
            row.counting = row.waits_for is WaitsFor.JOIN
            row.status, row.waits_for, row.due_at = CANCELLED, None, None
            if self.is_live:
                self.send_dead(name)

    # -- beginning

    def begin(self, name: str, value: Json, again: Row | None = None) -> None:
        step = self.flow.steps[name]
        known = self.rows.get((name, NO_ITEM))
        row = self.rows[name, NO_ITEM] = again or Row(attempt=1 if known is None else known.attempt)
        row.began_with = value
        match step.action:
            case Call(args=args):
                self.begin_tool((name, NO_ITEM), args, self.scope(value))
            case Gate() as gate:
                self.open_gate(name, row, gate, NoticeKind.GATE_OPENED, gate.approvers)
            case Wait(timeout_s=timeout_s):
                self.wait(row, WaitsFor.SIGNAL, timeout_s)
                self.match_signals()
            case Delay(seconds=seconds):
                self.wait_for_time(row, name, self.now + self.seconds(seconds, value))
            case Until(moment=moment):
                when = datetime.fromisoformat(str(self.render(moment, value)))
                self.wait_for_time(row, name, when.timestamp())
            case Foreach(items=items):
                row.waits_for = WaitsFor.ITEMS
                elements = self.render(items, value)
                assert isinstance(elements, list)
                self.loops[name] = Loop(elements, list(range(len(elements))))
                self.busy.append(name)
            case SubFlow() as body:
                self.begin_child((name, NO_ITEM), body)
            case Pass():
                self.end_well((name, NO_ITEM), value, None)

    def begin_tool(self, key: Key, args: Template, scope: dict[str, Json]) -> None:
        row = self.rows[key]
        try:
            row.args = args.render(scope).value
        except ExpressionError:
            self.failed_for_good(key, ("bad-template", ""))
            return
        row.status = READY
        self.hand_over(key)

    def begin_child(self, key: Key, body: SubFlow) -> None:
        row = self.rows[key]
        if self.held:
            self.wait(row, WaitsFor.FLOW, None)
            return
        self.wait(row, WaitsFor.FLOW, self.flow.steps[key[0]].timeout_s)
        row.child_begun = True
        self.new_children.append((*key, row.attempt))
        if not body.wait:
            self.end_well(key, {"run_id": child_id(self.run_id, *key, row.attempt)}, None)

    def hand_over(self, key: Key) -> None:
        row = self.rows[key]
        if not self.held:
            must_tell = row.sent or row.losses > 0 or self.flow.steps[key[0]].on_lost is OnLost.HOLD
            self.new_work.append(Handed(*key, row.attempt, row.args, must_tell))

    def hand_over_again(self, key: Key, row: Row) -> None:
        """Nobody has begun it: the same attempt goes out once more, if that is of use to anybody."""
        if self.may_go_on(key):
            row.status, row.sent = READY, True
            self.hand_over(key)
        else:
            self.give_up(key, row)

    def release(self, key: Key) -> None:
        """Send what was kept back while the run was held."""
        row, action = self.rows[key], self.flow.steps[key[0]].action
        body = action.body if isinstance(action, Foreach) else action
        if row.status is READY:
            self.hand_over(key)
        elif row.status is PENDING and row.waits_for is WaitsFor.FLOW and not row.child_begun:
            assert isinstance(body, SubFlow)
            self.begin_child(key, body)

    def wait_for_time(self, row: Row, name: str, due_at: float) -> None:
        row.waits_for, row.due_at = WaitsFor.TIME, round(due_at, 3)
        if due_at <= self.now:
            self.end_well((name, NO_ITEM), row.began_with, None)

    def wait(self, row: Row, what: WaitsFor, seconds: float | None) -> None:
        row.status, row.waits_for = PENDING, what
        row.due_at = None if seconds is None else round(self.now + seconds, 3)

    def scope(self, value: Json, item: Json = None, index: int | None = None) -> dict[str, Json]:
        steps: dict[str, Json] = {}
        for (name, number), row in self.rows.items():
            if number == NO_ITEM:
                seen: dict[str, Json] = {"status": row.status.value}
                if row.status is DONE:
                    seen["result"] = row.result
                steps[name] = seen
        scope: dict[str, Json] = {"input": self.input, "result": value, "steps": steps}
        if index is not None:
            scope |= {"item": item, "index": index}
        return scope

    def seconds(self, template: Template, value: Json) -> float:
        seconds = self.render(template, value)
        assert isinstance(seconds, (int, float))
        return float(seconds)

    def render(self, template: Template, value: Json) -> Json:
        return template.render(self.scope(value)).value

    # -- items

    def open_items(self, name: str) -> None:
        loop, action = self.loops[name], self.flow.steps[name].action
        assert isinstance(action, Foreach)
        if not self.rows[name, NO_ITEM].is_open:
            return
        if loop.errors:
            self.drop_items(name, let_end=True)
        while loop.todo and not loop.errors and self.items_out(name) < action.concurrency:
            item = loop.todo.pop(0)
            earlier = self.rows.get((name, item))
            self.rows[name, item] = Row(attempt=1 if earlier is None else earlier.attempt + 1)
            if isinstance(action.body, Call):
                value = self.rows[name, NO_ITEM].began_with
                self.begin_tool((name, item), action.body.args, self.scope(value, loop.items[item], item))
            else:
                self.begin_child((name, item), action.body)
        if self.items_out(name):
            return
        if loop.errors:
            number = min(loop.errors)
            kind, message = loop.errors[number]
            self.failed_for_good((name, NO_ITEM), (kind, f"item {number} failed: {message}"))
        elif not loop.todo:
            self.end_well((name, NO_ITEM), [loop.results[i] for i in range(len(loop.items))], None)

    def drop_items(self, name: str, *, let_end: bool = False) -> None:
        """Cancel the items that no worker has; `let_end` spares those with a sub-run or a report to come."""
        for (other, item), row in self.rows.items():
            begun = let_end and (row.child_begun or row.waits_for is WaitsFor.REPORT)
            if other == name and item != NO_ITEM and row.is_open and row.status is not RUNNING and not begun:
                row.status, row.waits_for, row.due_at = CANCELLED, None, None

    def items_out(self, name: str) -> int:
        return sum(row.is_open for (n, i), row in self.rows.items() if n == name and i != NO_ITEM)

    def item_ended(self, key: Key) -> None:
        name, item = key
        row, loop, action = self.rows[key], self.loops[name], self.flow.steps[name].action
        assert isinstance(action, Foreach)
        if row.status is DONE:
            loop.results[item] = row.result
        elif row.error is not None and action.on_item_error is OnItemError.COLLECT:
            loop.results[item] = {"error": {"type": row.error[0], "message": row.error[1]}}
        elif row.error is not None:
            loop.errors[item] = row.error
        if self.rows[name, NO_ITEM].is_open and self.is_live:
            self.busy.append(name)

    # -- ending

    def end_well(self, key: Key, result: Json, event: str | None) -> None:
        name, item = key
        step, row = self.flow.steps[name], self.rows[key]
        choice = None if item != NO_ITEM or name in self.losers() else self.choice(name, result, event)
        row.event = event
        if choice == "unknown-event":
            self.failed_for_good(key, ("unknown-event", ""))
            return
        row.status, row.result, row.waits_for, row.due_at = DONE, result, None, None
        if item != NO_ITEM:
            self.item_ended(key)
        elif not self.is_live:
            return
        elif name in self.losers():
            self.send_dead(name)
        elif choice is None:
            self.stop(RunStatus.FAILED, "stuck")
        else:
            if step.done:
                self.dones.append(name)
            self.send_by(name, choice, result)

    def choice(self, name: str, result: Json, event: str | None) -> str | None:
        """Name the way out, or None where no branch holds."""
        step = self.flow.steps[name]
        labels = {edge.label.value for edge in step.edges}
        if "on" in labels:
            return f"on:{event}" if f"on:{event}" in {edge.choice for edge in step.edges} else "unknown-event"
        if not labels & {"if", "else"}:
            return "next"
        arms = [edge for edge in step.edges if edge.label.value == "if"]
        for edge, condition in zip(arms, step.conditions, strict=True):
            if condition.holds(self.scope(result)):
                return edge.choice
        return "else" if "else" in labels else None

    def failed_for_good(self, key: Key, error: tuple[str, str]) -> None:
        name, item = key
        row = self.rows[key]
        row.status, row.error, row.waits_for, row.due_at = FAILED, error, None, None
        if item != NO_ITEM:
            self.item_ended(key)
            return
        step = self.flow.steps[name]
        if not self.is_live:
            return
        if name in self.losers():
            self.send_dead(name)
        elif any(edge.label.value == "error" for edge in step.edges):
            self.send_by(name, "error", {"error": {"type": error[0], "message": error[1]}})
        elif step.optional:
            self.send_dead(name)
        else:
            self.stop(RunStatus.FAILED, error[0])

    def stop(self, status: RunStatus, error: str | None = None) -> None:
        """End the run: cancel what has not started; what runs may finish."""
        self.status = status
        self.error = error
        for name in self.flow.steps:
            self.drop(name)
        if status is RunStatus.FAILED:
            self.tell(NoticeKind.RUN_FAILED, [self.by, *self.flow.notify])

    # -- reports

    def attempt_failed(self, key: Key, message: StepFailed) -> None:
        error = (message.error.type, message.error.message)
        never = set(self.flow.steps[key[0]].retry.no_retry_on) & {*message.ancestors}
        self.retry_or_fail(key, error, hopeless=not message.retry or bool(never), after=message.retry_after)

    def retry_or_fail(
        self, key: Key, error: tuple[str, str], *, hopeless: bool = False, after: float | None = None
    ) -> None:
        row, policy = self.rows[key], self.flow.steps[key[0]].retry
        tries = row.tries + 1
        if hopeless or tries >= policy.max_attempts or not self.may_go_on(key):
            self.failed_for_good(key, error)
            return
        wait = wait_before(policy, tries, "") if after is None else after
        again = self.again(key, tries=tries)
        if wait > 0:
            self.wait(again, WaitsFor.RETRY, wait)
        else:
            self.go_again(key, again)

    def again(self, key: Key, *, tries: int, losses: int | None = None) -> Row:
        old = self.rows[key]
        new = Row(
            attempt=old.attempt + 1,
            args=old.args,
            tries=tries,
            losses=old.losses if losses is None else losses,
            began_with=old.began_with,
        )
        self.rows[key] = new
        return new

    def may_go_on(self, key: Key) -> bool:
        """Tell whether another attempt would be of use to anybody."""
        if not self.is_live or key[0] in self.losers():
            return False
        return key[1] == NO_ITEM or not self.loops[key[0]].errors

    def postpone(self, key: Key, row: Row) -> None:
        if self.may_go_on(key):
            self.wait(row, WaitsFor.REPORT, self.flow.steps[key[0]].timeout_s)
        else:
            self.give_up(key, row)

    def give_up(self, key: Key, row: Row) -> None:
        """Cancel what a worker has handed back and nobody needs."""
        row.status = CANCELLED
        if key[1] != NO_ITEM:
            self.item_ended(key)
        elif self.is_live:
            self.send_dead(key[0])

    def end_postponed(self, message: EndStep) -> None:
        key = message.step, message.item
        if message.error is None:
            self.end_well(key, message.result, message.event)
        else:
            self.retry_or_fail(key, (message.error.type, message.error.message))

    def lost(self, key: Key, row: Row, counted: bool) -> None:
        if not self.may_go_on(key):
            self.failed_for_good(key, ("lost", ""))
        elif self.flow.steps[key[0]].on_lost is OnLost.HOLD:
            new = self.again(key, tries=row.tries, losses=row.losses + counted)
            self.wait(new, WaitsFor.PERSON, None)
        elif row.losses + counted > LOSS_BUDGET:
            self.failed_for_good(key, ("lost", ""))
        else:
            self.go_again(key, self.again(key, tries=row.tries, losses=row.losses + counted))

    def child_ended(self, message: ChildEnded) -> None:
        ref = message.parent
        row = self.rows.get((ref.step, ref.item))
        if row is None or row.ref != ref or row.status is not PENDING or row.waits_for is not WaitsFor.FLOW:
            return
        key = ref.step, ref.item
        if message.status is RunStatus.COMPLETED:
            self.end_well(key, message.output, None)
        else:
            failed = message.status is RunStatus.FAILED
            kind = "sub-run-failed" if failed else "sub-run-cancelled"
            self.retry_or_fail(key, (kind, ""), hopeless=not failed)

    # -- people and clocks

    def timer(self, message: TimerDue) -> None:
        key = message.step, message.item
        row = self.rows.get(key)
        if row is None or row.attempt != message.attempt or row.status is not PENDING or row.due_at is None:
            return
        if self.held or not self.is_live or self.now < row.due_at:
            return
        match row.waits_for:
            case WaitsFor.TIME if row.to_start:
                self.begin(message.step, None)
            case WaitsFor.TIME:
                self.end_well(key, row.began_with, None)
            case WaitsFor.RETRY:
                self.go_again(key, row)
            case WaitsFor.APPROVAL:
                self.gate_rings(message.step, row)
            case WaitsFor.SIGNAL:
                if any(edge.label.value == "timeout" for edge in self.flow.steps[message.step].edges):
                    self.end_by(message.step, "timeout", None)
                else:
                    self.failed_for_good(key, ("timeout", ""))
            case WaitsFor.REPORT | WaitsFor.FLOW:
                self.retry_or_fail(key, ("timeout", ""))

    def go_again(self, key: Key, row: Row) -> None:
        row.waits_for, row.due_at = None, None
        action = self.flow.steps[key[0]].action
        body = action.body if isinstance(action, Foreach) else action
        if isinstance(body, SubFlow):
            self.begin_child(key, body)
        else:
            row.status = READY
            self.hand_over(key)

    def gate(self, name: str) -> Gate:
        action = self.flow.steps[name].action
        assert isinstance(action, Gate)
        return action

    def open_gate(self, name: str, row: Row, gate: Gate, kind: NoticeKind, asked: tuple[str, ...]) -> None:
        row.status, row.waits_for, row.opened_at = PENDING, WaitsFor.APPROVAL, self.now
        row.due_at = self.gate_due(row, gate)
        self.tell(kind, [*asked, *(gate.notify or self.flow.notify)], name)

    def gate_due(self, row: Row, gate: Gate) -> float | None:
        """Look at every reminder from the first on, until one lies ahead; none comes after the deadline."""
        moments = [] if gate.timeout_s is None else [round(row.opened_at + gate.timeout_s, 3)]
        if gate.remind_every_s is not None:
            count = 1
            while round(row.opened_at + count * gate.remind_every_s, 3) <= self.now:
                count += 1
            moments.append(round(row.opened_at + count * gate.remind_every_s, 3))
        return min(moments, default=None)

    def gate_rings(self, name: str, row: Row) -> None:
        gate = self.gate(name)
        if gate.timeout_s is not None and self.now >= round(row.opened_at + gate.timeout_s, 3):
            self.gate_timeout(name, row, gate)
            return
        row.due_at = self.gate_due(row, gate)
        asked = [*gate.approvers, *(gate.escalate_to if row.escalated else ())]
        if not gate.approvers:
            asked += gate.notify or self.flow.notify
        self.tell(NoticeKind.GATE_REMINDER, [who for who in asked if who not in row.votes], name)

    def gate_timeout(self, name: str, row: Row, gate: Gate) -> None:
        if gate.on_timeout is OnTimeout.APPROVE:
            self.approve(name, row, ["timeout"], "")
        elif gate.on_timeout is OnTimeout.ESCALATE and not row.escalated:
            row.escalated = True
            self.open_gate(name, row, gate, NoticeKind.GATE_ESCALATED, gate.escalate_to)
        else:
            self.deny(name, row, "timeout", "nobody decided in time")

    def approve(self, name: str, row: Row, by: list[str], comment: str) -> None:
        self.tell_decided(name)
        result = self.verdict(name, row, True, by, comment)
        self.end_well((name, NO_ITEM), row.began_with if self.gate(name).pass_result else result, None)

    def verdict(self, name: str, row: Row, approved: bool, by: list[str], comment: str) -> Json:
        result: dict[str, Json] = {"approved": approved, "by": list(by), "comment": comment, "form": None}
        if self.gate(name).quorum > 1:
            result["votes"] = [
                {"by": who, "approved": yes, "comment": said, "form": None}
                for who, (yes, said) in row.votes.items()
            ]
        return result

    def tell_decided(self, name: str) -> None:
        self.tell(NoticeKind.GATE_DECIDED, [self.by, *(self.gate(name).notify or self.flow.notify)], name)

    def tell(self, kind: NoticeKind, to: Iterable[str], name: str | None = None) -> None:
        attempt = 0 if name is None else self.rows[name, NO_ITEM].attempt
        self.new_notices.append(Told(kind, tuple(dict.fromkeys(to)), name, attempt))

    def is_pointless(self, told: Told) -> bool:
        """Tell whether somebody would be asked to decide what is decided, or nobody's business, already."""
        if told.step is None or told.kind is NoticeKind.GATE_DECIDED:
            return False
        return not self.rows[told.step, NO_ITEM].is_open

    def deny(self, name: str, row: Row, by: str, comment: str) -> None:
        self.tell_decided(name)
        if any(edge.label.value == "deny" for edge in self.flow.steps[name].edges):
            self.end_by(name, "deny", self.verdict(name, row, False, [by], comment))
        else:
            row.status, row.waits_for, row.due_at, row.error = FAILED, None, None, ("denied", "")
            self.stop(RunStatus.CANCELLED, "denied")

    def end_by(self, name: str, way: str, result: Json) -> None:
        """End a step well, but by another way than its usual one."""
        row = self.rows[name, NO_ITEM]
        row.status, row.result, row.waits_for, row.due_at = DONE, result, None, None
        self.send_by(name, way, result)

    def vote(self, name: str, by: Principal, approve: bool, comment: str) -> None:
        row = self.rows.get((name, NO_ITEM))
        if (
            not self.is_live
            or row is None
            or row.waits_for is not WaitsFor.APPROVAL
            or row.status is not PENDING
        ):
            return
        gate = self.gate(name)
        if not self.may_decide(gate, row, by) or (gate.require_comment and not comment) or by.id in row.votes:
            return
        row.votes[by.id] = (approve, comment)
        if not approve:
            self.deny(name, row, by.id, comment)
        elif len(row.votes) >= gate.quorum:
            self.approve(name, row, list(row.votes), comment)

    def may_decide(self, gate: Gate, row: Row, by: Principal) -> bool:
        if by.kind is not Kind.PERSON:
            return False
        if by.id in (self.by, self.flow.author) and not gate.allow_self and not by.at_terminal:
            return False
        named = {*gate.approvers, *(gate.escalate_to if row.escalated else ())}
        return not gate.approvers or bool(named & {by.id, *(f"group:{group}" for group in by.groups)})

    def match_signals(self) -> None:
        """Give each stored signal, oldest first, to the first step that waits for it."""
        for name, payload in list(self.signals):
            for (step, item), row in self.rows.items():
                action = self.flow.steps[step].action
                waits = row.status is PENDING and row.waits_for is WaitsFor.SIGNAL
                if waits and isinstance(action, Wait) and action.signal == name:
                    self.signals.remove((name, payload))
                    self.end_well((step, item), payload, None)
                    break

    def ready_now(self, message: StepReady) -> None:
        key = message.step, message.item
        row = self.rows.get(key)
        if row is None or row.status is not PENDING or not self.is_live:
            return
        match row.waits_for:
            case WaitsFor.APPROVAL:
                self.vote(message.step, message.by, approve=True, comment="")
            case WaitsFor.SIGNAL:
                self.end_well(key, None, None)
            case WaitsFor.TIME if row.to_start:
                self.begin(message.step, None)
            case WaitsFor.TIME:
                self.end_well(key, row.began_with, None)
            case WaitsFor.RETRY | WaitsFor.PERSON:
                self.go_again(key, row)
