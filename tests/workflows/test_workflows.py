"""The facade against a real executor behind a real broker, on both databases."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from tests.workflows.system import SECRET, System, celery_app, eventually
from wfcelery.core.messages import Kind, Principal
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow, InvalidInput, NotAllStarted, NotFound, Refused, TimedOut
from wfcelery.executor.answers import new_run_id
from wfcelery.settings import Settings
from wfcelery.workflows import Definition, Run, Workflows

ECHO: Json = {
    "name": "echo",
    "start": "a",
    "steps": {"a": {"tool": "echo", "args": {"value": "{{input.x}}"}, "done": True}},
}
GATE: Json = {
    "name": "gate",
    "key": "{{input.order}}",
    "start": "ask",
    "steps": {"ask": {"approval": {"approvers": ["bob"]}, "next": "end"}, "end": {"done": True}},
}
WAIT: Json = {
    "name": "wait",
    "start": "paid",
    "steps": {"paid": {"wait": {"signal": "paid"}, "done": True}},
}
LATER: Json = {
    "name": "later",
    "start": "a",
    "steps": {"a": {"tool": "later", "retry": {"max_attempts": 1}, "done": True}},
}
FAIL: Json = {
    "name": "fail",
    "start": "a",
    "steps": {"a": {"tool": "fail", "args": {"times": 1}, "retry": {"max_attempts": 1}, "done": True}},
}


def waiting(workflows: Workflows, flow: Json, given: Json = None, **more: Any) -> Run:  # noqa: ANN401
    """Start a run that comes to rest."""
    run = workflows.start(flow, given, **more)
    eventually(lambda: run.status == "paused")
    return run


def test_a_flow_is_defined_started_by_name_and_waited_for(workflows: Workflows) -> None:
    made = workflows.define(ECHO)
    assert made == Definition(made.id, "echo", 1)
    assert str(made) == "echo@1"
    run = workflows.start("echo@1", {"x": 7}, tags=["a", "b"])
    seen: Any = run.wait(30)
    assert {
        name: seen[name] for name in ("id", "name", "version", "status", "output", "created_by", "tags")
    } == {
        "id": run.id,
        "name": "echo",
        "version": 1,
        "status": "completed",
        "output": 7,
        "created_by": "ann",
        "tags": ["a", "b"],
    }
    assert (run.created, run.status, run.get()) == (True, "completed", seen)
    assert workflows.wait(run) == workflows.get(run.id) == seen


def test_a_start_that_was_answered_is_in_the_tables(workflows: Workflows) -> None:
    run = workflows.start(GATE, {"order": "A7"})
    assert workflows.get(run)["id"] == run.id


def test_a_repeat_with_the_same_id_finds_the_run_and_another_input_is_a_conflict(
    workflows: Workflows,
) -> None:
    run_id = new_run_id(1_700_000_000.0)
    first, again = (workflows.start(ECHO, {"x": 1}, run_id=run_id) for _ in range(2))
    assert first == again
    assert [(run.id, run.created) for run in (first, again)] == [(run_id, True), (run_id, False)]
    with pytest.raises(Refused) as refused:
        workflows.start(ECHO, {"x": 2}, run_id=run_id)
    assert (refused.value.code, str(refused.value)) == (
        "conflict",
        f"run {run_id} exists with another flow or input",
    )


def test_a_live_key_gives_the_first_run_or_a_refusal(workflows: Workflows) -> None:
    first = waiting(workflows, GATE, {"order": "A7"})
    again = workflows.start(GATE, {"order": "A7"})
    assert (again, again.created) == (first, False)
    with pytest.raises(Refused) as refused:
        workflows.start(GATE, {"order": "A7"}, on_conflict="error")
    assert str(refused.value) == f"run {first.id} is live under the key A7"


def test_by_key_the_live_run_is_meant_else_the_newest(workflows: Workflows) -> None:
    old = waiting(workflows, GATE, {"order": "A7"})
    workflows.cancel(flow="gate", key="A7", reason="a mistake")
    assert workflows.get(flow="gate", key="A7")["id"] == old.id
    live = waiting(workflows, GATE, {"order": "A7"})
    ended = workflows.start({**GATE, "key_scope": "none", "name": "gate"}, {"order": "A7"})  # type: ignore[dict-item]
    ended.cancel()
    assert workflows.find("gate", "A7") == live
    assert workflows.find("gate@2", "A7") == ended
    workflows.decide(flow="gate", key="A7", step="ask", approve=True, by="bob")
    assert live.wait(30)["status"] == "completed"
    assert workflows.wait(flow="gate", key="A7", timeout_s=30)["status"] == "cancelled"
    assert workflows.find("gate", "A7") == ended
    with pytest.raises(NotFound) as missing:
        workflows.find("gate", "B8")
    assert str(missing.value) == "no run of gate with the key B8"


def test_a_run_is_named_once(workflows: Workflows) -> None:
    with pytest.raises(InvalidInput) as missing:
        workflows.get()
    assert str(missing.value) == "run: is missing; give its id, or flow= and key="
    with pytest.raises(InvalidInput) as twice:
        workflows.cancel("r", flow="gate", key="A7")
    assert str(twice.value) == "run: is named twice; give its id, or flow and key"


def test_a_gate_is_decided_by_who_may(workflows: Workflows) -> None:
    run = waiting(workflows, GATE, {"order": "A7"})
    with pytest.raises(Refused):
        workflows.decide(run, "ask", approve=True)
    with pytest.raises(Refused):
        workflows.decide(run, "ask", approve=True, by=Principal("bob", Kind.AGENT))
    with pytest.raises(Refused, match="this decision is for attempt 2 of ask, attempt 1 is open"):
        workflows.decide(run, "ask", approve=True, by="bob", attempt=2)
    workflows.decide(run, "ask", approve=True, comment="fine", by=Principal("bob"), attempt=1)
    assert run.wait(30)["status"] == "completed"
    approved = [event["actor"] for event in workflows.events(run) if event["actor"] == "bob"]
    assert approved


def test_a_signal_reaches_its_run_and_a_repeat_of_the_command_does_nothing(workflows: Workflows) -> None:
    two: Json = {
        "name": "two",
        "start": "a",
        "steps": {
            "a": {"wait": {"signal": "paid"}, "next": "b"},
            "b": {"wait": {"signal": "paid"}, "done": True},
        },
    }
    run = waiting(workflows, two)
    for _ in range(2):
        workflows.signal(run, "paid", {"n": 1}, command_id="once")
    assert run.status == "paused"
    run.signal("paid", {"n": 2})
    assert run.wait(30)["output"] == {"n": 2}


def test_a_broadcast_reaches_all_who_wait_with_its_key(workflows: Workflows) -> None:
    keyed: Json = {
        "name": "keyed",
        "start": "a",
        "steps": {"a": {"wait": {"signal": "paid", "key": "{{input.order}}"}, "done": True}},
    }
    first, second = (waiting(workflows, keyed, {"order": order}) for order in ("A7", "B8"))
    assert workflows.broadcast("paid", "A7", 5) == [first.id]
    assert (first.wait(30)["output"], second.status) == (5, "paused")


def test_a_run_is_paused_resumed_cancelled_and_retried(workflows: Workflows) -> None:
    run = waiting(workflows, WAIT)
    workflows.pause(run)
    workflows.resume(run)
    run.cancel("no longer wanted", by="carol")
    assert run.wait(30)["error"] == {"type": "cancelled", "message": "cancelled by carol: no longer wanted"}
    failed = workflows.start(FAIL)
    assert failed.wait(30)["status"] == "failed"
    workflows.retry(failed)
    assert failed.wait(30)["output"] == {"attempts": 2}


def test_a_step_that_waits_for_a_report_is_ended_from_outside(workflows: Workflows) -> None:
    def postponed(run: Run) -> bool:
        steps: Any = run.get()["steps"]
        return bool(steps[0]["status"] == "pending")

    done, failed = workflows.start(LATER), workflows.start(LATER)
    for run in (done, failed):
        eventually(lambda run=run: postponed(run))  # type: ignore[misc]
    workflows.step_done(done, "a", {"ok": True})
    workflows.step_failed(failed, "a", "the courier lost it")
    assert done.wait(30)["output"] == {"ok": True}
    assert failed.wait(30)["error"] == {"type": "reported", "message": "step a failed: the courier lost it"}


def test_a_waiting_step_can_be_let_go(workflows: Workflows) -> None:
    run = waiting(workflows, WAIT)
    workflows.step_ready(run, "paid")
    assert run.wait(30)["output"] is None


def test_a_start_for_later_is_there_at_once_and_has_not_begun(workflows: Workflows) -> None:
    tomorrow = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    run = workflows.start(ECHO, {"x": 1}, at=tomorrow)
    assert run.status in {"running", "paused"}
    with pytest.raises(TimedOut) as timed_out:
        run.wait(0.05)
    assert str(timed_out.value) == f"run {run.id} has not ended within 0.05 s; it is running, and goes on"


def test_without_waiting_the_run_appears_a_moment_later(workflows: Workflows) -> None:
    run = workflows.start(ECHO, {"x": 1}, wait=False)
    assert run.created is None
    assert run.wait(30)["output"] == 1


def test_many_runs_are_started_at_once(workflows: Workflows) -> None:
    workflows.define({"name": "through", "start": "a", "steps": {"a": {"done": True}}})
    special = {"flow": "through", "input": {"x": 0}, "by": "bob", "tags": "special"}
    given: list[Any] = [("through", {"x": 0}), ("through",), special, *[["through"]] * 600]
    runs = workflows.start_many(given, by="carol")
    assert len(set(runs)) == 603
    assert {run.created for run in runs} == {True}
    listed = workflows.list(status="completed", limit=1000)
    assert {run["id"] for run in listed} == {run.id for run in runs}
    assert [run["created_by"] for run in workflows.list(tag="special")] == ["bob"]
    assert workflows.start_many([]) == []


def test_of_many_starts_those_that_are_refused_are_told(workflows: Workflows) -> None:
    with pytest.raises(NotAllStarted) as some:
        workflows.start_many([(ECHO, {"x": 1}), ("nowhere", {}), (ECHO, {"x": 2})])
    assert set(some.value.started) == {0, 2}
    assert workflows.wait(some.value.started[2], 30)["output"] == 2
    assert str(some.value) == (
        "1 of 3 starts were refused and the others have begun; the first refused is number 2: "
        "no definition nowhere; `wfcelery definitions` lists what there is"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"flow": "echo", "imput": 1}, "starts[0].imput: is not known; did you mean input?"),
        ({"input": 1}, "starts[0].flow: is missing"),
        ("echo", "starts[0]: must be a map with `flow` and what else `start` takes, or (flow, input)"),
        ({"flow": "echo", "on_conflict": "no"}, 'on_conflict: must be "return" or "error", not \'no\''),
        (
            {"flow": "echo", "at": dt.datetime(2030, 1, 1)},  # noqa: DTZ001 - that is the point
            "at: has no time zone; write datetime(..., tzinfo=UTC)",
        ),
        ({"flow": "echo", "at": 5}, "at: must be a datetime with a time zone, not int"),
        ({"flow": ""}, "flow: must be the name of a flow, a document, or the path of one"),
        ({"flow": "echo", "input": {"x": {1}}}, "input.x: is of type set, which is not JSON"),
    ],
)
def test_a_start_that_cannot_be_understood_is_refused_before_it_is_sent(
    sqlite_url: str,
    given: Any,  # noqa: ANN401
    message: str,
) -> None:
    nobody = Workflows(None, sqlite_url, broker_url="redis://127.0.0.1:1", secret_key=SECRET, user="ann")
    Path(sqlite_url.removeprefix("sqlite:///")).parent.mkdir(exist_ok=True)
    with pytest.raises(InvalidInput) as invalid:
        nobody.start_many([given])
    assert str(invalid.value) == message
    nobody.close()


def test_what_is_wrong_is_raised_as_what_it_is(workflows: Workflows) -> None:
    with pytest.raises(InvalidFlow) as invalid:
        workflows.define({"name": "x", "start": "a", "steps": {}})
    assert [fault.code for fault in invalid.value.faults] == ["unknown-step"]
    with pytest.raises(NotFound) as flow:
        workflows.start("nowhere")
    assert (flow.value.kind, flow.value.name) == ("definition", "nowhere")
    nobody = "0" * 26
    for ask in (workflows.cancel, workflows.get, workflows.events, workflows.status):
        with pytest.raises(NotFound) as run:
            ask(nobody)
        assert str(run.value) == f"no run {nobody}"
    for missing in (workflows.signal, workflows.step_ready):
        with pytest.raises(InvalidInput):
            missing(nobody)


def test_flows_are_read_from_files_and_texts_and_retired(workflows: Workflows, tmp_path: Path) -> None:
    path = tmp_path / "greet.yaml"
    path.write_text("start:\n  tool: echo\n  args: {value: 1}\n  done: true\n")
    assert str(workflows.define(path)) == "greet@1"
    assert str(workflows.define(path.read_text(), name="other")) == "other@1"
    assert workflows.start(path).wait(30)["name"] == "greet"
    assert str(workflows.retire("greet")) == "greet@1"
    with pytest.raises(NotFound):
        workflows.start("greet")
    with pytest.raises(InvalidInput) as invalid:
        workflows.define(tmp_path / "none.yaml")
    assert str(invalid.value) == f"flow: {tmp_path / 'none.yaml'} cannot be read: No such file or directory"


def test_runs_are_listed_newest_first_and_filtered(workflows: Workflows) -> None:
    first, second = (workflows.start(ECHO, {"x": n}, tags=[f"t{n}"]) for n in range(2))
    for run in (first, second):
        run.wait(30)
    assert [run["id"] for run in workflows.list(flow="echo", status="completed")] == [second.id, first.id]
    assert [run["id"] for run in workflows.list(tag="t0", created_by="ann")] == [first.id]
    assert [run["id"] for run in workflows.list(limit=5, before=second.id)] == [first.id]
    seqs = [event["seq"] for event in workflows.events(first)]
    assert [event["seq"] for event in workflows.events(first, after=1)] == seqs[1:]


def test_from_settings_there_is_no_celery_app(system: System) -> None:
    settings = Settings(
        database_url=system.database_url, broker_url=system.broker_url, secret_key=(SECRET,), user="dave"
    )
    with Workflows.from_settings(settings) as workflows:
        assert workflows.start(ECHO, {"x": 1}).wait(30)["created_by"] == "dave"


def test_a_prefix_of_the_hosts_broker_is_kept(broker_url: str, sqlite_url: str) -> None:
    app: Celery = celery_app(broker_url)
    app.conf.broker_transport_options = {"global_keyprefix": "shop:"}
    with (
        System(broker_url, sqlite_url, prefix="shop:"),
        Workflows(app, sqlite_url, secret_key=[SECRET], user="ann") as workflows,
    ):
        assert workflows.start(ECHO, {"x": 1}).wait(30)["output"] == 1
