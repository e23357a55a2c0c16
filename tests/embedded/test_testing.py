"""`wfcelery.testing`: what users have for tests of their own flows."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfcelery import tool
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow
from wfcelery.testing import VirtualClock, run_to_end

DAY = 86_400.0
GATE: Json = {
    "name": "gate",
    "start": "ask",
    "steps": {
        "ask": {"approval": {"timeout_s": DAY, "on_deny": "no"}, "next": "yes"},
        "yes": {"tool": "echo", "args": {"value": "did it"}, "done": True},
        "no": {"tool": "echo", "args": {"value": "{{result.by}}"}, "done": True},
    },
}


def test_a_timeout_of_a_day_takes_no_time() -> None:
    clock = VirtualClock()
    before = clock.now()
    run = run_to_end(GATE, clock=clock)
    assert (run["output"], clock.now() - before) == (["timeout"], DAY)


@pytest.mark.parametrize(("word", "output"), [("approve", "did it"), ("deny", ["decider"])])
def test_decisions_answer_gates(word: str, output: Json) -> None:
    assert run_to_end(GATE, decisions={"ask": word})["output"] == output  # type: ignore[dict-item]


def test_a_decision_may_look_at_what_the_approver_is_shown() -> None:
    shown = []

    def decide(what: Json) -> str:
        shown.append(what)
        return "approve"

    run_to_end(GATE, decisions={"ask": decide})  # type: ignore[dict-item]
    assert shown == [{"yes": {"args": {"value": "did it"}}}]


def test_a_gate_that_nobody_answers_and_that_has_no_end_is_where_the_run_stops() -> None:
    flow: Json = {"name": "g", "start": "ask", "steps": {"ask": {"tool": None, "args": {}, "done": True}}}
    assert run_to_end(flow)["status"] == "paused"


def test_signals_answer_waits() -> None:
    flow: Json = {"name": "w", "start": "w", "steps": {"w": {"wait": {"signal": "paid"}, "done": True}}}
    assert run_to_end(flow, signals={"paid": {"cents": 5}})["output"] == {"cents": 5}


def test_tools_of_the_test_take_the_place_of_others() -> None:
    @tool(name="echo")
    def fake(**arguments: str) -> str:
        return "fake"

    flow: Json = {"name": "f", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}
    assert run_to_end(flow, tools=[fake])["output"] == "fake"


def test_retries_and_sleeps_pass_on_the_virtual_clock() -> None:
    clock = VirtualClock()
    before = clock.now()
    flow: Json = {
        "name": "slow",
        "start": "nap",
        "steps": {
            "nap": {"tool": "sleep", "args": {"seconds": 3600}, "next": "fail"},
            "fail": {"tool": "fail", "args": {"times": 2}, "done": True},
        },
    }
    assert run_to_end(flow, clock=clock)["output"] == {"attempts": 3}
    assert clock.now() - before == 3600 + 30 + 120


def test_a_sleep_beyond_its_time_limit_is_a_timeout_on_the_virtual_clock() -> None:
    step: Json = {
        "tool": "sleep",
        "args": {"seconds": 3600},
        "timeout_s": 60,
        "done": True,
        "retry": {"max_attempts": 1},
    }
    run = run_to_end({"name": "late", "start": "a", "steps": {"a": step}})
    error = run["error"]
    assert isinstance(error, dict)
    assert error["type"] == "timeout"


def test_a_flow_may_be_a_file_a_text_or_data(tmp_path: Path) -> None:
    text = "start: a\nsteps:\n  a: {tool: echo, args: {value: 1}, done: true}\n"
    path = tmp_path / "one.yaml"
    path.write_text(text)
    assert [run_to_end(flow)["output"] for flow in (path, str(path), text)] == [1, 1, 1]
    assert run_to_end(path)["name"] == "one"


def test_sub_flows_are_given_first() -> None:
    child: Json = {
        "name": "child",
        "start": "a",
        "steps": {"a": {"tool": "echo", "args": {"value": 2}, "done": True}},
    }
    parent: Json = {"name": "parent", "start": "c", "steps": {"c": {"flow": {"name": "child"}, "done": True}}}
    assert run_to_end(parent, flows=[child])["output"] == 2


def test_a_flow_with_faults_is_refused() -> None:
    with pytest.raises(InvalidFlow):
        run_to_end({"name": "x", "start": "a", "steps": {"a": {"tool": "nowhere", "done": True}}})


def test_a_quorum_of_groups_can_be_met() -> None:
    approval: Json = {"approvers": ["group:finance", "ann"], "quorum": 2}
    flow: Json = {"name": "q", "start": "ask", "steps": {"ask": {"approval": approval, "done": True}}}
    run = run_to_end(flow, decisions={"ask": "approve"})
    people = ["finance-1", "finance-2"]
    votes: Json = [{"by": who, "approved": True, "comment": "", "form": None} for who in people]
    verdict: Json = {"approved": True, "by": people, "comment": "", "form": None, "votes": votes}
    assert run["output"] == verdict
