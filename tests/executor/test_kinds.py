"""The kinds of steps through the executor: foreach, sub-flows, signals, timers, votes."""

from __future__ import annotations

import pytest

from tests.executor.desk import ANN, BOB, Desk
from wfcelery.core.ids import child_id
from wfcelery.core.messages import (
    Cancel,
    Decide,
    Hold,
    Principal,
    Resume,
    RetryRun,
    Signal,
    StepDone,
    StepFailed,
)
from wfcelery.core.state import Error
from wfcelery.core.values import Json
from wfcelery.embedded.engine import new_run_id
from wfcelery.executor.messages import Broadcast, Define, Start


def each(**more: Json) -> Json:
    foreach: dict[str, Json] = {
        "items": "{{input.items}}",
        "tool": "echo",
        "args": {"value": "{{item}}"},
        **more,
    }
    return {"name": "each", "start": "work", "steps": {"work": {"foreach": foreach, "done": True}}}


def waiting(**more: Json) -> Json:
    wait: dict[str, Json] = {"signal": "paid", **more}
    return {"name": "shop", "start": "wait", "steps": {"wait": {"wait": wait, "done": True}}}


CHILD: Json = {
    "name": "child",
    "start": "work",
    "steps": {"work": {"tool": "echo", "args": {"value": "{{input.n}}"}, "done": True}},
}
PARENT: Json = {
    "name": "parent",
    "start": "call",
    "steps": {
        "call": {"flow": {"name": "child", "input": {"n": "{{input.n}}"}}, "next": "end"},
        "end": {"tool": "echo", "args": {"value": "{{result}}"}, "done": True},
    },
}


def test_a_foreach_keeps_its_window_and_the_order_of_its_results(desk: Desk) -> None:
    run = desk.start(each(concurrency=2), {"items": ["a", "b", "c"]})
    assert [step.ref.item for step in desk.out.sent] == [0, 1]
    desk.done("work", "B", item=1)
    assert [step.ref.item for step in desk.out.sent] == [0, 1, 2]
    desk.restart()
    desk.done("work", "C", item=2)
    desk.done("work", "A", item=0)
    assert desk.run(run)["output"] == ["A", "B", "C"]


def test_a_foreach_over_nothing_ends_at_once(desk: Desk) -> None:
    assert desk.run(desk.start(each(), {"items": []}))["output"] == []


def test_a_foreach_over_something_else_than_a_list_fails(desk: Desk) -> None:
    run = desk.start(each(), {"items": "abc"})
    assert desk.run(run)["error"] == {
        "type": "invalid-input",
        "message": "step work failed: foreach.items: must be a list, not text",
    }


def test_a_failed_item_lets_running_items_end_and_then_fails_the_step(desk: Desk) -> None:
    run = desk.start(each(concurrency=2), {"items": [1, 2, 3]})
    desk.failed("work", "bad", item=0, retry=False)
    assert desk.run(run)["status"] == "running"
    desk.done("work", "ok", item=1)
    assert desk.run(run)["error"] == {"type": "ValueError", "message": "step work failed: item 0 failed: bad"}
    assert len(desk.out.sent) == 2


def test_an_operators_retry_repeats_failed_items_only(desk: Desk) -> None:
    run = desk.start(each(concurrency=2), {"items": [1, 2, 3]})
    desk.failed("work", "bad", item=0, retry=False)
    desk.done("work", "two", item=1)
    assert desk.ask(RetryRun("c1", run, BOB)).ok
    assert [(step.ref.item, step.ref.attempt) for step in desk.out.sent[2:]] == [(0, 2), (2, 1)]
    desk.restart()
    desk.done("work", "three", item=2)
    desk.done("work", "one", item=0)
    assert desk.run(run)["output"] == ["one", "two", "three"]


def test_collect_puts_the_error_in_the_items_place(desk: Desk) -> None:
    run = desk.start(each(on_item_error="collect"), {"items": [1, 2]})
    desk.failed("work", "bad", item=0, retry=False)
    desk.restart()
    desk.done("work", "ok", item=1)
    assert desk.run(run)["output"] == [{"error": {"type": "ValueError", "message": "bad"}}, "ok"]


