"""Histories for the store's tests: flows decided by the core, one transaction for each call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wfcelery.core import decide as core
from wfcelery.core import ids
from wfcelery.core.document import compile_flow
from wfcelery.core.effects import CastVote, KeepSignal, UseSignal
from wfcelery.core.messages import Decide, NewRun, Principal, StepDone, StepFailed, StepSent
from wfcelery.core.state import NO_ITEM, Error, StepRef
from wfcelery.core.values import canonical
from wfcelery.store import changes, check, definitions, signals, votes

if TYPE_CHECKING:
    from wfcelery.core.effects import Effect
    from wfcelery.core.flow import Flow
    from wfcelery.core.messages import RunMessage
    from wfcelery.core.state import Run
    from wfcelery.core.values import Json
    from wfcelery.store import Connection, Database

ANN = Principal("ann")
BOB = Principal("bob")
NOW = 1_700_000_000.123

CHAIN: Json = {
    "start": "a",
    "steps": {
        "a": {"tool": "echo", "args": {"x": "{{input.x}}"}, "next": "b"},
        "b": {"tool": "echo", "done": True},
    },
}
DIAMOND: Json = {
    "start": "fork",
    "steps": {
        "fork": {"parallel": ["left", "right"]},
        "left": {"tool": "echo", "join": "merge"},
        "right": {"tool": "echo", "join": "merge"},
        "merge": {"tool": "echo", "args": {"both": "{{result}}"}, "done": True},
    },
}
GATE: Json = {
    "start": "ask",
    "steps": {
        "ask": {"approval": {"quorum": 1, "timeout_s": 60}, "next": "act"},
        "act": {"tool": "echo", "done": True},
    },
}
LOOP: Json = {
    "start": "all",
    "steps": {
        "all": {
            "foreach": {"items": "{{input.items}}", "tool": "echo", "args": {"v": "{{item}}"}},
            "done": True,
        }
    },
}
WAIT: Json = {"start": "w", "steps": {"w": {"wait": {"signal": "go"}, "done": True}}}
DELAY: Json = {"start": "d", "steps": {"d": {"delay": 30, "next": "e"}, "e": {"tool": "echo", "done": True}}}


@dataclass
class Book:
    """Runs in memory beside the same runs in the tables."""

    database: Database
    now: float = NOW
    flows: dict[str, Flow] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    made: int = 0

    def define(self, document: Json, name: str = "flow") -> str:
        """Put a definition into the tables."""
        definition_id = ids.definition_id(name, canonical(document), canonical({}))
        with self.database.transaction() as conn:
            definitions.add(
                conn, definition_id, name=name, document=canonical(document), created_by="ann", now=self.now
            )
        self.flows[definition_id] = compile_flow(document, name=name)
        return definition_id

    def start(self, document: Json, given: Json = None, *, name: str = "flow", key: str | None = None) -> str:
        """Begin a run of a document."""
        change = self.begun(self.define(document, name), given, key=key)
        self.write([change])
        return change.after.id

    def begun(self, definition_id: str, given: Json = None, *, key: str | None = None) -> changes.RunChange:
        """Decide the start of a run, without writing it."""
        self.made += 1
        new = NewRun(
            self.new_id(), definition_id, 1, {"x": 1} if given is None else given, ANN, key=key, tags=("Red",)
        )
        return changes.first(None, core.start(self.flows[definition_id], new, self.now))

    def new_id(self) -> str:
        return ids.run_id(self.now, self.made.to_bytes(10, "big"))

    def tell(self, run_id: str, *messages: RunMessage) -> None:
        """Decide messages about one run, one after the other, and write what follows in one transaction."""
        run = self.runs[run_id]
        change: changes.RunChange | None = None
        effects: list[Effect] = []
        for message in messages:
            now = run if change is None else change.after
            decision = core.decide(self.flows[run.definition_id], now, message, self.now)
            effects += decision.effects
            change = changes.first(run, decision) if change is None else changes.merge(change, decision)
        assert change is not None
        self.write([change], effects)

    def write(self, made: list[changes.RunChange], effects: list[Effect] | None = None) -> None:
        told = effects or []
        with self.database.transaction() as conn:
            changes.write(conn, made)
            votes.put_many(conn, [each for each in told if isinstance(each, CastVote)], now=self.now)
            signals.keep(conn, [each for each in told if isinstance(each, KeepSignal)], now=self.now)
            signals.use(conn, [each.signal_id for each in told if isinstance(each, UseSignal)], now=self.now)
        self.runs |= {change.after.id: change.after for change in made}

    def ref(self, run_id: str, step: str, item: int = NO_ITEM) -> StepRef:
        attempt = self.runs[run_id].attempts[step, item]
        return StepRef(run_id, step, item, attempt.attempt, attempt.fence)

    def send(self, run_id: str, step: str, item: int = NO_ITEM) -> None:
        self.tell(run_id, StepSent(self.ref(run_id, step, item)))

    def done(self, run_id: str, step: str, result: Json = None, item: int = NO_ITEM) -> None:
        ref = self.ref(run_id, step, item)
        self.tell(run_id, StepSent(ref), StepDone(ref, result, worker="w1", started_at=self.now))

    def failed(self, run_id: str, step: str, *, retry: bool = True, item: int = NO_ITEM) -> None:
        ref = self.ref(run_id, step, item)
        self.tell(
            run_id, StepFailed(ref, Error("ValueError", "no"), ("ValueError",), retry=retry, worker="w1")
        )

    def approve(self, run_id: str, step: str) -> None:
        self.tell(run_id, Decide(f"decide-{run_id}", run_id, step, approve=True, by=BOB, comment="fine"))

    def flow_of(self, definition_id: str) -> Flow:
        return self.flows[definition_id]

    def problems(self) -> list[check.Problem]:
        with self.database.reading() as conn:
            return check.check(conn, self.flow_of)


def value(conn: Connection, query: str) -> object:
    """Read one value by SQL."""
    return conn.exec_driver_sql(query).scalar()
