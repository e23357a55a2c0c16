"""The rules by which a run changes, one by one."""

from __future__ import annotations

import pytest

from tests.model.flows_strategy import Document, Steps
from tests.model.table import ANN, STARTER, Table
from wfcelery.core.effects import CancelChild, StopStep
from wfcelery.core.messages import Answer, Kind, Principal, StepDone, TimerDue
from wfcelery.core.state import RunStatus

TOOL: Document = {"tool": "echo"}
ONCE: Document = {"tool": "echo", "retry": {"max_attempts": 1}}
ALLOW = "`allow_self: true` in the gate would allow it"
BOB, EVE = Principal("bob"), Principal("eve")


# -- tokens


def test_a_step_with_one_way_in_begins_on_a_live_token_and_is_skipped_on_a_dead_one() -> None:
    branch = [{"if": "result == true", "then": "b"}, {"else": "c"}]
    run = Table({"a": {**TOOL, "branch": branch}, "b": {**TOOL, "done": True}, "c": {**TOOL, "done": True}})
    run.done("a", result=True)
    assert run.state == {"a": "done", "b": "ready", "c": "skipped"}


def test_a_join_of_all_waits_for_every_token_and_sees_what_came_by_which_step() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "c"]},
            "b": {**TOOL, "join": "d"},
            "c": {**TOOL, "join": "d"},
            "d": {"tool": "echo", "args": {"got": "{{result}}"}, "done": True},
        }
    )
    run.done("c", 2)
    assert run.state == {"a": "done", "b": "ready", "c": "done", "d": "pending join"}
    run.done("b", 1)
    assert run.work[-1].args == {"got": {"b": 1, "c": 2}}
    run.done("d", "end")
    assert run.ended == ("completed", "end")


def test_all_means_all_that_were_taken() -> None:
    run = Table(
        {
            "a": {**TOOL, "branch": [{"if": "result == 1", "then": "b"}, {"else": "c"}]},
            "b": {**TOOL, "next": "d"},
            "c": {**TOOL, "next": "d"},
            "d": {"done": True},
        }
    )
    run.done("a", 1)
    run.done("b", "left")
    assert run.state == {"a": "done", "b": "done", "c": "skipped", "d": "done"}
    assert run.ended == ("completed", {"b": "left"})


def test_a_join_that_can_no_longer_get_n_live_tokens_is_skipped_and_the_run_is_stuck() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "c", "d"]},
            "b": {**ONCE, "join": "e", "optional": True},
            "c": {**ONCE, "join": "e", "optional": True},
            "d": {**ONCE, "join": "e"},
            "e": {"join_mode": 2, "done": True},
        }
    )
    run.failed("b")
    assert run.state["e"] == "pending join"
    run.failed("c")
    assert run.state["e"] == "skipped"
    run.done("d")
    message = "nothing is left to run and no step with `done: true` was reached"
    assert run.ended == ("failed", {"type": "stuck", "message": message})


def test_then_x_and_else_x_are_two_edges() -> None:
    run = Table(
        {
            "a": {**TOOL, "branch": [{"if": "result == 1", "then": "b"}, {"else": "b"}]},
            "b": {"done": True},
        }
    )
    run.done("a", 2)
    assert run.ended == ("completed", {"a": 2})


def test_a_join_of_any_sees_the_first_arrival_alone_even_when_two_come_by_one_message() -> None:
    run = Table(
        {
            "a": {**TOOL, "parallel": ["b", "c"]},
            "b": {"parallel": ["c", "d"]},
            "c": {"join_mode": "any", "next": "d"},
            "d": {"done": True},
        }
    )
    run.done("a", 1)
    assert run.ended == ("completed", {"b": 1, "c": {"a": 1}})


# -- losers


FIRST_WINS: Steps = {
    "a": {"parallel": ["b", "c", "d"]},
    "b": {**TOOL, "join": "e"},
    "c": {**TOOL, "join": "e"},
    "d": {"approval": {}, "join": "e"},
    "e": {"join_mode": "any", "done": True},
}


def test_when_any_fires_what_is_not_handed_over_is_cancelled_and_what_runs_is_asked_to_stop() -> None:
    run = Table(FIRST_WINS)
    run.sent("b")
    run.sent("c")
    run.done("b", "first")
    assert run.state == {"a": "done", "b": "done", "c": "running", "d": "cancelled", "e": "done"}
    assert run.last.effects == (StopStep(run.ref("c")),)
    assert run.run.status is RunStatus.RUNNING


