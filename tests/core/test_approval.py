"""No step behind a gate begins without an approval: every way around it that others have fallen for."""

from __future__ import annotations

from random import Random

import pytest

from tests.model.driver import RUN_ID, CoreEngine
from tests.model.flows_strategy import Document, Steps, compiled, random_flow
from tests.model.game import LATER, Game, drain, move
from tests.model.table import ANN, Table
from wfcelery.core.approval import is_approved, takes_others, way_from_gate
from wfcelery.core.decide import Decision
from wfcelery.core.document import insert_gates
from wfcelery.core.effects import Dispatch
from wfcelery.core.flow import Gate, OnTimeout
from wfcelery.core.messages import Answer, Kind, Principal, Resume, StepUnsent
from wfcelery.core.state import NO_ITEM, RunStatus, StepStatus
from wfcelery.core.validate import validate

TOOL: Document = {"tool": "echo"}
ONCE: Document = {"tool": "echo", "retry": {"max_attempts": 1}}
BOB = Principal("bob")


def approved(run: Table, step: str = "b") -> bool:
    return is_approved(run.flow, run.run, step)


def gated(approval: Document | None = None, **step: object) -> Table:
    steps: Steps = {"g": {"approval": approval or {}, "next": "b"}, "b": {**ONCE, "done": True, **step}}
    return Table(steps)


# -- the guard


def test_a_step_is_approved_once_people_have_opened_the_gate_right_before_it() -> None:
    run = gated({"quorum": 2})
    assert not approved(run)
    run.decide("g", ANN)
    assert not approved(run)
    run.decide("g", BOB)
    assert approved(run)
    run.restart()
    assert approved(run)
    assert not approved(run, "g")
    assert not approved(run, "unknown")


def test_the_tool_of_a_foreach_is_approved_with_its_step() -> None:
    run = Table(
        {
            "g": {"approval": {}, "next": "b"},
            "b": {"foreach": {"items": [1, 2], "tool": "echo"}, "done": True},
        }
    )
    assert not approved(run)
    run.decide("g")
    assert run.handed == ["b[0]", "b[1]"]
    assert approved(run)


@pytest.mark.parametrize(
    "way", [{"parallel": ["b", "c"]}, {"branch": [{"if": "true", "then": "b"}, {"else": "c"}]}]
)
def test_a_gate_may_lead_on_in_any_way(way: Document) -> None:
    run = Table({"g": {"approval": {}, **way}, "b": {**TOOL, "next": "c"}, "c": {"done": True}})
    run.decide("g")
    assert approved(run)


def test_an_approval_by_the_clock_does_not_count() -> None:
    run = gated({"timeout_s": 5, "on_timeout": "approve"})
    run.due("g")
    assert run.state["b"] == "ready"
    assert not approved(run)
    run = gated({"timeout_s": 5, "on_timeout": "approve"})
    run.decide("g", BOB)
    assert not approved(run)  # The row does not tell who opened it, so such a gate never counts.


def test_a_gate_that_the_starter_may_open_alone_does_not_count() -> None:
    run = gated({"allow_self": True})
    run.decide("g", BOB)
    assert not approved(run)


def test_what_follows_a_denial_is_not_approved() -> None:
    run = Table(
        {
            "g": {"approval": {"on_deny": "b"}, "next": "c"},
            "b": {**TOOL, "done": True},
            "c": {**TOOL, "done": True},
        }
    )
    run.decide("g", approve=False)
    assert run.state == {"g": "done", "b": "ready", "c": "skipped"}
    assert not approved(run, "b")
    assert not approved(run, "c")


def test_a_skipped_gate_never_satisfies() -> None:
    run = Table(
        {
            "a": {**TOOL, "branch": [{"if": "result == 1", "then": "g"}, {"else": "e"}]},
            "g": {"approval": {}, "next": "b"},
            "b": {**TOOL, "next": "e"},
            "e": {"done": True},
        }
    )
    run.done("a", 2)
    assert run.state == {"a": "done", "g": "skipped", "b": "skipped", "e": "done"}
    assert not approved(run)


def test_a_step_with_another_way_in_is_not_right_behind_a_gate() -> None:
    run = Table(
        {
            "a": {"parallel": ["g", "b"]},
            "g": {"approval": {}, "next": "b"},
            "b": {**TOOL, "join_mode": "any", "done": True},
        }
    )
    assert run.state["b"] == "ready"
    assert not approved(run)


