"""A run that is to start later: there at once, and its first step's turn comes with the clock."""

from __future__ import annotations

import pytest

from tests.model.driver import RUN_ID, START
from tests.model.flows_strategy import Document, Steps
from tests.model.table import ANN, Table
from wfcelery.core.messages import Answer, Broken, TimerDue
from wfcelery.core.state import RunStatus

ONE: Steps = {"a": {"tool": "echo", "done": True}}


def test_a_run_that_starts_later_waits_for_the_clock() -> None:
    run = Table(ONE, later_s=60)
    assert (run.state, run.run.status) == ({"a": "pending time"}, RunStatus.RUNNING)
    assert (run.told, run.run.attempts["a", -1].due_at) == (["run_started", "start_set"], START + 60)
    run.say(TimerDue(RUN_ID, "a", -1, 1))
    assert run.told == []
    run.restart()
    run.due("a")
    assert (run.told, run.handed, run.state) == (["step_ready"], ["a"], {"a": "ready"})
    run.done("a", 1)
    assert run.ended == ("completed", 1)


@pytest.mark.parametrize("later_s", [-60, 0])
def test_a_time_that_has_come_lets_the_run_start_at_once(later_s: float) -> None:
    assert Table(ONE, later_s=later_s).state == {"a": "ready"}


@pytest.mark.parametrize(
    ("step", "state"),
    [
        ({"tool": "echo"}, {"a": "ready"}),
        ({"approval": {}}, {"a": "pending approval"}),
        ({"wait": {"signal": "go"}}, {"a": "pending signal"}),
        ({"delay": 5}, {"a": "pending time"}),
        ({"foreach": {"items": "{{input}}", "tool": "echo"}}, {"a": "pending items", "a[0]": "ready"}),
        ({"flow": {"name": "child"}}, {"a": "pending flow"}),
        ({}, {"a": "done"}),
        ({"tool": "echo", "args": {"x": "{{input.x.y}}"}}, {"a": "failed"}),
    ],
)
def test_whatever_the_first_step_is_its_turn_comes_as_if_the_run_started_then(
    step: Document, state: dict[str, str]
) -> None:
    run = Table({"a": {**step, "done": True}}, [1], later_s=60)
    run.due("a")
    assert run.state == state
    at_once = Table({"a": {**step, "done": True}}, [1])
    later, now = run.run.attempts["a", -1], at_once.run.attempts["a", -1]
    waits = (later.due_at or 0) - (now.due_at or 0)
    assert waits in (0, 60)
    assert (later.missing, later.args_digest, later.result_digest) == (0, now.args_digest, now.result_digest)


def test_the_delay_of_a_first_step_counts_from_when_the_run_starts() -> None:
    run = Table({"a": {"delay": 5, "done": True}}, later_s=60)
    run.due("a")
    assert run.run.attempts["a", -1].due_at == START + 65
    run.restart()
    run.due("a")
    assert run.ended == ("completed", None)


def test_a_delay_behind_a_join_of_any_is_not_taken_for_a_start() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "c"]},
            "b": {"tool": "echo", "join": "d"},
            "c": {"tool": "echo", "join": "d"},
            "d": {"delay": 5, "join_mode": "any", "done": True},
        }
    )
    run.done("b", 1)
    run.due("d")
    assert run.ended == ("completed", {"b": 1})


def test_a_start_can_be_hurried() -> None:
    run = Table(ONE, later_s=60)
    assert run.ready("a") == Answer(ok=True)
    assert (run.told, run.last.events[0].actor) == (["start_hurried", "step_ready"], ANN.id)
    run.now += 60
    run.say(TimerDue(RUN_ID, "a", -1, 1))
    assert (run.told, run.handed) == ([], ["a"])


def test_a_run_can_be_cancelled_before_it_starts() -> None:
    run = Table(ONE, later_s=60)
    run.cancel()
    assert (run.state, run.run.status, run.handed) == ({"a": "cancelled"}, RunStatus.CANCELLED, [])


def test_a_held_run_starts_when_it_goes_on() -> None:
    run = Table(ONE, later_s=60)
    run.hold()
    run.due("a")
    assert (run.told, run.state) == ([], {"a": "pending time"})
    run.restart()
    run.resume()
    assert (run.state, run.handed) == ({"a": "ready"}, ["a"])


def test_a_signal_that_comes_before_the_start_is_kept() -> None:
    run = Table({"a": {"wait": {"signal": "go"}, "done": True}}, later_s=60)
    assert run.signal("go", 7) == Answer(ok=True, data={"taken_by": None})
    run.due("a")
    assert run.ended == ("completed", 7)


def test_a_gate_that_has_not_opened_cannot_be_decided() -> None:
    run = Table({"a": {"approval": {}, "done": True}}, later_s=60)
    assert run.decide("a") == Answer(ok=False, reason="a does not wait for an approval")


def test_a_run_that_broke_before_its_start_begins_at_once_when_it_is_retried() -> None:
    run = Table({"a": {"foreach": {"items": [1], "tool": "echo"}, "done": True}}, later_s=60)
    run.say(Broken(RUN_ID, "no"))
    run.retry()
    assert run.state == {"a": "pending items #2", "a[0]": "ready"}
