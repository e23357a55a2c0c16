"""Runs through the executor on real tables: starting, going on, ending, repeating."""

from __future__ import annotations

import dataclasses

from tests.executor.desk import ANN, BOB, Desk
from wfcelery.core.messages import (
    Cancel,
    Decide,
    EndStep,
    Hold,
    Kind,
    Principal,
    Resume,
    RetryRun,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReady,
)
from wfcelery.core.state import Error
from wfcelery.core.values import Json
from wfcelery.embedded.engine import new_run_id
from wfcelery.executor.messages import Define, Retire, Start
from wfcelery.store import commands

CHAIN: Json = {
    "name": "chain",
    "start": "a",
    "steps": {
        "a": {"tool": "echo", "args": {"value": "{{input.x}}"}, "next": "b"},
        "b": {"tool": "echo", "args": {"value": "{{result}}"}, "done": True},
    },
}
GATED: Json = {
    "name": "gated",
    "start": "ask",
    "steps": {
        "ask": {"approval": {}, "next": "act"},
        "act": {"tool": "echo", "args": {"value": "{{input.x}}"}, "done": True},
    },
}


def types(desk: Desk, run_id: str) -> list[object]:
    return [event["type"] for event in desk.events(run_id)]


def test_a_chain_is_ready_then_running_then_done_and_its_history_says_so(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 7})
    assert desk.states(run) == {"a": "running"}
    assert desk.take("a").prepared.args == {"value": 7}
    desk.done("a", 7)
    desk.done("b", 8)
    seen = desk.run(run)
    assert (seen["status"], seen["output"], seen["error"]) == ("completed", 8, None)
    assert types(desk, run) == [
        "run_started",
        "step_ready",
        "step_running",
        "step_done",
        "step_ready",
        "step_running",
        "step_done",
        "done_reached",
        "run_completed",
    ]


def test_the_same_start_twice_is_one_run(desk: Desk) -> None:
    request = Start("c1", new_run_id(desk.clock.now()), CHAIN, {"x": 1}, ANN)
    first, again = desk.ask(request), desk.ask(request)
    other_command = desk.ask(dataclasses.replace(request, command_id="c2"))
    assert first == again
    assert first.data == {"run_id": request.run_id, "created": True}
    assert other_command.data == {"run_id": request.run_id, "created": False}
    assert len(desk.out.sent) == 1


