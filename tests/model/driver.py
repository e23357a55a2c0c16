"""Engines that the model tests can drive: what they promise, and the one that is the pure core alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tests.model.flows_strategy import Document, compiled
from wfcelery.core import decide as rules
from wfcelery.core import fold
from wfcelery.core.effects import CastVote, Dispatch, KeepSignal, Notify, StartChild, UseSignal
from wfcelery.core.ids import run_id
from wfcelery.core.messages import NewRun, Principal, RetryRun, RunMessage
from wfcelery.core.rebuild import Row, rebuild
from wfcelery.core.state import (
    NO_ITEM,
    Attempt,
    Key,
    Prepared,
    Run,
    RunStatus,
    StepRef,
    StepStatus,
    StoredSignal,
    Vote,
    WaitsFor,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfcelery.core.decide import Decision
    from wfcelery.core.flow import Flow
    from wfcelery.core.values import Json

START = 1_700_000_000.0
RUN_ID = run_id(START, b"modelmodel")


@dataclass(frozen=True, slots=True)
class StepSeen:
    """What is to be seen of a step or item: its newest attempt."""

    attempt: int
    status: StepStatus
    waits_for: WaitsFor | None
    due_at: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """One handing-over of work to a worker, under its ticket."""

    ref: StepRef
    args: Json
    again: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What is to be seen of a run; `notices` only where the engine keeps them."""

    status: RunStatus
    held: bool
    error: str | None
    output: Json
    steps: dict[Key, StepSeen]
    work: tuple[Work, ...]
    children: tuple[StepRef, ...]
    notices: tuple[Notify, ...] | None = None


class Engine(Protocol):
    """One run of one flow, driven by messages.

    `passes_on`: before `send` returns, the engine itself lets due timers act and marks what it hands out as
    sent. Where it does not, `TimerDue` and `StepSent` are messages like any other, and may come late.
    """

    passes_on: bool
    begins_at: float
    run_id: str
    author: str

    def start(
        self, document: Document, value: Json, by: Principal, now: float, at: float | None = None
    ) -> None:
        """Begin the run, now or `at` a later time."""

    def send(self, message: RunMessage, now: float) -> None:
        """Let one thing happen."""

    def observe(self) -> Seen:
        """Tell how the run stands; `work` and `children` are all that was ever handed out, in order."""

    def restart(self) -> None:
        """Forget everything that is not in the tables."""


