"""One run played twice: by an engine and by the reference, message by message, compared after each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model.driver import RUN_ID, CoreEngine, Engine, Seen, StepSeen, Work
from tests.model.flows_strategy import Document, compiled
from tests.model.reference import Reference, Told
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
from wfcelery.core.state import NO_ITEM, Error, Key, RunStatus, StepRef, StepStatus, WaitsFor

if TYPE_CHECKING:
    from random import Random

    from wfcelery.core.values import Json

PEOPLE = (
    Principal("ann"),
    Principal("bob", groups=("ops",)),
    Principal("cay", groups=("ops",)),
    Principal("eve"),
    Principal("starter"),
    Principal("bot", kind=Kind.AGENT),
    Principal("starter", at_terminal=True),
)
STARTER = Principal("starter")
RESULTS: tuple[Json, ...] = (None, True, False, 1, "x", [1, 2], {"a": {"b": 2.5}})
ERRORS = ("ValueError", "Fatal", "timeout")
INPUT: Json = {"n": 3, "items": ["a", "b", "c", "d"]}
LATER = (None, None, None, -5.0, 0.0, 30.0)
"""How long after it was asked for a run is to start; None: nothing is said of that."""
ENDS = (RunStatus.COMPLETED, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class Game:
    """A run under way, with the messages that were sent so far."""

    def __init__(
        self,
        document: Document,
        engine: Engine | None = None,
        value: Json = INPUT,
        later_s: float | None = None,
    ) -> None:
        self.document = document
        self.engine: Engine = CoreEngine() if engine is None else engine
        self.flow = replace(compiled(document), author=self.engine.author)
        self.now = self.engine.begins_at
        self.sent: list[RunMessage] = []
        self.unsent: list[StepRef] = []
        self.work: list[Work] = []
        self.children: list[StepRef] = []
        self.notices = 0
        self.numbers = 0
        at = None if later_s is None else self.now + later_s
        self.engine.start(document, value, STARTER, self.now, at)
        self.reference = Reference(self.flow, self.engine.run_id, value, STARTER.id, self.now, at=at)
        self.compare()

    def send(self, message: RunMessage) -> None:
        """Let one thing happen to both, and compare."""
        self.sent.append(message)
        self.engine.send(message, self.now)
        self.reference.send(message, self.now)
        if self.engine.passes_on:
            self.ring()
        self.compare()

    def ring(self) -> None:
        """Let the timers of the reference act that are due, as an engine does that looks at the clock."""
        while self.reference.is_live and not self.reference.held:
            due = [(key, attempt) for due_at, key, attempt in self.timers() if due_at <= self.now]
            if not due:
                return
            for (step, item), attempt in due:
                self.reference.send(TimerDue(RUN_ID, step, item, attempt), self.now)

    def compare(self) -> None:
        """Hold what is to be seen of the engine against the reference."""
        seen, model = self.engine.observe(), self.reference
        self.compare_work(seen)
        self.compare_notices(seen)
        expected = {
            key: StepSeen(row.attempt, row.status, row.waits_for, row.due_at)
            for key, row in model.rows.items()
        }
        assert seen.steps == expected, differences(seen.steps, expected)
        assert (seen.status, seen.held, seen.error) == (model.status, model.held, model.error)
        if seen.status is RunStatus.COMPLETED:
            assert blurred(seen.output) == blurred(model.output)

    def compare_work(self, seen: Seen) -> None:
        """Hold the work handed out since against the reference's, and let it know the tickets."""
        model, new = self.reference, seen.work[len(self.work) :]
        got = [
            (work.ref.step, work.ref.item, work.ref.attempt, blurred(work.args), work.again) for work in new
        ]
        wanted = [
            (work.step, work.item, work.attempt, blurred(work.args), work.again) for work in model.new_work
        ]
        assert sorted(got, key=repr) == sorted(wanted, key=repr)
        children = seen.children[len(self.children) :]
        begun = [(ref.step, ref.item, ref.attempt) for ref in children]
        assert sorted(begun) == sorted(model.new_children)
        model.new_work, model.new_children = [], []
        for ref in [*(work.ref for work in new), *children]:
            known = [other.ref for other in self.work]
            assert ref in known or all(ref.fence > other.fence for other in known)
            model.handed(ref)
        self.work += new
        self.children += children
        refs = [work.ref for work in new]
        if self.engine.passes_on:
            for ref in refs:
                model.send(StepSent(ref), self.now)
        else:
            self.unsent += refs

    def compare_notices(self, seen: Seen) -> None:
        """Hold what people were told since against the reference's, where the engine keeps it."""
        wanted, self.reference.new_notices = self.reference.new_notices, []
        if seen.notices is not None:
            new = seen.notices[self.notices :]
            got = [Told(each.kind, each.to, each.step, each.attempt) for each in new]
            assert sorted(got, key=repr) == sorted(wanted, key=repr)
            self.notices = len(seen.notices)

    # -- moves

    def restart(self) -> None:
        self.engine.restart()
        self.compare()

    def pass_on(self) -> None:
        """Say that all work handed out is on its way, as the executor does after each batch."""
        refs, self.unsent = self.unsent, []
        for ref in refs:
            self.send(StepSent(ref))

    def command(self) -> str:
        self.numbers += 1
        return f"c{self.numbers}"

    def open_work(self) -> list[StepRef]:
        rows = self.reference.rows
        active = (StepStatus.READY, StepStatus.RUNNING)
        return [row.ref for row in rows.values() if row.ref is not None and row.status in active]

    def open_children(self) -> list[StepRef]:
        rows = self.reference.rows.values()
        return [row.ref for row in rows if row.ref and row.waits_for is WaitsFor.FLOW and row.is_open]

    def pending(self, *kinds: WaitsFor) -> list[Key]:
        rows = self.reference.rows.items()
        return [key for key, row in rows if row.status is StepStatus.PENDING and row.waits_for in kinds]

    def timers(self) -> list[tuple[float, Key, int]]:
        rows = self.reference.rows.items()
        found = [
            (row.due_at, key, row.attempt) for key, row in rows if row.is_open and row.due_at is not None
        ]
        return sorted(found)

    def due(self, *, early: bool = False) -> None:
        """Let the clock come to the next timer and say so."""
        timers = self.timers()
        if timers:
            due_at, (step, item), attempt = timers[0]
            if not early:
                self.now = max(self.now, due_at)
            self.send(TimerDue(RUN_ID, step, item, attempt))

    def report(self, random: Random, ref: StepRef) -> RunMessage:
        """Draw what a worker may say of a step."""
        roll = random.random()
        if roll < 0.58:
            return StepDone(ref, random.choice(RESULTS), event=self.outcome(random, ref), worker="w1")
        if roll < 0.76:
            kind = random.choice(ERRORS)
            after = random.choice((None, None, None, 7.0))
            ancestors = (kind, "Exception")
            return StepFailed(
                ref, Error(kind, "no"), ancestors, retry=random.random() < 0.9, retry_after=after
            )
        if roll < 0.80:
            return StepPostponed(ref)
        if roll < 0.88:
            return StepBegun(ref, worker="w1", started_at=random.choice((None, self.now)))
        if roll < 0.92:
            return StepReturned(ref, "redelivered", worker="w1")
        return StepLost(ref, counted=random.random() < 0.7, begun=random.random() < 0.5)

    def outcome(self, random: Random, ref: StepRef) -> str | None:
        events = [edge.event for edge in self.flow.steps[ref.step].edges if edge.event]
        if random.random() < 0.05:
            return random.choice((None, "unheard-of"))
        return random.choice(events) if events else None