def test_a_gate_that_was_lost_to_a_join_does_not_count() -> None:
    run = Table(
        {
            "a": {"parallel": ["g", "c"]},
            "g": {"approval": {}, "next": "b"},
            "b": {**TOOL, "join": "d"},
            "c": {**TOOL, "join": "d"},
            "d": {"join_mode": "any", "done": True},
        }
    )
    run.done("c")
    assert run.state["g"] == "cancelled"
    assert not approved(run)
    assert run.decide("g") == Answer(ok=False, reason="the run is already completed")


# -- cancelled, and then approved or repeated


def test_approving_a_gate_of_a_cancelled_run_changes_nothing() -> None:
    run = gated()
    run.cancel()
    assert run.decide("g") == Answer(ok=False, reason="the run is already cancelled")
    assert (run.last.events, run.last.effects, run.handed) == ((), (), [])


def test_a_cancelled_or_denied_run_cannot_be_retried_past_its_gate() -> None:
    run = gated()
    run.cancel()
    answer = Answer(ok=False, reason="only a failed run can be retried; this one is cancelled")
    assert run.retry() == answer
    run = gated()
    run.decide("g", approve=False)
    assert run.retry() == answer
    assert run.handed == []


BESIDE: Steps = {
    "a": {"parallel": ["g", "x"]},
    "g": {"approval": {"quorum": 2}, "next": "b"},
    "b": {**ONCE, "join": "c"},
    "x": {**ONCE, "join": "c"},
    "c": {"done": True},
}


def test_a_retry_asks_anew_at_a_gate_that_was_open_and_old_votes_are_void() -> None:
    run = Table(BESIDE)
    run.decide("g", ANN)
    run.failed("x")
    assert run.state["g"] == "cancelled"
    assert run.decide("g", BOB) == Answer(ok=False, reason="the run is already failed")
    run.retry()
    assert run.state["g"] == "pending approval #2"
    old = Answer(ok=False, reason="this decision is for attempt 1 of g, attempt 2 is open")
    assert run.decide("g", BOB, attempt=1) == old
    run.decide("g", BOB, attempt=2)
    assert run.handed == ["x", "x"]
    run.decide("g", ANN, attempt=2)
    assert run.handed == ["x", "x", "b"]
    assert approved(run)


def test_a_retry_does_not_ask_again_where_people_have_approved_what_failed() -> None:
    run = gated({}, args={"n": "{{input.n ?? 1}}"})
    run.decide("g")
    run.failed("b")
    run.retry()
    assert run.state == {"g": "done", "b": "ready #2"}
    assert [work.args for work in run.work] == [{"n": 1}, {"n": 1}]
    assert approved(run)


def test_what_was_shown_is_what_runs_also_after_a_retry_that_read_all_back() -> None:
    run = Table(
        {
            "a": {"parallel": ["p", "g"]},
            "p": {**ONCE, "join": "end"},
            "g": {"approval": {}, "parallel": ["x", "b"]},
            "x": {**ONCE, "args": {"n": "{{steps.p.result.n}}"}, "join": "end"},
            "b": {**ONCE, "args": {"n": "{{steps.p.result.n ?? 'none yet'}}"}, "join": "end"},
            "end": {"done": True},
        }
    )
    run.sent("p")
    assert run.run.prepared["g", NO_ITEM].args == {"b": {"args": {"n": "none yet"}}}
    run.decide("g")  # Of x nothing could be shown, and it cannot begin: the run fails before b's turn came.
    assert run.run.status is RunStatus.FAILED
    run.done("p", {"n": 7})
    run.retry()
    assert [(work.ref.step, work.args) for work in run.work[1:]] == [
        ("x", {"n": 7}),
        ("b", {"n": "none yet"}),
    ]


def test_the_items_that_were_shown_are_those_it_is_done_for() -> None:
    foreach: Document = {"items": "{{steps.p.result ?? [1]}}", "tool": "echo", "args": {"v": "{{item}}"}}
    run = Table(
        {
            "a": {"parallel": ["p", "g"]},
            "p": {**TOOL, "join": "end"},
            "g": {"approval": {}, "next": "b"},
            "b": {"foreach": foreach, "join": "end"},
            "end": {"done": True},
        }
    )
    assert run.run.prepared["g", NO_ITEM].args == {"b": {"args": {"items": [1], "each": {"v": "{{item}}"}}}}
    run.done("p", [1, 2, 3])
    run.restart()
    run.decide("g")
    assert run.handed == ["p", "b[0]"]