def test_a_late_report_of_an_ended_item_is_refused_and_recorded(desk: Desk) -> None:
    run = desk.start(each(), {"items": [1, 2]})
    report = desk.done("work", "one", item=0)
    before = len(desk.events(run))
    desk.tell(report)
    assert len(desk.events(run)) == before
    desk.tell(StepDone(report.ref, "else"))
    last = desk.events(run)[-1]
    assert (last["type"], last["item"]) == ("report_refused", 0)


def test_a_sub_flow_is_a_run_of_its_own_and_its_output_the_steps_result(desk: Desk) -> None:
    desk.ask(Define("d1", CHILD, ANN))
    run = desk.start(PARENT, {"n": 5})
    child = child_id(run, "call", -1, 1)
    assert desk.take("work").ref.run_id == child
    desk.restart()
    desk.done("work", 25)
    assert (desk.run(child)["status"], desk.run(child)["created_by"]) == ("completed", "ann")
    desk.done("end", "end")
    assert desk.run(run)["output"] == "end"


def test_a_run_is_held_with_its_sub_runs(desk: Desk) -> None:
    chain: Json = {"a": {"tool": "echo", "next": "b"}, "b": {"tool": "echo", "done": True}}
    desk.ask(Define("d1", {"name": "child", "start": "a", "steps": chain}, ANN))
    run = desk.start(PARENT, {"n": 5})
    assert desk.ask(Hold("c1", run, BOB)).ok
    desk.done("a", 1)
    assert [each.ref.step for each in desk.out.sent] == ["a"]
    assert desk.run(child_id(run, "call", -1, 1))["status"] == "paused"
    assert desk.ask(Resume("c2", run, BOB)).ok
    assert [each.ref.step for each in desk.out.sent] == ["a", "b"]


def test_a_sub_flow_means_the_version_of_the_day_its_parent_was_defined(desk: Desk) -> None:
    desk.ask(Define("d1", CHILD, ANN))
    desk.ask(Define("d2", PARENT, ANN))
    desk.ask(Define("d3", {**CHILD, "description": "another"}, ANN))  # type: ignore[dict-item]
    run = desk.start("parent", {"n": 5})
    assert desk.run(child_id(run, "call", -1, 1))["version"] == 1


def test_a_failed_sub_run_fails_its_step_and_a_cancelled_parent_cancels_its_sub_runs(desk: Desk) -> None:
    desk.ask(Define("d1", CHILD, ANN))
    run = desk.start(PARENT, {"n": 5})
    desk.failed("work", "broken", retry=False)
    assert desk.run(run)["error"] == {
        "type": "sub-run-failed",
        "message": "step call failed: step work failed: broken",
    }
    other = desk.start(PARENT, {"n": 6})
    assert desk.ask(Cancel("c1", other, BOB)).ok
    assert desk.run(child_id(other, "call", -1, 1))["status"] == "cancelled"


@pytest.mark.parametrize("wait", [True, False])
def test_a_sub_flow_whose_input_does_not_fit_fails_in_the_open(desk: Desk, wait: bool) -> None:
    schema: Json = {"type": "object", "required": ["m"]}
    desk.ask(Define("d1", {**CHILD, "input": schema}, ANN))  # type: ignore[dict-item]
    call: Json = {"flow": {"name": "child", "wait": wait}, "done": True}
    flow: Json = {"name": "p", "start": "c", "steps": {"c": call}}
    run = desk.start(flow)
    child = desk.run(child_id(run, "c", -1, 1))
    problem = "the input does not fit child: input: 'm' is a required property"
    assert (child["status"], child["error"]) == ("failed", {"type": "invalid-input", "message": problem})
    if wait:
        failure = {"type": "sub-run-failed", "message": f"step c failed: {problem}"}
        assert desk.run(run)["error"] == failure
    else:
        assert desk.run(run)["output"] == {"run_id": child["id"]}
    assert desk.out.sent == []


def test_an_unknown_sub_flow_is_a_fault_of_the_definition(desk: Desk) -> None:
    answer = desk.ask(Define("d1", PARENT, ANN))
    assert [fault["code"] for fault in desk.faults(answer)] == ["unknown-flow"]