def blurred(value: Json) -> Json:
    """Leave out the words of errors: their wording is not what is compared here."""
    if isinstance(value, dict):
        if value.keys() == {"type", "message"}:
            return str(value["type"])
        return {key: blurred(part) for key, part in value.items()}
    return [blurred(part) for part in value] if isinstance(value, list) else value


def differences(got: dict[Key, StepSeen], wanted: dict[Key, StepSeen]) -> str:
    """Show only what differs."""
    keys = sorted({*got, *wanted})
    lines = [
        f"{key}: engine {got.get(key)}, reference {wanted.get(key)}"
        for key in keys
        if got.get(key) != wanted.get(key)
    ]
    return "\n" + "\n".join(lines)


def move(game: Game, random: Random) -> None:
    """Make one random move: mostly useful ones, some late, repeated, or from the wrong person."""
    roll = random.random()
    work, children = game.open_work(), game.open_children()
    if game.reference.status is RunStatus.FAILED and random.random() < 0.2:
        game.send(RetryRun(game.command(), RUN_ID, STARTER))
    elif roll < 0.12 and game.unsent:
        game.pass_on()
    elif roll < 0.50 and work:
        game.send(game.report(random, random.choice(work)))
    elif roll < 0.58 and children:
        end_child(game, random, random.choice(children))
    elif roll < 0.66:
        game.due(early=random.random() < 0.15)
    elif roll < 0.74:
        repeat(game, random)
    elif roll < 0.80:
        game.restart()
    elif roll < 0.86:
        vote(game, random)
    elif roll < 0.90:
        name = random.choice(("go", "stop", "never"))
        game.send(Signal(game.command(), RUN_ID, name, random.choice(PEOPLE), random.choice(RESULTS)))
    else:
        rare(game, random, roll)


