"""No way around a gate: every request from every state that a run can be in, and more after it.

Nobody approves in these games, so the tool behind the gate must never be handed to a worker. Who plays has
every right but that one: the starter, who wrote the flow; somebody who is no approver; an approver's agent;
a worker that lies.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.executor.desk import Desk
from wfcelery.core.messages import (
    Cancel,
    Decide,
    EndStep,
    Hold,
    Kind,
    Principal,
    Resume,
    RetryRun,
    Signal,
    StepDone,
    StepReady,
)
from wfcelery.core.state import StepRef
from wfcelery.core.values import Json
from wfcelery.embedded.engine import new_command_id, new_run_id
from wfcelery.executor.messages import Broadcast, Define, Message, Retire, Start
from wfcelery.tools import Registry, tool

STARTER = Principal("bob")
STRANGER = Principal("mallory", groups=("finance",))
AGENT = Principal("ann", Kind.AGENT, groups=("board",))
APPROVER = Principal("ann", groups=("board",))
PLAYERS = (STARTER, STRANGER, AGENT)
GUARDED = "pay"
HOUR = 3_600.0
FOLLOWING = 12


@tool(name=GUARDED, requires_approval=True)
def pay(amount: int = 1) -> int:
    """What nobody must reach."""
    return amount


def _flow(name: str, **gate: Json) -> dict[str, Json]:
    """A step, a gate, the guarded step; beside them a branch that can fail."""
    return {
        "name": name,
        "start": "fork",
        "steps": {
            "fork": {"parallel": ["before", "beside"]},
            "before": {"tool": "echo", "args": {"value": 1}, "next": "review"},
            "review": {"approval": {"approvers": ["ann", "dan"], **gate}, "next": "guarded"},
            "guarded": {"tool": GUARDED, "args": {"amount": 5}, "join": "end"},
            "beside": {"wait": {"signal": "go"}, "next": "work"},
            "work": {"tool": "echo", "args": {"value": 2}, "join": "end", "retry": {"max_attempts": 1}},
            "end": {"done": True},
        },
    }


@dataclass
class Game:
    """One run, and the desk at which it is played."""

    desk: Desk
    run_id: str
    flow: dict[str, Json]

    def work(self) -> None:
        """Workers do what they were given, as long as there is something; never what is guarded."""
        sent = self.desk.out.sent
        while sent:
            each = sent.pop(0)
            assert each.tool != GUARDED, f"{each.ref} was handed over without an approval"
            self.desk.tell(StepDone(each.ref, None, worker="w1", started_at=self.desk.clock.now()))

    def fail(self, step: str) -> None:
        self.desk.failed(step, retry=False)
        self.desk.out.sent.clear()


# -- the states


def _before(game: Game) -> None:
    """The step before the gate is out."""
    game.desk.out.sent.clear()


def _open(game: Game) -> None:
    game.work()


def _held(game: Game) -> None:
    game.work()
    game.desk.ask(Hold(new_command_id(), game.run_id, STARTER))


def _cancelled(game: Game) -> None:
    game.work()
    game.desk.ask(Cancel(new_command_id(), game.run_id, STARTER))


def _denied(game: Game) -> None:
    game.work()
    game.desk.ask(Decide(new_command_id(), game.run_id, "review", approve=False, by=APPROVER))


def _failed_before(game: Game) -> None:
    game.fail("before")


def _failed_beside(game: Game) -> None:
    """The gate was open when another branch failed: it was cancelled with the run."""
    game.work()
    game.desk.ask(Signal(new_command_id(), game.run_id, "go", STARTER))
    game.fail("work")


def _half_approved(game: Game) -> None:
    game.work()
    game.desk.ask(Decide(new_command_id(), game.run_id, "review", approve=True, by=APPROVER))


def _escalated(game: Game) -> None:
    game.work()
    game.desk.clock.advance(HOUR + 1)
    game.desk.tell()


STATES: dict[str, tuple[Callable[[Game], None], dict[str, Json]]] = {
    "before the gate": (_before, {}),
    "open": (_open, {}),
    "held": (_held, {}),
    "cancelled": (_cancelled, {}),
    "denied": (_denied, {}),
    "failed before the gate": (_failed_before, {}),
    "failed beside the gate": (_failed_beside, {}),
    "half approved": (_half_approved, {"quorum": 2}),
    "escalated": (
        _escalated,
        {"timeout_s": HOUR, "on_timeout": "escalate", "escalate_to": ["eve"]},
    ),
    "of a group": (_open, {"approvers": ["group:board"]}),
    "asks for a form": (_open, {"form": {"type": "object", "required": ["why"]}, "require_comment": True}),
}


# -- what can be done


def _requests(game: Game, by: Principal) -> Iterator[tuple[str, Message]]:
    run, now = game.run_id, game.desk.clock.now()
    bare: dict[str, Json] = {
        **game.flow,
        "steps": {"guarded": {"tool": GUARDED, "args": {"amount": 5}, "done": True}},
    }
    bare["start"] = "guarded"
    name = str(game.flow["name"])
    yield "approve", Decide(new_command_id(), run, "review", approve=True, by=by)
    form: Json = {"why": "so"}
    yield "approve filled in", Decide(new_command_id(), run, "review", True, by, "yes", form, 1, "api")
    yield "approve the guarded step", Decide(new_command_id(), run, "guarded", approve=True, by=by)
    yield "ready the gate", StepReady(new_command_id(), run, "review", by)
    yield "ready the guarded step", StepReady(new_command_id(), run, "guarded", by)
    approved: Json = {"approved": True, "by": ["ann"]}
    yield "end the gate", EndStep(new_command_id(), run, "review", by, result=approved)
    yield "end the step before", EndStep(new_command_id(), run, "before", by, result=1)
    yield "end the guarded step", EndStep(new_command_id(), run, "guarded", by, result=1)
    yield "signal", Signal(new_command_id(), run, "go", by, approved)
    yield "signal the gate", Signal(new_command_id(), run, "review", by, approved)
    yield "broadcast", Broadcast(new_command_id(), "go", "k", by, approved)
    yield "cancel", Cancel(new_command_id(), run, by)
    yield "pause", Hold(new_command_id(), run, by)
    yield "resume", Resume(new_command_id(), run, by)
    yield "retry", RetryRun(new_command_id(), run, by)
    yield "start again", Start(new_command_id(), run, game.flow, {}, by)
    yield "start another", Start(new_command_id(), new_run_id(now), name, {}, by)
    yield "start without the gate", Start(new_command_id(), new_run_id(now), bare, {}, by)
    yield "define without the gate", Define(new_command_id(), bare, by)
    yield "retire", Retire(new_command_id(), name, by)
    yield "a worker's lie about the gate", StepDone(StepRef(run, "review", -1, 1, 0), approved, worker="w1")
    yield "a worker's lie with a fence", StepDone(StepRef(run, "review", -1, 1, 1), approved, worker="w1")
    yield "a worker's lie about the step", StepDone(StepRef(run, "guarded", -1, 1, 1), 1, worker="w1")


def _moves(game: Game) -> list[str]:
    """Who decides matters at a gate; for the rest it is enough that the starter may do it."""
    return [
        f"{by.kind.value} {by.id}: {word}"
        for by in PLAYERS
        for word, message in _requests(game, by)
        if by is STARTER or isinstance(message, (Decide, StepReady))
    ]


def _play(game: Game, move: str) -> None:
    who, _, word = move.partition(": ")
    by = next(each for each in PLAYERS if f"{each.kind.value} {each.id}" == who)
    game.desk.tell(next(message for name, message in _requests(game, by) if name == word))
    game.work()


@pytest.fixture
def desk() -> Iterator[Desk]:
    tools = Registry.with_builtins()
    tools.add(pay)
    made = Desk("sqlite:///:memory:", tools=tools)
    yield made
    made.close()


def _game(desk: Desk, state: str) -> Game:
    reach, gate = STATES[state]
    flow = _flow("order", **gate)
    desk.out.sent.clear()
    game = Game(desk, desk.start(flow, by=STARTER), flow)
    reach(game)
    return game


@pytest.mark.parametrize("state", STATES)
def test_no_requests_lead_around_a_gate(desk: Desk, state: str) -> None:
    moves = _moves(_game(desk, state))
    for first in moves:
        game = _game(desk, state)
        _play(game, first)
        dice = random.Random(f"{state}, {first}")  # noqa: S311 - so that a failure comes again
        for following in dice.sample(moves, FOLLOWING):
            _play(game, following)
        desk.clock.advance(2 * HOUR)
        desk.tell()
        game.work()
