"""A step on its way to a worker: begun, handed back, lost before anybody began it."""

from __future__ import annotations

import pytest

from tests.model.flows_strategy import Steps
from tests.model.table import Table
from wfcelery.core.messages import StepBegun, StepDone, StepLost, StepReturned, StepSent, StepUnsent
from wfcelery.core.state import StepStatus

ONE: Steps = {"a": {"tool": "echo", "retry": {"max_attempts": 1}, "done": True}}
FIRST_WINS: Steps = {
    "a": {"parallel": ["b", "c"]},
    "b": {"tool": "echo", "join": "d"},
    "c": {"tool": "echo", "join": "d"},
    "d": {"join_mode": "any", "done": True},
}
TWO_ITEMS: Steps = {
    "a": {
        "foreach": {"items": "{{input}}", "tool": "echo", "concurrency": 2},
        "retry": {"max_attempts": 1},
        "done": True,
    }
}


def events(run: Table) -> list[tuple[str, str, object]]:
    """Type, actor and data of what the last message did."""
    return [(event.type, event.actor, event.data) for event in run.last.events]


# -- begun


def test_the_beginning_of_a_step_is_written_down_with_its_worker_and_time() -> None:
    run = Table(ONE)
    run.sent("a")
    run.now += 2
    run.begun("a")
    assert events(run) == [("step_started", "", {"worker": "w1", "started_at": run.now})]
    attempt = run.run.attempts["a", -1]
    assert (attempt.status, attempt.worker, attempt.started_at) == (StepStatus.RUNNING, "w1", run.now)


def test_a_ready_step_that_is_begun_was_handed_over() -> None:
    run = Table(ONE)
    run.begun("a")
    assert run.told == ["step_running", "step_started"]
    assert run.run.attempts["a", -1].sent_at == run.now
    run.sent("a")
    assert run.told == []


def test_a_beginning_without_a_time_is_now() -> None:
    run = Table(ONE)
    run.say(StepBegun(run.ref("a")))
    assert run.run.attempts["a", -1].started_at == run.now


def test_only_the_first_word_of_the_current_attempt_counts() -> None:
    run = Table(ONE)
    old = run.ref("a")
    run.begun("a")
    run.begun("a", worker="w2")
    assert run.told == []
    run.lost("a")
    run.say(StepBegun(old, "w1", run.now))
    assert run.told == []
    run.done("a", 1)
    run.begun("a")
    assert run.told == []
    assert run.ended == ("completed", 1)


def test_a_postponed_step_keeps_who_began_it_and_when() -> None:
    run = Table(ONE)
    run.begun("a")
    run.postponed("a")
    attempt = run.run.attempts["a", -1]
    assert (attempt.worker, attempt.started_at) == ("w1", run.now)


# -- handed back


def test_a_step_that_is_handed_back_goes_out_again_as_the_same_attempt() -> None:
    run = Table(ONE)
    run.sent("a")
    for fence in (4, 6):
        run.returned("a")
        assert events(run) == [
            ("step_returned", "w1", {"status": "ready", "fence": fence, "reason": "redelivered"})
        ]
        run.restart()
        run.sent("a")
        assert run.told == ["step_running_again"]
    assert [(work.ref.attempt, work.ref.fence, work.again) for work in run.work] == [
        (1, 2, False),
        (1, 4, True),
        (1, 6, True),
    ]
    run.done("a", 1)
    assert run.ended == ("completed", 1)


def test_a_step_that_is_handed_back_twice_in_the_same_words_goes_out_once() -> None:
    run = Table(ONE)
    run.sent("a")
    word = StepReturned(run.ref("a"), "redelivered", "w1")
    run.say(word)
    run.say(word)
    assert (run.told, run.handed) == ([], ["a", "a"])
    run.sent("a")
    run.restart()
    run.say(word)
    assert (run.told, run.handed) == ([], ["a", "a"])
    run.send_in_turn([returned := StepReturned(run.ref("a")), returned, returned], run.now)
    assert run.handed == ["a", "a", "a"]


def test_what_is_said_of_the_copy_that_came_back_is_about_nothing() -> None:
    run = Table(ONE)
    old = run.ref("a")
    run.returned("a")
    now = run.ref("a")
    for word in (
        StepSent(old),
        StepUnsent(old),
        StepBegun(old, "w1"),
        StepLost(old, begun=False),
        StepLost(old),
    ):
        run.say(word)
        assert run.told == []
    run.say(StepDone(old, 1, worker="w1"))
    reason = f"attempt 1 with fence {now.fence} is the current one"
    assert events(run) == [
        ("report_refused", "w1", {"report": "StepDone", "fence": old.fence, "reason": reason})
    ]
    run.done("a", 2)
    assert run.ended == ("completed", 2)