@pytest.mark.parametrize("how", ["done", "failed", "lost", "postponed"])
def test_however_a_loser_ends_it_cannot_fail_the_run(how: str) -> None:
    run = Table(FIRST_WINS)
    run.sent("c")
    run.done("b", "first")
    getattr(run, how)("c")
    assert run.state["c"] == {"done": "done", "postponed": "cancelled"}.get(how, "failed")
    assert run.ended == ("completed", {"b": "first"})


def test_a_step_that_becomes_ready_and_is_lost_in_one_decision_is_not_handed_out() -> None:
    run = Table(
        {
            "a": {**TOOL, "parallel": ["b", "c"]},
            "b": {**TOOL, "join": "d"},
            "c": {"join": "d"},
            "d": {"join_mode": "any", "done": True},
        }
    )
    run.done("a", 1)
    assert run.state == {"a": "done", "b": "cancelled", "c": "done", "d": "done"}
    assert run.handed == ["a"]


# -- failing


def test_a_failed_attempt_is_followed_by_another_after_its_backoff() -> None:
    run = Table({"a": {**TOOL, "retry": {"max_attempts": 3, "backoff": [5, 60]}, "done": True}})
    run.failed("a")
    assert run.state == {"a": "pending retry #2"}
    assert run.run.attempts["a", -1].due_at == run.now + 5
    run.due("a")
    run.failed("a")
    assert run.run.attempts["a", -1].due_at == run.now + 60
    run.due("a")
    run.failed("a")
    assert run.state == {"a": "failed #3"}
    assert run.ended == ("failed", {"type": "ValueError", "message": "step a failed: no"})
    assert [work.ref.attempt for work in run.work] == [1, 2, 3]


def test_an_error_listed_in_no_retry_on_is_for_good() -> None:
    run = Table({"a": {**TOOL, "retry": {"no_retry_on": ["Fatal"]}, "done": True}})
    run.failed("a", "Fatal")
    assert run.ended == ("failed", {"type": "Fatal", "message": "step a failed: no"})


def test_on_error_is_the_way_out_and_tells_what_happened() -> None:
    run = Table(
        {
            "a": {**ONCE, "next": "b", "on_error": "c"},
            "b": {"done": True},
            "c": {"tool": "echo", "args": {"got": "{{result}}"}, "done": True},
        }
    )
    run.failed("a")
    assert run.state == {"a": "failed", "b": "skipped", "c": "ready"}
    assert run.work[-1].args == {"got": {"error": {"type": "ValueError", "message": "no"}}}


def test_when_a_run_fails_what_has_not_started_is_cancelled_and_what_runs_is_written_down() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "c", "d", "e"]},
            "b": {**ONCE, "join": "f"},
            "c": {**TOOL, "join": "f"},
            "d": {**TOOL, "join": "f"},
            "e": {"approval": {}, "join": "f"},
            "f": {"done": True},
        }
    )
    run.sent("c")
    run.failed("b")
    expected = {"a": "done", "b": "failed", "c": "running", "d": "cancelled", "e": "cancelled"}
    assert run.state == expected
    run.done("c", 1)
    assert run.state == {**expected, "c": "done"}
    assert run.ended == ("failed", {"type": "ValueError", "message": "step b failed: no"})


def test_no_branch_that_holds_and_no_else_fails_the_run_as_stuck() -> None:
    run = Table({"a": {**TOOL, "branch": [{"if": "result == 1", "then": "b"}]}, "b": {"done": True}})
    run.done("a", 2)
    assert run.state == {"a": "done"}
    assert run.ended == ("failed", {"type": "stuck", "message": "no branch of a holds and it has no else"})


def test_an_outcome_that_on_does_not_list_fails_the_step_which_keeps_no_result() -> None:
    run = Table(
        {
            "a": {**TOOL, "on": {"yes": "b"}, "on_error": "b"},
            "b": {"done": True},
        }
    )
    run.done("a", 1, event="no")
    message = "the tool of a named 'no', which `on` does not list"
    assert run.ended == ("completed", {"a": {"error": {"type": "unknown-event", "message": message}}})
    run.restart()
    assert "a" not in run.run.results


# -- lost workers


