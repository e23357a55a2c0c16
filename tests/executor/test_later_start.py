"""Runs that are to start later and steps that come back, on the real tables."""

from __future__ import annotations

import math

import pytest

from tests.executor.desk import ANN, Desk
from wfcelery.core.messages import Cancel, StepBegun, StepLost, StepReturned
from wfcelery.core.values import Json
from wfcelery.embedded.engine import new_run_id
from wfcelery.executor.messages import Start

ONE: Json = {"name": "one", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}
YEAR_S = 366 * 86_400.0


def test_a_run_starts_at_its_time_though_the_executor_was_started_anew(desk: Desk) -> None:
    run = desk.start(ONE, at=desk.clock.now() + 60)
    assert (desk.run(run)["status"], desk.states(run)) == ("running", {"a": "pending"})
    desk.restart()
    desk.tell()
    assert desk.out.sent == []
    desk.clock.move_to(desk.clock.now() + 60)
    desk.tell()
    desk.done("a", 1)
    assert (desk.run(run)["status"], desk.run(run)["output"]) == ("completed", 1)


def test_a_run_has_its_key_before_it_starts_and_can_be_cancelled(desk: Desk) -> None:
    run = desk.start(ONE, key="k", at=desk.clock.now() + 60)
    assert desk.start(ONE, key="k") == run
    desk.ask(Cancel("c1", run, ANN))
    assert desk.run(run)["status"] == "cancelled"
    assert desk.start(ONE, key="k") != run


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (math.nan, "at: is nan, which JSON does not have"),
        (math.inf, "at: is inf, which JSON does not have"),
        (True, "at: must be a time in seconds since 1970, not True"),
        (1e300, "at: must lie within the next ten years"),
    ],
)
def test_a_time_that_no_clock_will_show_is_refused(desk: Desk, at: float, reason: str) -> None:
    answer = desk.ask(Start("c1", new_run_id(0.0), ONE, {}, ANN, at=at))
    assert (answer.ok, answer.code, answer.reason) == (False, "invalid-input", reason)


def test_ten_years_are_not_too_far(desk: Desk) -> None:
    assert desk.states(desk.start(ONE, at=desk.clock.now() + 10 * YEAR_S)) == {"a": "pending"}


def test_a_step_that_comes_back_goes_out_again_and_its_history_stays_whole(desk: Desk) -> None:
    run = desk.start(ONE)
    ref = desk.take("a").ref
    desk.tell(StepReturned(ref, "redelivered", "w1"))
    again = desk.take("a").ref
    assert again == ref._replace(fence=4)
    desk.tell(StepReturned(ref, "redelivered", "w1"), StepReturned(ref, "redelivered", "w1"))
    desk.tell(StepLost(again, begun=False, reason="its queue was emptied"))
    desk.restart()
    desk.tell(StepBegun(again, "w2", desk.clock.now()))
    desk.tell(StepReturned(again, "redelivered", "w1"))
    assert [(each.ref, each.again) for each in desk.out.sent] == [(ref, False), (again, True), (again, True)]
    desk.done("a", 1)
    assert [event["type"] for event in desk.events(run)] == [
        "run_started",
        "step_ready",
        "step_running",
        "step_returned",
        "step_running_again",
        "step_resent",
        "step_running_again",
        "step_started",
        "step_done",
        "done_reached",
        "run_completed",
    ]