def test_a_signal_reaches_the_step_that_waits_or_is_kept_in_order(desk: Desk) -> None:
    flow: Json = {
        "name": "two",
        "start": "first",
        "steps": {
            "first": {"wait": {"signal": "go"}, "next": "second"},
            "second": {"wait": {"signal": "go"}, "next": "third"},
            "third": {"wait": {"signal": "go"}, "done": True},
        },
    }
    run = desk.start(flow)
    desk.tell(*(Signal(f"s{n}", run, "go", BOB, n) for n in (1, 2)))
    assert desk.states(run) == {"first": "done", "second": "done", "third": "pending"}
    desk.restart()
    assert desk.ask(Signal("s3", run, "go", BOB, 3)).data == {"taken_by": "third"}
    assert desk.run(run)["output"] == 3
    refused = desk.ask(Signal("s4", run, "go", BOB))
    assert refused.reason == "the run is already completed"


def test_a_signal_kept_before_its_wait_opens_is_used_once_and_survives_a_crash(desk: Desk) -> None:
    flow: Json = {
        "name": "early",
        "start": "work",
        "steps": {"work": {"tool": "echo", "next": "wait"}, "wait": {"wait": {"signal": "go"}, "done": True}},
    }
    run = desk.start(flow)
    assert desk.ask(Signal("s1", run, "go", BOB, "early")).data == {"taken_by": None}
    desk.restart()
    desk.done("work", 1)
    assert desk.run(run)["output"] == "early"


def test_a_signal_by_key_reaches_all_who_wait_else_it_is_kept(desk: Desk) -> None:
    flow = waiting(key="{{input.order}}")
    ids = [desk.start(flow, {"order": order}) for order in ("A", "A", "B")]
    answer = desk.ask(Broadcast("b1", "paid", "A", BOB, 10))
    assert sorted(answer.data["reached"]) == sorted(ids[:2])  # type: ignore[arg-type,type-var]
    assert [desk.run(run)["output"] for run in ids] == [10, 10, None]
    assert desk.ask(Broadcast("b2", "paid", "C", BOB, 20)).data == {"reached": []}
    late = desk.start(flow, {"order": "C"})
    assert desk.run(late)["output"] == 20


def test_a_signal_by_key_reaches_who_began_to_wait_in_the_same_batch(desk: Desk) -> None:
    run = new_run_id(desk.clock.now())
    start = Start("c1", run, waiting(key="A"), {}, ANN)
    desk.tell(start, Broadcast("b1", "paid", "A", BOB, 10), Broadcast("b2", "paid", "A", BOB, 20))
    assert desk.run(run)["output"] == 10
    late = desk.start(waiting(key="A"))
    assert desk.run(late)["output"] == 20


def test_kept_signals_by_key_go_one_to_each_who_begins_to_wait(desk: Desk) -> None:
    desk.ask(Define("d1", waiting(key="A"), ANN))
    desk.tell(Broadcast("b1", "paid", "A", BOB, 10), Broadcast("b2", "paid", "A", BOB, 20))
    ids = [new_run_id(desk.clock.now()) for _ in range(3)]
    desk.tell(*(Start(f"c{run}", run, "shop", {}, ANN) for run in ids))
    assert [desk.run(run)["output"] for run in ids] == [10, 20, None]


def test_a_signal_by_key_reaches_every_step_of_a_run_that_waits_for_it(desk: Desk) -> None:
    wait: Json = {"wait": {"signal": "paid", "key": "A"}, "next": "both"}
    flow: Json = {
        "name": "twice",
        "start": "fork",
        "steps": {"fork": {"parallel": ["one", "two"]}, "one": wait, "two": wait, "both": {"done": True}},
    }
    run = desk.start(flow)
    assert desk.ask(Broadcast("b1", "paid", "A", BOB, 10)).data == {"reached": [run]}
    assert desk.run(run)["output"] == {"one": 10, "two": 10}


def test_a_kept_signal_is_left_to_others_by_a_wait_that_is_cancelled_at_once(desk: Desk) -> None:
    desk.ask(Broadcast("b1", "paid", "A", BOB, 10))
    flow: Json = {
        "name": "race",
        "start": "fork",
        "steps": {
            "fork": {"parallel": ["wait", "pass"]},
            "wait": {"wait": {"signal": "paid", "key": "A"}, "next": "first"},
            "pass": {"next": "first"},
            "first": {"join_mode": "any", "tool": "echo", "done": True},
        },
    }
    assert desk.states(desk.start(flow))["wait"] == "cancelled"
    assert desk.run(desk.start(waiting(key="A")))["output"] == 10