def test_a_vanished_worker_has_a_budget_of_its_own() -> None:
    run = Table({"a": {**ONCE, "done": True}})
    for attempt in (1, 2, 3):
        assert run.ref("a").attempt == attempt
        run.lost("a")
    run.lost("a", counted=False)
    assert run.state == {"a": "ready #5"}
    run.lost("a")
    message = "step a failed: the worker that ran attempt 5 vanished"
    assert run.ended == ("failed", {"type": "lost", "message": message})


def test_on_lost_hold_parks_the_step_for_a_person_every_time() -> None:
    run = Table({"a": {**ONCE, "on_lost": "hold", "done": True}})
    for attempt in range(2, 8):
        run.lost("a")
        assert run.state == {"a": f"pending person #{attempt}"}
        assert run.run.status is RunStatus.PAUSED
        run.ready("a")
    assert run.handed == ["a"] * 7


# -- late and repeated


def test_the_exact_repeat_of_a_report_is_silent_and_any_other_is_refused_with_the_reason() -> None:
    run = Table({"a": {**TOOL, "next": "b"}, "b": {**TOOL, "done": True}})
    run.done("a", 1)
    run.done("a", 1)
    assert run.told == []
    run.done("a", 2)
    assert [(event.type, event.data) for event in run.last.events] == [
        ("report_refused", {"report": "StepDone", "fence": 2, "reason": "the attempt is already done"})
    ]
    assert run.state == {"a": "done", "b": "ready"}


def test_a_report_of_an_older_attempt_is_refused() -> None:
    run = Table({"a": {**TOOL, "done": True}})
    old = run.ref("a")
    run.lost("a")
    run.say(StepDone(old, 1))
    reason = f"attempt 2 with fence {run.ref('a').fence} is the current one"
    assert [event.data for event in run.last.events] == [
        {"report": "StepDone", "fence": old.fence, "reason": reason}
    ]


# -- gates


GATE: Steps = {"g": {"approval": {}, "next": "b"}, "b": {**TOOL, "done": True}}


def test_a_gate_opens_for_a_person_and_approval_lets_the_run_go_on() -> None:
    run = Table(GATE)
    assert (run.state, run.run.status) == ({"g": "pending approval"}, RunStatus.PAUSED)
    assert run.decide("g") == Answer(ok=True, data={"decided": True, "approved": True})
    assert (run.state, run.run.status) == ({"g": "done", "b": "ready"}, RunStatus.RUNNING)


@pytest.mark.parametrize(
    ("gate", "by", "reason", "code"),
    [
        (
            {},
            STARTER,
            f"starter started this run and may not decide its gate g ({ALLOW})",
            "forbidden",
        ),
        ({}, Principal("bot", Kind.AGENT), "bot is an agent; only a person may decide a gate", "forbidden"),
        (
            {"approvers": ["bob", "group:ops"]},
            ANN,
            "ann is not an approver of g; it waits for bob, group:ops",
            "forbidden",
        ),
        ({"require_comment": True}, ANN, "g asks for a comment; give one", "invalid-input"),
    ],
)
def test_who_may_not_decide_is_told_why(gate: Document, by: Principal, reason: str, code: str) -> None:
    run = Table({"g": {"approval": gate, "next": "b"}, "b": {**TOOL, "done": True}})
    assert run.decide("g", by) == Answer(ok=False, reason=reason, code=code)
    assert run.last.events == ()
    assert run.state == {"g": "pending approval"}


def test_a_decision_that_names_an_attempt_counts_for_no_other() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "g"]},
            "b": {"tool": "echo", "retry": {"max_attempts": 1}, "done": True},
            "g": {"approval": {}, "done": True},
        }
    )
    run.failed("b")
    run.retry()
    assert run.state["g"] == "pending approval #2"
    reason = "this decision is for attempt 1 of g, attempt 2 is open"
    assert run.decide("g", attempt=1) == Answer(ok=False, reason=reason)
    assert run.decide("g", attempt=2, approve=False) == Answer(
        ok=True, data={"decided": True, "approved": False}
    )