def test_a_gate_that_opens_again_forgets_what_it_showed_before() -> None:
    run = Table(
        {
            "a": {"parallel": ["p", "g"]},
            "p": {**ONCE, "join": "end"},
            "g": {"approval": {}, "next": "b"},
            "b": {**TOOL, "args": {"n": "{{steps.p.error.type ?? 'none'}}"}, "join": "end"},
            "end": {"done": True},
        }
    )
    run.failed("p", "Broken")
    run.retry()
    assert run.run.prepared["g", NO_ITEM].args == {"b": {"args": {"n": "none"}}}
    run.decide("g")
    assert run.work[-1].args == {"n": "none"}


# -- other doors


@pytest.mark.parametrize(
    "by",
    [Principal("starter"), Principal("cay"), Principal("bot", Kind.AGENT), Principal("beat", Kind.SYSTEM)],
)
def test_hurrying_a_gate_is_deciding_it(by: Principal) -> None:
    run = gated()
    answer = run.ready("g", by)
    assert answer is not None
    assert not answer.ok
    assert run.handed == []


def test_a_gate_takes_no_result_from_outside() -> None:
    run = gated()
    answer = run.end("g", {"approved": True})
    assert answer == Answer(ok=False, reason="g waits for approval, not for a report")
    assert run.signal("g") == Answer(
        ok=False, reason="no step of f waits for the signal g; it waits for none"
    )
    assert run.handed == []


def test_what_is_handed_over_again_was_approved() -> None:
    run = gated()
    run.decide("g")
    run.say(StepUnsent(run.ref("b")))
    assert isinstance(run.last.effects[0], Dispatch)
    assert approved(run)


def test_an_approval_while_the_run_is_held_hands_out_nothing_until_it_goes_on() -> None:
    run = gated()
    run.hold()
    run.decide("g")
    assert run.handed == []
    run.say(Resume("c", RUN_ID, ANN))
    assert run.handed == ["b"]
    assert approved(run)


class Guarded(CoreEngine):
    """Looks, at the moment at which work is handed out, whether the gate before it was approved."""

    def __init__(self) -> None:
        super().__init__()
        self.behind = 0

    def _keep(self, decision: Decision) -> None:
        super()._keep(decision)
        for effect in decision.effects:
            if isinstance(effect, Dispatch):
                way = way_from_gate(self.flow, effect.ref.step)
                if way is not None:
                    gate = decision.run.attempts[way.source, NO_ITEM]
                    assert (gate.status, gate.took) == (StepStatus.DONE, way.choice)
                    gated = self.flow.steps[way.source].action
                    assert isinstance(gated, Gate)
                    yes = [
                        v
                        for v in self.votes
                        if (v.step, v.attempt) == (gate.name, gate.attempt) and v.approve
                    ]
                    assert len(yes) >= gated.quorum or gated.on_timeout is OnTimeout.APPROVE
                    assert is_approved(self.flow, decision.run, effect.ref.step) == takes_others(gated)
                    self.behind += 1


def with_a_gate_before_every_tool(random: Random) -> Document:
    """Draw a flow and insert all gates; what is rendered at the gate must not change until its turn comes."""
    document = random_flow(random)
    for step in document["steps"].values():
        if "before" in step.get("args", {}):
            step["args"] = {"n": "{{input.n}}"}
    found = insert_gates(document, lambda _: True)
    assert isinstance(found, dict)
    assert validate(compiled(found)) == []
    return found


def test_in_random_runs_nothing_behind_a_gate_is_handed_out_before_it_was_approved() -> None:
    behind = 0
    for seed in range(120):
        random = Random(seed)  # noqa: S311 - a seed must give the same run again
        engine = Guarded()
        game = Game(with_a_gate_before_every_tool(random), engine, later_s=random.choice(LATER))
        for _ in range(40):
            move(game, random)
        drain(game)
        assert engine.behind == len(engine.work)
        behind += engine.behind
    assert behind > 200