def test_the_same_id_with_another_input_is_a_conflict(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    answer = desk.ask(Start("c2", run, CHAIN, {"x": 2}, ANN))
    assert (answer.ok, answer.code) == (False, "conflict")
    assert answer.reason == f"run {run} exists with another flow or input"


def test_a_live_key_gives_the_first_run_and_is_free_when_it_has_ended(desk: Desk) -> None:
    flow = {**CHAIN, "key": "{{input.x}}"}  # type: ignore[dict-item]
    first = desk.start(flow, {"x": "A7"})
    assert desk.start(flow, {"x": "A7"}) == first
    refused = desk.ask(
        Start("c9", new_run_id(desk.clock.now()), flow, {"x": "A7"}, ANN, refuse_conflict=True)
    )
    assert (refused.ok, refused.reason) == (False, f"run {first} is live under the key A7")
    desk.done("a", 1)
    desk.done("b", 1)
    assert desk.start(flow, {"x": "A7"}) != first


def test_two_starts_under_one_key_in_one_batch_are_one_run(desk: Desk) -> None:
    flow = {**CHAIN, "key": "{{input.x}}"}  # type: ignore[dict-item]
    ids = [new_run_id(desk.clock.now()) for _ in range(2)]
    desk.tell(*(Start(f"c{n}", run, flow, {"x": "A7"}, ANN) for n, run in enumerate(ids)))
    assert len(desk.out.sent) == 1


def test_an_exact_repeat_is_silent_and_a_conflicting_report_is_recorded(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    report = desk.done("a", 1)
    before = desk.events(run)
    desk.tell(report, report)
    assert desk.events(run) == before
    assert isinstance(report, StepDone)
    desk.tell(dataclasses.replace(report, result="other"))
    last = desk.events(run)[-1]
    assert last["type"] == "report_refused"
    assert last["data"] == {"report": "StepDone", "fence": 2, "reason": "the attempt is already done"}


def test_a_report_of_an_attempt_that_was_given_up_is_refused(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    first = desk.take("a").ref
    desk.tell(StepLost(first))
    assert desk.take("a").ref.attempt == 2
    desk.tell(StepDone(first, "late"))
    assert desk.states(run) == {"a": "running"}
    assert desk.events(run)[-1]["type"] == "report_refused"
    desk.done("a", "in time")
    desk.done("b", "end")
    assert desk.run(run)["output"] == "end"


def test_a_step_that_kills_its_worker_each_time_ends_as_failed(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    for _ in range(4):
        desk.tell(StepLost(desk.take("a").ref))
    seen = desk.run(run)
    assert seen["status"] == "failed"
    assert seen["error"] == {
        "type": "lost",
        "message": "step a failed: the worker that ran attempt 4 vanished",
    }


def test_on_lost_hold_parks_the_step_for_a_person(desk: Desk) -> None:
    flow: Json = {
        "start": "pay",
        "steps": {"pay": {"tool": "echo", "on_lost": "hold", "done": True}},
        "name": "pay",
    }
    run = desk.start(flow)
    desk.tell(StepLost(desk.take("pay").ref))
    assert desk.run(run)["status"] == "paused"
    assert len(desk.out.sent) == 1
    assert desk.ask(StepReady("c1", run, "pay", BOB)).ok
    desk.done("pay", "paid")
    assert desk.run(run)["output"] == "paid"


def test_a_failed_attempt_is_tried_again_when_its_time_has_come_and_not_before(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    desk.failed("a")
    desk.clock.advance(29.999)
    desk.tell()
    assert len(desk.out.sent) == 1
    desk.clock.advance(0.001)
    desk.tell()
    assert [each.ref.attempt for each in desk.out.sent] == [1, 2]
    desk.failed("a")
    desk.clock.advance(120)
    desk.tell()
    desk.failed("a", "for good")
    seen = desk.run(run)
    assert (seen["status"], seen["error"]) == (
        "failed",
        {"type": "ValueError", "message": "step a failed: for good"},
    )


def test_a_run_goes_on_after_a_crash_at_any_moment(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    desk.restart()
    desk.done("a", 1)
    desk.restart()
    desk.done("b", 2)
    assert desk.run(run)["output"] == 2


def test_a_gate_waits_and_the_starter_may_not_decide_it(desk: Desk) -> None:
    run = desk.start(GATED, {"x": 1})
    assert desk.run(run)["status"] == "paused"
    refused = desk.ask(Decide("c1", run, "ask", approve=True, by=ANN))
    own = (
        "ann started this run and may not decide its gate ask (`allow_self: true` in the gate would allow it)"
    )
    assert (refused.ok, refused.reason) == (False, own)
    agent = desk.ask(Decide("c2", run, "ask", approve=True, by=Principal("bot", Kind.AGENT)))
    assert agent.reason == "bot is an agent; only a person may decide a gate"
    assert desk.out.sent == []
    assert desk.ask(Decide("c3", run, "ask", approve=True, by=BOB)).ok
    again = desk.ask(Decide("c4", run, "ask", approve=False, by=Principal("carl")))
    assert again.reason == "ask is not waiting: it is done"
    desk.done("act", "acted")
    assert desk.run(run)["output"] == "acted"


def test_a_denied_gate_cancels_the_run_and_cannot_be_revived(desk: Desk) -> None:
    run = desk.start(GATED, {"x": 1})
    assert desk.ask(Decide("c1", run, "ask", approve=False, by=BOB, comment="too much")).ok
    seen = desk.run(run)
    assert (seen["status"], seen["error"]) == (
        "cancelled",
        {"type": "denied", "message": "ask was denied by bob: too much"},
    )
    for request in (
        Decide("c2", run, "ask", approve=True, by=BOB),
        RetryRun("c3", run, BOB),
        Resume("c4", run, BOB),
    ):
        assert not desk.ask(request).ok
    assert desk.out.sent == []


def test_what_the_approver_saw_is_what_runs(desk: Desk) -> None:
    run = desk.start(GATED, {"x": "seen"})
    (gate,) = desk.run(run)["steps"]
    assert gate["args"] == {"act": {"args": {"value": "seen"}}}
    desk.restart()
    desk.ask(Decide("c1", run, "ask", approve=True, by=BOB))
    assert desk.take("act").prepared.args == {"value": "seen"}


def test_a_held_run_sends_nothing_and_its_timers_act_on_resume(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    assert desk.ask(Hold("c1", run, BOB)).ok
    desk.done("a", 1)
    assert [each.ref.step for each in desk.out.sent] == ["a"]
    assert desk.run(run)["status"] == "paused"
    desk.restart()
    assert desk.ask(Resume("c2", run, BOB)).ok
    assert [each.ref.step for each in desk.out.sent] == ["a", "b"]


def test_a_timer_that_ran_out_while_the_run_was_held_acts_on_resume(desk: Desk) -> None:
    run = desk.start(
        {"name": "d", "start": "a", "steps": {"a": {"delay": 60, "next": "b"}, "b": {"done": True}}}
    )
    desk.ask(Hold("c1", run, BOB))
    desk.clock.advance(600)
    desk.tell()
    assert desk.states(run) == {"a": "pending"}
    desk.ask(Resume("c2", run, BOB))
    desk.tell()
    assert desk.run(run)["status"] == "completed"


def test_cancel_stops_what_has_not_begun_and_records_what_still_runs(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    assert desk.ask(Cancel("c1", run, BOB, "no need")).ok
    assert [ref.step for ref in desk.out.stopped] == ["a"]
    desk.done("a", "after the end")
    seen = desk.run(run)
    assert (seen["status"], seen["error"]) == (
        "cancelled",
        {"type": "cancelled", "message": "cancelled by bob: no need"},
    )
    assert desk.states(run) == {"a": "done"}
    assert len(desk.out.sent) == 1


def test_a_failed_run_that_is_retried_goes_on_from_what_failed(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    desk.done("a", 1)
    desk.failed("b", "for good", retry=False)
    assert desk.run(run)["status"] == "failed"
    assert desk.ask(RetryRun("c1", run, BOB)).ok
    assert (desk.take("b").ref.attempt, desk.take("b").prepared.args) == (2, {"value": 1})
    desk.done("b", "at last")
    seen = desk.run(run)
    assert (seen["status"], seen["output"], seen["error"]) == ("completed", "at last", None)
    assert not desk.ask(RetryRun("c2", run, BOB)).ok


def test_a_tool_that_says_later_is_ended_from_outside(desk: Desk) -> None:
    run = desk.start(CHAIN, {"x": 1})
    desk.tell(StepPostponed(desk.take("a").ref, "w1"))
    assert desk.states(run) == {"a": "pending"}
    assert desk.ask(EndStep("c1", run, "a", BOB, result="from outside")).ok
    assert desk.take("b").prepared.args == {"value": "from outside"}
    refused = desk.ask(EndStep("c2", run, "a", BOB, error=Error("x", "y")))
    assert refused.reason == "a is not waiting: it is done"


def test_an_outcome_that_nobody_takes_is_refused_from_outside(desk: Desk) -> None:
    step: Json = {"tool": "echo", "on": {"good": "b"}}
    run = desk.start({"name": "o", "start": "a", "steps": {"a": step, "b": {"done": True}}})
    desk.tell(StepPostponed(desk.take("a").ref, "w1"))
    refused = desk.ask(EndStep("c1", run, "a", BOB, event="bad"))
    assert refused.reason == "the tool of a named 'bad', which `on` does not list"
    assert desk.ask(EndStep("c2", run, "a", BOB, event="good")).ok
    assert desk.run(run)["status"] == "completed"


def test_old_answers_are_forgotten(desk: Desk) -> None:
    request = Start("c1", new_run_id(desk.clock.now()), CHAIN, {"x": 1}, ANN)
    desk.ask(request)
    desk.clock.advance(8 * 86_400)
    desk.tell()
    with desk.database.reading() as conn:
        assert commands.get_many(conn, ["c1"]) == {}
    assert desk.ask(request).data == {"run_id": request.run_id, "created": False}


def test_a_definition_is_the_same_until_it_says_something_else(desk: Desk) -> None:
    one = desk.ask(Define("d1", CHAIN, ANN))
    same = desk.ask(Define("d2", CHAIN, BOB))
    two = desk.ask(Define("d3", {**CHAIN, "description": "new"}, ANN))  # type: ignore[dict-item]
    assert (one.data["version"], same.data["version"], two.data["version"]) == (1, 1, 2)
    assert one.data["id"] == same.data["id"] != two.data["id"]
    assert desk.run(desk.start("chain@1", {"x": 1}))["version"] == 1
    assert desk.run(desk.start("chain", {"x": 1}))["version"] == 2
    assert desk.ask(Retire("d4", "chain@2", ANN)).ok
    assert desk.run(desk.start("chain", {"x": 1}))["version"] == 1


def test_an_unknown_definition_or_run_is_not_found(desk: Desk) -> None:
    start = desk.ask(Start("c1", new_run_id(desk.clock.now()), "nowhere", {}, ANN))
    assert (start.code, start.reason) == (
        "not-found",
        "no definition nowhere; `wfcelery definitions` lists what there is",
    )
    cancel = desk.ask(Cancel("c2", new_run_id(0.0), ANN))
    assert cancel.code == "not-found"


def test_a_flow_with_faults_is_refused_with_all_of_them_and_nothing_is_kept(desk: Desk) -> None:
    bad: Json = {"name": "bad", "start": "a", "steps": {"a": {"tool": "ecko", "next": "b"}}}
    answer = desk.ask(Define("d1", bad, ANN))
    assert (answer.ok, answer.code) == (False, "invalid-flow")
    codes = [fault["code"] for fault in desk.faults(answer)]
    assert sorted(codes) == ["unknown-step", "unknown-tool"]
    assert desk.ask(Start("c1", new_run_id(0.0), "bad", {}, ANN)).code == "not-found"


def test_an_input_that_does_not_fit_the_schema_starts_nothing(desk: Desk) -> None:
    schema: Json = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    answer = desk.ask(Start("c1", new_run_id(0.0), {**CHAIN, "input": schema}, {"x": "3"}, ANN))  # type: ignore[dict-item]
    assert (answer.code, answer.reason) == (
        "invalid-input",
        "the input does not fit chain: x: '3' is not of type 'integer'",
    )
    assert desk.out.sent == []


def test_a_secret_stays_a_reference_in_tables_and_messages(desk: Desk) -> None:
    flow: Json = {
        "name": "call",
        "start": "a",
        "steps": {"a": {"tool": "echo", "args": {"auth": "Bearer {{secret.TOKEN}}"}, "done": True}},
    }
    run = desk.start(flow)
    (step,) = desk.run(run)["steps"]
    assert step["args"] == {"auth": "Bearer {{secret.TOKEN}}"}
    assert desk.take("a").prepared.secrets == {"/auth": ["Bearer ", {"secret": "TOKEN"}]}


def test_a_failure_in_one_branch_cancels_what_has_not_started_and_lets_the_rest_finish(desk: Desk) -> None:
    flow: Json = {
        "name": "split",
        "start": "go",
        "steps": {
            "go": {"parallel": ["left", "right"]},
            "left": {"tool": "echo", "next": "both"},
            "right": {"tool": "echo", "next": "both"},
            "both": {"tool": "echo", "done": True},
        },
    }
    run = desk.start(flow)
    desk.failed("left", "broken", retry=False)
    desk.done("right", 1)
    assert desk.states(run) == {"go": "done", "left": "failed", "right": "done"}
    assert desk.run(run)["status"] == "failed"
    assert desk.ask(RetryRun("c1", run, BOB)).ok
    desk.done("left", 2)
    assert desk.take("both").prepared.args == {}
    desk.done("both", 3)
    assert desk.run(run)["output"] == 3


def test_a_report_that_names_no_retry_on_is_final(desk: Desk) -> None:
    flow: Json = {
        "name": "once",
        "start": "a",
        "steps": {"a": {"tool": "echo", "retry": {"no_retry_on": ["shop.Declined"]}, "done": True}},
    }
    run = desk.start(flow)
    desk.tell(StepFailed(desk.take("a").ref, Error("Declined", "no money"), ("Declined", "shop.Declined")))
    assert desk.run(run)["error"] == {"type": "Declined", "message": "step a failed: no money"}


def test_a_missing_input_of_the_flat_form_is_empty_text_with_a_warning(desk: Desk) -> None:
    flow: Json = {
        "start": {
            "name": "ask",
            "tool": "echo",
            "args": {"id": "{{input.doc_id}}"},
            "branch": [{"if": "input.kind == 'large'", "then": "large"}, {"else": "small"}],
        },
        "large": {"done": True},
        "small": {"done": True},
    }
    run = desk.start(flow)
    assert desk.take("ask").prepared.args == {"id": ""}
    desk.done("ask", 1)
    assert desk.states(run) == {"ask": "done", "large": "skipped", "small": "done"}
    warnings = [event["data"] for event in desk.events(run) if event["type"] == "input_missing"]
    assert warnings == [{"names": ["input.doc_id"]}, {"names": ["input.kind"]}]
