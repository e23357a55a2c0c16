"""The engine in one process, with real threads and a real database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wfcelery import Context, NoRetry, Outcome, Registry, tool
from wfcelery.core.messages import Cancel, Decide, Principal
from wfcelery.core.state import RunStatus
from wfcelery.core.values import Json
from wfcelery.embedded import Engine
from wfcelery.embedded.engine import new_command_id
from wfcelery.errors import InvalidFlow, NotFound, Refused
from wfcelery.executor.messages import Define


def flow_of(tool_name: str, **more: Json) -> dict[str, Json]:
    return {"name": "one", "start": "a", "steps": {"a": {"tool": tool_name, "done": True, **more}}}


def registry(*functions: Callable[..., object]) -> Registry:
    tools = Registry.with_builtins()
    for function in functions:
        tools.add(function)
    return tools


def run(url: str, tools: Registry, flow: Json, given: Json = None) -> dict[str, Json]:
    with Engine(url, tools) as engine:
        run_id = engine.start(flow, {} if given is None else given, by="ann")
        while not engine.standing(run_id).ended:
            engine.turn()
        return engine.run_json(run_id)


def test_a_flow_runs_to_its_end_on_both_databases(database_url: str) -> None:
    seen = run(database_url, registry(), flow_of("echo", args={"value": "{{input.x}}"}), {"x": 3})
    assert (seen["status"], seen["output"]) == ("completed", 3)


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (SystemExit(3), "SystemExit", "the tool called exit(3)"),
        (KeyboardInterrupt(), "KeyboardInterrupt", "KeyboardInterrupt without a message"),
        (NoRetry("card declined"), "NoRetry", "card declined"),
        (RecursionError("too deep"), "RecursionError", "too deep"),
    ],
)
def test_no_exception_of_a_tool_stops_the_engine(raised: BaseException, kind: str, message: str) -> None:
    @tool
    def bad() -> None:
        raise raised

    seen = run("sqlite://", registry(bad), flow_of("bad", retry={"max_attempts": 1}))
    assert seen["error"] == {"type": kind, "message": f"step a failed: {message}"}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes", {"a": object()}])
def test_a_result_that_is_not_json_is_one_failed_attempt(value: object) -> None:
    @tool
    def odd() -> object:
        return value

    seen = run("sqlite://", registry(odd), flow_of("odd"))
    error = seen["error"]
    assert isinstance(error, dict)
    assert (seen["status"], error["type"]) == ("failed", "bad-result")
    assert len(seen["steps"]) == 1  # type: ignore[arg-type]


def test_a_tool_names_its_outcome_and_the_flow_goes_that_way() -> None:
    @tool(events=("found", "missing"))
    def look(what: str) -> Outcome:
        return Outcome("found" if what == "key" else "missing", what.upper())

    flow: Json = {
        "name": "look",
        "start": "look",
        "steps": {
            "look": {
                "tool": "look",
                "args": {"what": "{{input.what}}"},
                "on": {"found": "yes", "missing": "no"},
            },
            "yes": {"tool": "echo", "args": {"value": "got {{result}}"}, "done": True},
            "no": {"tool": "echo", "args": {"value": "no {{result}}"}, "done": True},
        },
    }
    assert run("sqlite://", registry(look), flow, {"what": "key"})["output"] == "got KEY"
    assert run("sqlite://", registry(look), flow, {"what": "cat"})["output"] == "no CAT"


def test_a_tool_over_its_time_fails_though_its_thread_hangs_and_its_late_result_is_refused() -> None:
    release, ended = threading.Event(), threading.Event()

    @tool
    def hang(ctx: Context) -> str:
        if ctx.attempt == 1:
            release.wait(30)
            ended.set()
        return f"attempt {ctx.attempt}"

    flow = flow_of("hang", timeout_s=0.05, retry={"backoff": [0]})
    with Engine("sqlite://", registry(hang), workers=1) as engine:
        run_id = engine.start(flow, {}, by="ann")
        while not engine.standing(run_id).ended:
            engine.turn()
        seen = engine.run_json(run_id)
        assert seen["output"] == "attempt 2"
        release.set()
        assert ended.wait(30)
        while "report_refused" not in {event["type"] for event in engine.events(run_id)}:
            engine.turn()
        assert engine.run_json(run_id) == seen


def test_what_waits_behind_a_thread_that_hangs_is_done_by_the_one_that_takes_its_place() -> None:
    release = threading.Event()

    @tool
    def hang() -> None:
        release.wait(30)

    flow: Json = {
        "name": "hung",
        "start": "fork",
        "steps": {
            "fork": {"parallel": ["hangs", "waits"]},
            "hangs": {
                "tool": "hang",
                "timeout_s": 0.05,
                "retry": {"max_attempts": 1},
                "optional": True,
                "next": "both",
            },
            "waits": {"tool": "echo", "args": {"value": 7}, "next": "both"},
            "both": {"done": True},
        },
    }
    with Engine("sqlite://", registry(hang), workers=1) as engine:
        run_id = engine.start(flow, {}, by="ann")
        deadline = time.monotonic() + 10
        while not engine.standing(run_id).ended and time.monotonic() < deadline:
            engine.turn()
        release.set()
        assert engine.run_json(run_id)["output"] == {"waits": 7}


def test_a_cancelled_run_asks_its_tool_to_stop() -> None:
    began = threading.Event()

    @tool
    def work(ctx: Context) -> None:
        began.set()
        ctx.sleep(60)

    with Engine("sqlite://", registry(work)) as engine:
        run_id = engine.start(flow_of("work"), {}, by="ann")
        while not began.is_set():
            engine.turn(0.01)
        engine.turn(0.01)
        engine.ask(Cancel(new_command_id(), run_id, Principal("bob")))
        while not engine.standing(run_id).ended:
            engine.turn()
        seen = engine.run_json(run_id)
        assert seen["status"] == "cancelled"
        assert [step["error"]["type"] for step in seen["steps"]] == ["cancelled"]  # type: ignore[union-attr,index,call-overload]


def test_what_a_dead_engine_had_under_way_is_done_by_the_next_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'w.db'}"
    began, hold = threading.Event(), threading.Event()

    @tool
    def work(ctx: Context) -> int:
        if ctx.attempt == 1:
            began.set()
            hold.wait(30)
        return ctx.attempt

    first = Engine(url, registry(work))
    run_id = first.start(flow_of("work"), {}, by="ann")
    while not began.is_set() or first.executor.has_marks:
        first.turn(0.01)
    first._lease.abandon()  # as the kernel does for a process that was killed
    first.database.close()
    with Engine(url, registry(work), only=run_id) as second:
        assert second.recover() == 1
        while not second.standing(run_id).ended:
            second.turn()
        seen = second.run_json(run_id)
    hold.set()
    assert seen["output"] == 2
    assert [(step["attempt"], step["status"]) for step in seen["steps"]] == [(1, "failed"), (2, "done")]  # type: ignore[union-attr,index,call-overload]


def test_an_engine_for_one_run_leaves_the_others_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'w.db'}"
    delayed: Json = {
        "name": "d",
        "start": "a",
        "steps": {"a": {"delay": 0.001, "next": "b"}, "b": {"done": True}},
    }
    with Engine(url, registry()) as engine:
        engine.clock.now()
        other = engine.start(delayed, {}, by="ann")
    with Engine(url, registry(), only="0" * 26) as engine:
        assert engine.recover() == 0
        engine.turn(0.01)
        assert engine.standing(other).status is RunStatus.RUNNING


def test_a_second_engine_on_one_database_is_refused(database_url: str) -> None:
    with Engine(database_url, registry()), pytest.raises(Refused) as refusal:
        Engine(database_url, registry())
    assert str(refusal.value) == (
        "another executor is at work on this database; use it, or name another with --database"
    )


def test_a_secret_is_filled_in_at_the_last_moment_and_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFSECRET_TOKEN", "s3cr3t-value")
    seen_by_tool = []

    @tool
    def call(auth: str, note: str) -> str:
        seen_by_tool.append((auth, note))
        return "ok"

    flow = flow_of("call", args={"auth": "Bearer {{secret.TOKEN}}", "note": "{{input.note}}"})
    path = tmp_path / "w.db"
    run(f"sqlite:///{path}", registry(call), flow, {"note": "{{secret.TOKEN}}"})
    assert seen_by_tool == [("Bearer s3cr3t-value", "{{secret.TOKEN}}")]
    assert b"s3cr3t-value" not in path.read_bytes()


def test_a_secret_that_is_not_set_fails_the_step_and_says_what_to_do() -> None:
    flow = flow_of("echo", args={"value": "{{secret.NOT_THERE}}"})
    assert run("sqlite://", registry(), flow)["error"] == {
        "type": "missing-secret",
        "message": "step a failed: the secret NOT_THERE is not set; "
        "give it in the environment as WFSECRET_NOT_THERE",
    }


def test_refusals_are_raised_as_what_they_are() -> None:
    with Engine("sqlite://", registry()) as engine:
        with pytest.raises(InvalidFlow) as invalid:
            engine.ask(Define(new_command_id(), {"name": "x", "start": "a", "steps": {}}, Principal("ann")))
        assert [fault.code for fault in invalid.value.faults] == ["unknown-step"]
        run_id = engine.start(flow_of("echo"), {}, by="ann")
        with pytest.raises(Refused) as refused:
            engine.ask(Decide(new_command_id(), run_id, "nowhere", approve=True, by=Principal("bob")))
        assert str(refused.value) == "one has no step nowhere; it has a"
        with pytest.raises(NotFound):
            engine.standing("0" * 26)