def test_a_timer_is_not_forgotten_when_a_refused_retry_reads_its_run_again(desk: Desk) -> None:
    run = desk.start({"name": "one", "start": "work", "steps": {"work": {"tool": "echo", "done": True}}})
    failed = StepFailed(desk.take("work").ref, Error("ValueError", "no"))
    desk.tell(failed, RetryRun("r1", run, ANN))
    assert desk.executor.next_due == desk.clock.now() + 30
    desk.clock.advance(30)
    desk.tell()
    assert desk.take("work").ref.attempt == 2


def test_a_wait_that_times_out_fails_or_takes_its_own_way(desk: Desk) -> None:
    failing = desk.start(waiting(timeout_s=60))
    planned: Json = {
        "name": "planned",
        "start": "wait",
        "steps": {
            "wait": {"wait": {"signal": "paid", "timeout_s": 60, "on_timeout": "late"}, "next": "in_time"},
            "in_time": {"done": True},
            "late": {"tool": "echo", "done": True},
        },
    }
    other = desk.start(planned)
    desk.restart()
    desk.clock.advance(60)
    desk.tell()
    assert desk.run(failing)["error"] == {
        "type": "timeout",
        "message": "step wait failed: the signal did not come in time",
    }
    assert desk.states(other) == {"wait": "done", "in_time": "skipped", "late": "running"}


def test_a_delay_hands_on_the_result_that_came_in(desk: Desk) -> None:
    flow: Json = {
        "name": "slow",
        "start": "a",
        "steps": {
            "a": {"tool": "echo", "next": "rest"},
            "rest": {"delay": 3600, "next": "b"},
            "b": {"tool": "echo", "args": {"value": "{{result}}"}, "done": True},
        },
    }
    run = desk.start(flow)
    desk.done("a", "kept")
    desk.restart()
    desk.clock.advance(3600)
    desk.tell()
    assert desk.take("b").prepared.args == {"value": "kept"}
    assert desk.run(run)["status"] == "running"


def test_a_quorum_counts_people_and_one_deny_denies(desk: Desk) -> None:
    flow: Json = {
        "name": "two-eyes",
        "start": "ask",
        "steps": {"ask": {"approval": {"approvers": ["bob", "carl", "dora"], "quorum": 2}, "done": True}},
    }
    run = desk.start(flow)
    assert desk.ask(Decide("c1", run, "ask", approve=True, by=BOB)).data == {
        "decided": False,
        "votes": 1,
        "quorum": 2,
    }
    assert desk.ask(Decide("c2", run, "ask", approve=True, by=BOB)).reason == "bob has already voted at ask"
    stranger = desk.ask(Decide("c3", run, "ask", approve=True, by=Principal("eve")))
    assert stranger.reason == "eve is not an approver of ask; it waits for bob, carl, dora"
    desk.restart()
    assert desk.ask(Decide("c4", run, "ask", approve=True, by=Principal("carl"))).ok
    output = desk.run(run)["output"]
    votes = [{"by": who, "approved": True, "comment": "", "form": None} for who in ("bob", "carl")]
    assert output == {"approved": True, "by": ["bob", "carl"], "comment": "", "form": None, "votes": votes}


def test_a_gate_that_nobody_answers_is_escalated_once_and_then_denied(desk: Desk) -> None:
    approval: Json = {
        "approvers": ["bob"],
        "timeout_s": 60,
        "on_timeout": "escalate",
        "escalate_to": ["carl"],
    }
    run = desk.start({"name": "g", "start": "ask", "steps": {"ask": {"approval": approval, "done": True}}})
    desk.clock.advance(60)
    desk.tell()
    assert desk.run(run)["status"] == "paused"
    desk.restart()
    desk.clock.advance(60)
    desk.tell()
    assert desk.run(run)["error"] == {
        "type": "denied",
        "message": "ask was denied by timeout: nobody decided in time",
    }


def test_many_starts_in_one_batch_are_all_answered(desk: Desk) -> None:
    requests = [Start(f"c{n}", new_run_id(desk.clock.now()), CHILD, {"n": n}, ANN) for n in range(50)]
    desk.tell(*requests)
    assert len(desk.out.sent) == 50
    desk.tell(*(StepDone(step.ref, 0) for step in desk.out.sent))
    assert {desk.run(request.run_id)["status"] for request in requests} == {"completed"}