class CoreEngine:
    """The pure core with tables that are a dict: each restart reads the run back from its rows."""

    passes_on = False
    begins_at = START
    run_id = RUN_ID
    author = "cay"
    run: Run
    flow: Flow

    def __init__(self) -> None:
        self.work: list[Work] = []
        self.children: list[StepRef] = []
        self.notices: list[Notify] = []
        self.rows: dict[tuple[Key, int], Row] = {}
        self.votes: list[Vote] = []
        self.signals: list[StoredSignal] = []
        self.output: Json = None
        self.transitions: set[tuple[str | None, int, int, str]] = set()
        self.folded = fold.empty()
        self.decisions = 0
        self.seen: dict[Key, StepSeen] = {}

    def start(
        self, document: Document, value: Json, by: Principal, now: float, at: float | None = None
    ) -> None:
        self.flow = flow = replace(compiled(document), author=self.author)
        new = NewRun(run_id=RUN_ID, definition_id="d1", version=1, input=value, by=by, at=at)
        self._keep(rules.start(flow, new, now))

    def send(self, message: RunMessage, now: float) -> None:
        if isinstance(message, RetryRun):
            self.restart()  # To reopen a run the executor reads all of it.
        self._keep(rules.decide(self.flow, self.run, message, now))

    def send_in_turn(self, messages: Sequence[RunMessage], now: float) -> None:
        """Let several things happen that nobody waits for an answer to."""
        self._keep(rules.decide_in_turn(self.flow, self.run, messages, now))

    def observe(self) -> Seen:
        return Seen(
            status=self.run.status,
            held=self.run.held,
            error=None if self.run.error is None else self.run.error.type,
            output=self.output,
            steps=dict(self.seen),
            work=tuple(self.work),
            children=tuple(self.children),
            notices=tuple(self.notices),
        )

    def restart(self) -> None:
        before = self.run
        bare = before._replace(
            attempts={},
            prepared={},
            results={},
            frozen={},
            loops={},
            votes=(),
            signals=(),
            fired=frozenset(),
            losers=frozenset(),
            open=0,
            active=0,
            people=0,
        )
        self.run = rebuild(self.flow, bare, self.rows.values(), tuple(self.votes), tuple(self.signals))
        assert_same_run(before, self.run, self.flow)

    def _keep(self, decision: Decision) -> None:
        """Do what the executor does with a decision: write the rows, note the events, hand out the work."""
        self.decisions += 1
        seq = self.run.seq if self.decisions > 1 else 0
        for event in decision.events:
            seq += 1
            assert event.seq == seq, f"event {event.seq} where {seq} was due"
            self.folded.take(event)
            if event.transition:
                name = (event.step, event.item, event.attempt, event.type)
                assert name not in self.transitions, f"{name} happened twice"
                self.transitions.add(name)
        assert decision.run.seq == seq
        self.run = decision.run
        for write in decision.writes:
            self._write(write.before, write.after, write.args, write.secrets, write.result)
            place = (write.after.name, write.after.item, write.after.attempt)
            assert self.folded.attempts[place] == fold.told_of_attempt(write.after)
        if decision.output is not None:
            self.output = json.loads(decision.output)
        for effect in decision.effects:
            match effect:
                case Dispatch(ref=ref, prepared=prepared, again=again):
                    self.work.append(Work(ref, prepared.args, again))
                case StartChild(parent=parent):
                    self.children.append(parent)
                case Notify():
                    self.notices.append(effect)
                case CastVote():
                    self.votes.append(
                        Vote(
                            effect.step,
                            effect.attempt,
                            effect.voter,
                            effect.approve,
                            effect.comment,
                            effect.form,
                        )
                    )
                case KeepSignal():
                    self.signals.append(
                        StoredSignal(effect.signal_id, effect.name, effect.key, effect.payload)
                    )
                case UseSignal(signal_id=used):
                    self.signals = [signal for signal in self.signals if signal.id != used]
                case _:
                    pass

    def _write(
        self,
        before: Attempt | None,
        after: Attempt,
        args: str | None,
        secrets: str | None,
        result: str | None,
    ) -> None:
        name = after.key, after.attempt
        old = self.rows.get(name)
        assert (None if old is None else old.attempt) == before, (
            f"{name}: the write expected {before}, found {old}"
        )
        row = Row(after) if old is None else replace(old, attempt=after)
        if args is not None:
            places = json.loads(secrets) if secrets is not None else {}
            row = replace(row, prepared=Prepared(json.loads(args), places))
        if result is not None:
            row = replace(row, result=json.loads(result))
        self.rows[name] = row
        known = self.seen.get(after.key)
        if known is None or known.attempt <= after.attempt:
            waits = (after.waits_for, after.due_at) if after.is_open else (None, None)
            self.seen[after.key] = StepSeen(after.attempt, after.status, *waits)


def assert_same_run(before: Run, after: Run, flow: Flow) -> None:
    """A run read back from its rows must be the run that wrote them, in all that a decision may read."""
    assert after.attempts == before.attempts
    assert (after.open, after.active, after.people) == (before.open, before.active, before.people)
    assert after.fired == before.fired
    assert after.losers == before.losers
    assert after.signals == before.signals
    for key, attempt in before.attempts.items():
        if attempt.is_open:
            assert after.prepared.get(key) == before.prepared.get(key), key
            if key[1] == NO_ITEM:
                assert after.frozen.get(key[0], {}) == before.frozen.get(key[0], {}), key
    gates = {(name, attempt.attempt) for (name, _), attempt in before.attempts.items() if attempt.is_open}
    assert [v for v in after.votes if (v.step, v.attempt) in gates] == [
        v for v in before.votes if (v.step, v.attempt) in gates
    ]
    for name in flow.kept:
        assert after.results.get(name) == before.results.get(name), name
        assert (name in after.results) == (name in before.results), name
    if before.is_live:
        assert after.loops.keys() == before.loops.keys()
        for name, loop in before.loops.items():
            again = after.loops[name]
            assert list(again.items) == list(loop.items)
            assert list(again.order)[again.next :] == list(loop.order)[loop.next :]
            assert (again.again, again.out, again.error) == (loop.again, loop.out, loop.error)
            assert again.came_in == loop.came_in
            assert sorted_results(again.collected) == sorted_results(loop.collected)


def sorted_results(collected: object) -> list[tuple[int, str]]:
    """Unroll the results of a loop, in the order of its items."""
    found = []
    while collected is not None:
        assert isinstance(collected, tuple)
        item, value, collected = collected
        found.append((item, json.dumps(value, sort_keys=True)))
    return sorted(found)