def rare(game: Game, random: Random, roll: float) -> None:
    rows = [key for key, row in game.reference.rows.items() if row.is_open]
    work = game.open_work()
    if roll < 0.93 and rows:
        step, item = random.choice(rows)
        game.send(StepReady(game.command(), RUN_ID, step, random.choice(PEOPLE), item))
    elif roll < 0.935 and game.pending(WaitsFor.REPORT):
        end_postponed(game, random)
    elif roll < 0.94 and work:
        game.send(StepUnsent(random.choice(work)))
    elif roll < 0.95:
        game.send(Hold(game.command(), RUN_ID, STARTER))
    elif roll < 0.97:
        game.send(Resume(game.command(), RUN_ID, STARTER))
    elif roll < 0.972:
        game.send(Cancel(game.command(), RUN_ID, STARTER, "enough"))
    elif roll < 0.98:
        game.now += random.choice((0.5, 20, 400))
    elif game.work:
        ref = random.choice(game.work).ref
        game.send(game.report(random, ref._replace(fence=ref.fence + random.choice((0, 0, 1)))))


def end_postponed(game: Game, random: Random) -> None:
    step, item = random.choice(game.pending(WaitsFor.REPORT))
    event = game.outcome(random, StepRef(RUN_ID, step, item, 0, 0))
    error = Error("ValueError", "no") if random.random() < 0.3 else None
    game.send(EndStep(game.command(), RUN_ID, step, STARTER, item, result="later", event=event, error=error))


def end_child(game: Game, random: Random, ref: StepRef) -> None:
    status = random.choice(ENDS)
    error = Error("ValueError", "child") if status is RunStatus.FAILED else None
    output = random.choice(RESULTS) if status is RunStatus.COMPLETED else None
    game.send(ChildEnded(ref, status, output, error))


def vote(game: Game, random: Random) -> None:
    gates = game.pending(WaitsFor.APPROVAL) or [(random.choice(list(game.flow.steps)), NO_ITEM)]
    by, comment = random.choice(PEOPLE), random.choice(("", "fine"))
    step, approve, attempt = random.choice(gates)[0], random.random() < 0.8, random.choice((None, None, 1, 2))
    game.send(Decide(game.command(), RUN_ID, step, approve, by, comment, attempt=attempt))


def repeat(game: Game, random: Random) -> None:
    """Send an old message again; a request comes under an id of its own."""
    if not game.sent:
        return
    message = random.choice(game.sent)
    if isinstance(message, (Decide, StepReady, Signal, EndStep)):
        message = replace(message, command_id=game.command())
    if not isinstance(message, (Cancel, Hold, Resume, RetryRun)):
        game.send(message)


def drain(game: Game, limit: int = 600) -> None:
    """Do what is left to do, until the run has ended and nothing of it is open."""
    game.send(Resume(game.command(), RUN_ID, STARTER))
    for _ in range(limit):
        if game.unsent:
            game.pass_on()
        elif game.open_work():
            ref = game.open_work()[0]
            events = [edge.event for edge in game.flow.steps[ref.step].edges if edge.event]
            game.send(StepDone(ref, 1, event=events[0] if events else None))
        elif game.open_children():
            game.send(ChildEnded(game.open_children()[0], RunStatus.COMPLETED, "child", None))
        elif game.pending(WaitsFor.REPORT):
            step, item = game.pending(WaitsFor.REPORT)[0]
            events = [edge.event for edge in game.flow.steps[step].edges if edge.event]
            event = events[0] if events else None
            game.send(EndStep(game.command(), RUN_ID, step, STARTER, item, result=2, event=event))
        elif game.pending(WaitsFor.APPROVAL):
            step = game.pending(WaitsFor.APPROVAL)[0][0]
            for person in PEOPLE:
                game.send(Decide(game.command(), RUN_ID, step, approve=True, by=person, comment="yes"))
        elif game.pending(WaitsFor.SIGNAL, WaitsFor.PERSON):
            step, item = game.pending(WaitsFor.SIGNAL, WaitsFor.PERSON)[0]
            game.send(StepReady(game.command(), RUN_ID, step, Principal("ann"), item))
        elif game.timers():
            game.due()
        else:
            break
    open_rows = [key for key, row in game.reference.rows.items() if row.is_open]
    assert not open_rows, f"still open: {open_rows}"
    assert not game.reference.is_live, "the run has not ended"
