"""Event hooks in a real executor: what they are told, and that none of them breaks or stops it; JSON logs."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

from tests.system.flows import chain, single
from tests.system.hooked import HEARD
from tests.system.system import Process, System
from wfcelery.broker.figures import Figures
from wfcelery.broker.names import Names
from wfcelery.core.decide.draft import Event
from wfcelery.errors import InvalidSettings
from wfcelery.shell.event_hooks import Hook, Told, load_hooks

HOOKED = "tests.system.hooked"
TOOLS = f"tests.system.ledger,{HOOKED}"


def heard(system: System) -> list[dict[str, Any]]:
    path = system.folder / "heard"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def hooks(system: System) -> dict[str, Any]:
    """How the hooks fare, as the executor tells it."""
    with system.redis() as client:
        told = Figures(client, Names()).read().get("hooks")
    assert isinstance(told, dict)
    return {name.rpartition(":")[2]: each for name, each in told.items()}


def test_hooks_are_told_of_every_event_and_hostile_ones_harm_nobody(sqlite_system: System) -> None:
    system = sqlite_system
    names = ("break_it", "note", "leave", "hang", "spin")
    given = {
        "WFCELERY_HOOKS": ",".join(f"{HOOKED}:{name}" for name in names),
        HEARD: str(system.folder / "heard"),
    }
    executor = system.executor(ready=None, **given)
    system.ready(executor, system.worker(ready=None))
    runs = [
        *system.start_many(chain(3), 10),
        system.start(single("stumble", {"times": 9}, retry={"max_attempts": 1})),
    ]
    system.finish(runs)
    expected = {
        (run, event["seq"]): {**event, "run_id": run}
        for run in runs
        for event in system.workflows.events(run)
    }
    system.until(lambda: len(heard(system)) == len(expected), "all events to be heard")
    for event in heard(system):
        flow, status = event.pop("flow"), event.pop("status")
        assert event == expected[event["run_id"], event["seq"]]
        assert (flow, status in ("running", "completed")) in (
            ("chain-3-act", True),
            ("one-stumble", status != "failed"),
        )
    system.until(lambda: hooks(system)["leave"]["raised"] == len(expected), "the figures to be told")
    found = hooks(system)
    assert found["note"] == {"called": len(expected), "raised": 0, "dropped": 0}
    assert found["break_it"]["raised"] == len(expected)
    assert found["hang"] == {"called": 0, "raised": 0, "dropped": 0}
    assert executor.popen.poll() is None
    said = executor.said()
    assert said.count("hook tests.system.hooked:break_it raised Unspeakable") == 1
    assert said.count("hook tests.system.hooked:leave raised SystemExit") == 1
    assert executor.terminate() == 0


def test_a_hook_that_does_not_keep_up_loses_events_and_that_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, go_on, got = threading.Event(), threading.Event(), list[int]()

    def slow(event: dict[str, Any]) -> None:
        begun.set()
        assert go_on.wait(30)
        got.append(event["seq"])

    hook = Hook("shop:slow", slow, most=3)
    hook.offer([_told(1)])
    assert begun.wait(30)
    for number in range(2, 10, 2):
        hook.offer([_told(number), _told(number + 1)])
    assert hook.dropped == 5
    assert [record.getMessage() for record in caplog.records] == [
        "hook shop:slow does not keep up: events for it are dropped, and counted"
    ]
    go_on.set()
    hook.close(30)
    assert got == [1, 2, 3, 4]
    assert (hook.called, hook.raised) == (4, 0)


def _told(seq: int) -> Told:
    return Told("r", "f", "running", Event(seq, 1.0, "run_started", None, -1, 0, "", {}, transition=True))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("shop", "must be module:function, as in shop.flows:note, not shop"),
        ("no_such_module:x", "cannot be loaded: ModuleNotFoundError"),
        (f"{HOOKED}:nothing", "cannot be loaded: AttributeError"),
        (f"{HOOKED}:no_function", "must be a plain function of one argument, the event"),
    ],
)
def test_a_hook_that_cannot_be_called_is_refused_before_the_executor_begins(spec: str, said: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load_hooks([spec])
    assert said in str(caught.value)


def test_every_process_logs_json_lines_and_those_of_a_tool_name_its_step(sqlite_system: System) -> None:
    system = sqlite_system
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    executor = system.executor(ready=None, WFCELERY_LOG_FORMAT="json", WFCELERY_TOOLS=TOOLS)
    worker = system.spawn(
        "worker", "--log-format", "json", "--concurrency", "1", ready=None, WFCELERY_TOOLS=TOOLS
    )
    beat = system.spawn("beat", "--log-format", "json", "--loglevel", "DEBUG", ready=None)
    web = system.spawn("web", "--log-format", "json", "--port", str(port), ready=None)
    system.ready(executor, worker)
    run = system.start(single("speak"))
    system.finish([run])
    system.until(lambda: "Uvicorn running" in web.said() and "beat: Starting" in beat.said(), "all to log")
    place = {"run": run, "flow": "one-speak", "step": "only", "attempt": 1}
    shop, tape = (line for line in lines(worker) if line["logger"] in ("shop", "wfcelery.tool"))
    assert shop.pop("time").endswith("Z")
    assert shop == {"level": "WARNING", "logger": "shop", "message": "packed it", "order": 7, **place}
    assert tape.items() >= {"message": "no tape left", "odd": "nan", **place}.items()
    assert any(line["message"] == "executor of epoch 1" for line in lines(executor))
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in (*lines(beat), *lines(web)))


def lines(process: Process) -> list[dict[str, Any]]:
    return [json.loads(line) for line in process.said().splitlines()]