def test_a_quorum_takes_as_many_different_people() -> None:
    run = Table({"g": {"approval": {"quorum": 2}, "done": True}})
    assert run.decide("g") == Answer(ok=True, data={"decided": False, "votes": 1, "quorum": 2})
    assert run.decide("g") == Answer(ok=False, reason="ann has already voted at g")
    run.restart()
    run.decide("g", BOB, comment="fine")
    votes = [
        {"by": "ann", "approved": True, "comment": "", "form": None},
        {"by": "bob", "approved": True, "comment": "fine", "form": None},
    ]
    result = {"approved": True, "by": ["ann", "bob"], "comment": "fine", "form": None, "votes": votes}
    assert run.ended == ("completed", result)


def test_one_deny_cancels_the_run_or_takes_on_deny() -> None:
    run = Table({"g": {"approval": {"quorum": 3}, "done": True}})
    run.decide("g", approve=False, comment="not today")
    assert run.state == {"g": "failed"}
    assert run.ended == ("cancelled", {"type": "denied", "message": "g was denied by ann: not today"})
    other = Table(
        {"g": {"approval": {"on_deny": "c"}, "next": "b"}, "b": {"done": True}, "c": {"done": True}}
    )
    other.decide("g", approve=False)
    assert other.state == {"g": "done", "b": "skipped", "c": "done"}


def test_a_gate_that_nobody_answers_is_denied_or_approved_as_the_flow_says() -> None:
    denied = Table({"g": {"approval": {"timeout_s": 60}, "done": True}})
    denied.due("g")
    message = "g was denied by timeout: nobody decided in time"
    assert denied.ended == ("cancelled", {"type": "denied", "message": message})
    approved = Table({"g": {"approval": {"timeout_s": 60, "on_timeout": "approve"}, "done": True}})
    approved.due("g")
    assert approved.ended == ("completed", {"approved": True, "by": ["timeout"], "comment": "", "form": None})


def test_escalation_adds_approvers_keeps_votes_and_restarts_the_clock_once() -> None:
    gate: Document = {
        "approvers": ["ann", "bob"],
        "quorum": 2,
        "timeout_s": 60,
        "on_timeout": "escalate",
        "escalate_to": ["eve"],
    }
    run = Table({"g": {"approval": gate, "done": True}})
    run.decide("g")
    refused = Answer(ok=False, reason="eve is not an approver of g; it waits for ann, bob", code="forbidden")
    assert run.decide("g", EVE) == refused
    run.due("g")
    assert run.run.attempts["g", -1].due_at == run.now + 60
    run.decide("g", EVE)
    assert run.ended[0] == "completed"


def test_escalation_does_not_narrow_a_gate_that_anybody_may_decide() -> None:
    gate: Document = {"timeout_s": 60, "on_timeout": "escalate", "escalate_to": ["eve"]}
    run = Table({"g": {"approval": gate, "done": True}})
    run.due("g")
    assert run.decide("g", BOB) == Answer(ok=True, data={"decided": True, "approved": True})


def test_what_the_approver_saw_is_what_runs() -> None:
    run = Table(
        {
            "a": {"parallel": ["g", "c"]},
            "c": {**TOOL, "next": "d"},
            "g": {"approval": {}, "next": "b"},
            "b": {"tool": "echo", "args": {"x": "{{steps.c.result ?? 'not yet'}}"}, "next": "d"},
            "d": {"done": True},
        }
    )
    run.done("c", "now")
    run.restart()
    run.decide("g")
    assert run.work[-1].args == {"x": "not yet"}


def test_a_denied_gate_that_is_done_has_not_reached_done() -> None:
    run = Table(
        {
            "a": {"parallel": ["g", "b"]},
            "g": {"approval": {"on_deny": "c"}, "done": True},
            "b": {**TOOL, "next": "c"},
            "c": {"join_mode": "any", "done": True},
        }
    )
    run.done("b", 1)
    run.decide("g", approve=False)
    assert run.ended == ("completed", {"b": 1})


# -- waits and timers


def test_a_signal_is_kept_until_somebody_waits_for_it() -> None:
    run = Table({"a": {**TOOL, "next": "w"}, "w": {"wait": {"signal": "paid"}, "done": True}})
    assert run.signal("paid", 7) == Answer(ok=True, data={"taken_by": None})
    run.restart()
    run.done("a")
    assert run.ended == ("completed", 7)


def test_a_signal_that_no_step_waits_for_is_refused() -> None:
    run = Table({"w": {"wait": {"signal": "paid"}, "done": True}})
    reason = "no step of f waits for the signal payd; it waits for paid"
    assert run.signal("payd") == Answer(ok=False, reason=reason)