def test_a_ready_step_that_is_handed_back_was_handed_over() -> None:
    run = Table(ONE)
    run.returned("a")
    assert run.told == ["step_running", "step_returned"]
    assert (run.state, run.work[-1].again) == ({"a": "ready"}, True)


def test_a_step_that_was_begun_is_not_taken_back() -> None:
    run = Table(ONE)
    run.begun("a")
    run.returned("a")
    assert (run.told, run.handed) == ([], ["a"])


def test_an_older_attempt_is_not_taken_back() -> None:
    run = Table(ONE)
    old = run.ref("a")
    run.lost("a")
    run.say(StepReturned(old, "redelivered", "w1"))
    run.say(StepLost(old, begun=False))
    assert (run.told, run.handed) == ([], ["a", "a"])


@pytest.mark.parametrize("how", ["returned", "lost"])
def test_what_comes_back_while_the_run_is_held_goes_out_when_it_goes_on(how: str) -> None:
    run = Table(ONE)
    run.sent("a")
    run.hold()
    run.returned("a") if how == "returned" else run.lost("a", begun=False)
    assert (run.state, run.handed) == ({"a": "ready"}, ["a"])
    run.lost("a", begun=False)
    assert run.told == []
    run.restart()
    run.resume()
    assert (run.handed, run.work[-1].again) == (["a", "a"], True)


@pytest.mark.parametrize("how", ["returned", "lost"])
def test_what_nobody_needs_is_cancelled_when_it_comes_back(how: str) -> None:
    run = Table(FIRST_WINS)
    run.sent("c")
    run.done("b", "first")
    run.returned("c") if how == "returned" else run.lost("c", begun=False)
    assert events(run)[0][2] == {
        "status": "cancelled",
        "completed_at": run.now,
        "took": "dead",
        "reason": "nobody needs it any more",
    }
    assert (run.state["c"], run.handed) == ("cancelled", ["b", "c"])
    assert run.ended == ("completed", {"b": "first"})


def test_what_comes_back_to_a_cancelled_run_closes_it() -> None:
    run = Table(ONE)
    run.sent("a")
    run.cancel()
    assert run.run.open == 1
    run.returned("a")
    assert (run.state, run.run.open, run.handed) == ({"a": "cancelled"}, 0, ["a"])


def test_an_item_that_comes_back_after_another_failed_ends_the_loop() -> None:
    run = Table(TWO_ITEMS, [1, 2])
    run.sent("a", 0)
    run.sent("a", 1)
    run.failed("a", item=0)
    run.returned("a", item=1)
    assert run.state == {"a": "failed", "a[0]": "failed", "a[1]": "cancelled"}
    assert run.ended[0] == "failed"


# -- lost


def test_a_lost_step_that_nobody_began_goes_out_again_without_a_budget() -> None:
    run = Table(ONE)
    run.sent("a")
    for _ in range(10):
        run.say(StepLost(run.ref("a"), begun=False, reason="its queue was emptied"))
        assert events(run) == [("step_resent", "", {"status": "ready", "reason": "its queue was emptied"})]
        run.sent("a")
    assert {work.ref for work in run.work} == {run.ref("a")}
    assert run.run.attempts["a", -1].losses == 0


def test_a_ready_step_that_was_lost_goes_out_again_as_one_that_was_out_before() -> None:
    run = Table(ONE)
    run.lost("a", begun=False)
    assert events(run) == [("step_resent", "", {"sent_at": run.now, "reason": ""})]
    assert [work.again for work in run.work] == [False, True]
    run.sent("a")
    assert run.told == ["step_running_again"]


def test_the_tables_know_better_than_the_watch_that_a_step_was_begun() -> None:
    run = Table(ONE)
    run.begun("a")
    run.lost("a", begun=False)
    assert (run.state, run.run.attempts["a", -1].losses) == ({"a": "ready #2"}, 1)
    assert run.work[-1].again  # its worker vanished: this one says first that it begins


def test_a_loss_may_say_its_reason() -> None:
    run = Table({"a": {"tool": "echo", "on_lost": "hold", "done": True}})
    run.say(StepLost(run.ref("a"), reason="worker w1 was killed by the kernel", worker="w1"))
    assert run.state == {"a": "pending person #2"}
    lost = run.rows[("a", -1), 1].attempt
    assert lost.error is not None
    assert (lost.error.message, lost.worker) == ("worker w1 was killed by the kernel", "w1")


def test_a_step_that_must_not_run_twice_says_that_it_begins_when_it_is_sent_first() -> None:
    ordinary, careful = Table(ONE), Table({"a": {"tool": "echo", "on_lost": "hold", "done": True}})
    assert [run.work[-1].again for run in (ordinary, careful)] == [False, True]