def test_a_wait_that_times_out_takes_its_way_or_fails() -> None:
    wait: Document = {"signal": "paid", "timeout_s": 60}
    run = Table(
        {"w": {"wait": {**wait, "on_timeout": "b"}, "next": "c"}, "b": {"done": True}, "c": {"done": True}}
    )
    run.due("w")
    assert run.state == {"w": "done", "c": "skipped", "b": "done"}
    other = Table({"w": {"wait": wait, "done": True}})
    other.due("w")
    message = "step w failed: the signal did not come in time"
    assert other.ended == ("failed", {"type": "timeout", "message": message})


def test_an_early_wake_up_only_looks_at_the_clock() -> None:
    run = Table({"d": {"delay": 60, "done": True}})
    run.say(TimerDue(run.run.id, "d", -1, 1))
    assert (run.state, run.last.events) == ({"d": "pending time"}, ())
    run.due("d")
    assert run.ended == ("completed", None)


# -- foreach


def each(**more: object) -> Steps:
    body: Document = {"items": "{{input}}", "tool": "echo", "args": {"x": "{{item}}"}, **more}
    return {"a": {"foreach": body, "retry": {"max_attempts": 1}, "done": True}}


def test_a_foreach_keeps_its_concurrency_and_the_order_of_its_results() -> None:
    run = Table(each(concurrency=2), ["x", "y", "z"])
    assert run.handed == ["a[0]", "a[1]"]
    run.done("a", "Y", item=1)
    run.restart()
    assert run.handed == ["a[0]", "a[1]", "a[2]"]
    run.done("a", "Z", item=2)
    run.done("a", "X", item=0)
    assert run.ended == ("completed", ["X", "Y", "Z"])


def test_a_foreach_over_nothing_ends_at_once() -> None:
    assert Table(each(), []).ended == ("completed", [])


def test_a_failed_item_lets_the_running_ones_end_and_then_fails_the_step() -> None:
    run = Table(each(concurrency=2), [1, 2, 3])
    run.sent("a", 0)
    run.sent("a", 1)
    run.failed("a", item=0)
    assert run.state == {"a": "pending items", "a[0]": "failed", "a[1]": "running"}
    run.done("a", item=1)
    assert run.ended == ("failed", {"type": "ValueError", "message": "step a failed: item 0 failed: no"})


def test_collect_puts_the_error_in_the_items_place() -> None:
    run = Table(each(on_item_error="collect"), [1, 2])
    run.failed("a", item=0)
    run.done("a", 2, item=1)
    assert run.ended == ("completed", [{"error": {"type": "ValueError", "message": "no"}}, 2])


def test_items_see_the_result_that_came_in_also_after_a_restart() -> None:
    body: Document = {"items": [1, 2], "tool": "echo", "args": {"came": "{{result}}"}, "concurrency": 1}
    run = Table({"a": {**TOOL, "next": "b"}, "b": {"foreach": body, "done": True}})
    run.done("a", "in")
    run.restart()
    run.done("b", item=0)
    assert [work.args for work in run.work[1:]] == [{"came": "in"}, {"came": "in"}]


# -- sub-flows


def test_a_sub_run_ends_its_step_well_or_fails_it() -> None:
    steps: Steps = {"a": {"flow": {"name": "child"}, "done": True}}
    run = Table(steps)
    assert run.state == {"a": "pending flow"}
    run.child("a", "out")
    assert run.ended == ("completed", "out")
    other = Table(steps)
    other.child("a", status=RunStatus.FAILED)
    assert other.ended == ("failed", {"type": "sub-run-failed", "message": "step a failed: no"})


def test_a_sub_run_that_takes_too_long_is_cancelled_and_its_step_fails() -> None:
    run = Table({"a": {"flow": {"name": "child"}, "timeout_s": 45, "done": True}})
    run.due("a")
    cancelled = [effect for effect in run.last.effects if isinstance(effect, CancelChild)]
    assert [effect.reason for effect in cancelled] == ["it took too long"]
    message = "step a failed: the sub-run did not end within 45 s"
    assert run.ended == ("failed", {"type": "timeout", "message": message})


def test_cancelling_a_run_cancels_its_sub_runs_but_not_one_that_has_not_begun() -> None:
    steps: Steps = {"a": {**TOOL, "next": "b"}, "b": {"flow": {"name": "child"}, "done": True}}
    run = Table(steps)
    run.done("a")
    run.cancel()
    assert [type(effect) for effect in run.last.effects] == [CancelChild]
    held = Table(steps)
    held.hold()
    held.done("a")
    held.cancel()
    assert held.last.effects == ()


# -- hold, cancel, later


def test_a_held_run_takes_reports_and_starts_nothing_until_it_is_resumed() -> None:
    steps: Steps = {
        "a": {**TOOL, "parallel": ["b", "c"]},
        "b": {**TOOL, "join": "d"},
        "c": {"flow": {"name": "child"}, "join": "d"},
        "d": {"done": True},
    }
    run = Table(steps)
    run.hold()
    run.done("a")
    assert run.state == {"a": "done", "b": "ready", "c": "pending flow"}
    assert (run.handed, run.children, run.run.status) == (["a"], [], RunStatus.PAUSED)
    run.restart()
    run.resume()
    assert (run.handed, [ref.step for ref in run.children]) == (["a", "b"], ["c"])
    assert run.run.status is RunStatus.RUNNING


def test_timers_of_a_held_run_act_after_it_is_resumed() -> None:
    run = Table({"d": {"delay": 5, "done": True}})
    run.hold()
    run.due("d")
    assert run.state == {"d": "pending time"}
    run.resume()
    run.due("d")
    assert run.ended == ("completed", None)


def test_a_cancelled_run_starts_nothing_and_says_who_cancelled_it() -> None:
    run = Table({"a": {**TOOL, "next": "b"}, "b": {**TOOL, "done": True}})
    run.sent("a")
    assert run.cancel("enough") == Answer(ok=True, data={"status": "cancelled"})
    assert run.last.effects == (StopStep(run.ref("a")),)
    run.done("a")
    assert run.state == {"a": "done"}
    assert run.ended == ("cancelled", {"type": "cancelled", "message": "cancelled by ann: enough"})


def test_a_tool_that_said_later_is_ended_by_anybody_who_may_or_by_its_time() -> None:
    run = Table({"a": {**ONCE, "timeout_s": 60, "done": True}})
    run.postponed("a")
    assert run.state == {"a": "pending report"}
    assert run.end("a", 5) == Answer(ok=True)
    assert run.ended == ("completed", 5)
    other = Table({"a": {**ONCE, "timeout_s": 60, "done": True}})
    other.postponed("a")
    other.due("a")
    message = "step a failed: no report came within 60 s"
    assert other.ended == ("failed", {"type": "timeout", "message": message})


@pytest.mark.parametrize(
    ("step", "state"),
    [
        ({"approval": {}}, "done"),
        ({"wait": {"signal": "go"}}, "done"),
        ({"delay": 60}, "done"),
        ({"flow": {"name": "child"}}, "pending flow"),
        ({"tool": "echo"}, "ready"),
    ],
)
def test_ready_lets_a_gate_wait_or_delay_go_on_and_nothing_else(step: Document, state: str) -> None:
    run = Table({"a": {**step, "done": True}})
    answer = run.ready("a")
    assert run.state == {"a": state}
    assert answer is not None
    assert answer.ok == (state == "done")


def test_the_output_is_the_template_or_else_the_result_of_the_last_done() -> None:
    steps: Steps = {"a": {"parallel": ["b", "c"]}, "b": {**TOOL, "done": True}, "c": {**TOOL, "done": True}}
    run = Table(steps)
    run.done("c", 3)
    run.done("b", 2)
    assert run.ended == ("completed", 2)
    other = Table(steps, output={"sum": "{{steps.b.result + steps.c.result}}"})
    other.done("c", 3)
    other.done("b", 2)
    assert other.ended == ("completed", {"sum": 5})


# -- an operator's retry


def test_a_retried_run_goes_on_from_what_failed_with_fresh_budgets() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "c", "g"]},
            "b": {**ONCE, "join": "d"},
            "c": {**TOOL, "join": "d"},
            "g": {"approval": {}, "join": "d"},
            "d": {"done": True},
        }
    )
    run.sent("c")
    run.failed("b")
    refused = Answer(ok=False, reason="a step of the run is still running; retry when it has ended")
    assert run.retry() == refused
    run.done("c", "late")
    assert run.retry() == Answer(ok=True, data={"status": "running"})
    assert run.state == {
        "a": "done",
        "b": "ready #2",
        "c": "done",
        "g": "pending approval #2",
        "d": "pending join",
    }
    run.done("b", "again")
    run.decide("g")
    assert run.ended[0] == "completed"


def test_only_a_failed_run_can_be_retried() -> None:
    run = Table({"g": {"approval": {}, "done": True}})
    run.decide("g", approve=False)
    reason = "only a failed run can be retried; this one is cancelled"
    assert run.retry() == Answer(ok=False, reason=reason)


def test_a_retry_delivers_the_tokens_that_were_on_their_way_when_the_run_failed() -> None:
    run = Table(
        {
            "a": {"parallel": ["x", "p"]},
            "x": {**TOOL, "join": "d"},
            "p": {**TOOL, "parallel": ["b", "c"]},
            "b": {"tool": "echo", "args": {"x": "{{steps.x.result}}"}, "join": "d"},
            "c": {**TOOL, "join": "d"},
            "d": {"done": True},
        }
    )
    run.sent("x")
    run.done("p")
    assert run.state == {"a": "done", "x": "running", "p": "done", "b": "failed"}
    run.done("x", 1)
    run.retry()
    assert run.state == {
        "a": "done",
        "x": "done",
        "p": "done",
        "b": "ready #2",
        "c": "ready",
        "d": "pending join",
    }


def test_a_retry_counts_the_tokens_that_were_sent_to_a_join_when_the_run_failed() -> None:
    branch = [{"if": "result == 1", "then": "d"}]
    run = Table(
        {
            "a": {"parallel": ["b", "c", "e"]},
            "b": {**ONCE, "join": "d"},
            "c": {"tool": "echo", "parallel": ["f", "d"]},
            "f": {**ONCE, "branch": branch},
            "e": {**TOOL, "join": "d"},
            "d": {"done": True},
        }
    )
    run.done("e", "e")
    run.done("c", "c")
    run.sent("f")
    run.failed("b")
    run.done("f", 1)
    run.retry()
    run.done("b", "b")
    assert run.ended == ("completed", {"b": "b", "c": "c", "e": "e", "f": 1})


def test_a_retry_counts_a_token_once_when_one_join_waits_for_another() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "c", "x", "j"]},
            "b": {**ONCE, "on_error": "j", "join": "k"},
            "c": {**TOOL, "join": "j"},
            "x": {**ONCE, "join": "k"},
            "j": {**TOOL, "join_mode": 3, "next": "k"},
            "k": {"join_mode": 2, "done": True},
        }
    )
    run.done("c")
    run.sent("b")
    run.failed("x")
    assert run.state == {
        "a": "done",
        "b": "running",
        "c": "done",
        "x": "failed",
        "j": "cancelled",
    }
    run.done("b", "b")
    run.retry()
    assert run.state["j"] == "skipped #2"
    assert run.state["k"] == "pending join"
    run.done("x", "x")
    assert run.ended == ("completed", {"b": "b", "x": "x"})


def test_a_retry_takes_the_way_that_a_tool_named_while_its_run_was_down() -> None:
    run = Table(
        {
            "a": {"parallel": ["b", "c"]},
            "b": {**TOOL, "on": {"yes": "d", "no": "e"}},
            "c": {**ONCE, "join": "e"},
            "d": {"join": "e"},
            "e": {"done": True},
        }
    )
    run.sent("b")
    run.failed("c")
    run.done("b", 7, event="yes")
    run.retry()
    run.done("c", 8)
    assert run.ended == ("completed", {"c": 8, "d": 7})


def test_a_retry_repeats_the_failed_items_only() -> None:
    run = Table(each(concurrency=2), [1, 2, 3])
    run.done("a", "one", item=0)
    run.sent("a", 2)
    run.failed("a", item=1)
    run.done("a", "three", item=2)
    run.retry()
    assert run.state == {"a": "pending items #2", "a[0]": "done", "a[1]": "ready #2", "a[2]": "done"}
    run.restart()
    run.done("a", "two", item=1)
    assert run.ended == ("completed", ["one", "two", "three"])


def test_a_branch_of_else_alone_is_taken() -> None:
    run = Table({"a": {**TOOL, "branch": [{"else": "b"}]}, "b": {"done": True}})
    run.done("a", 5)
    assert run.ended == ("completed", 5)
