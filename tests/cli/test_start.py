"""`start` and the commands that change runs, against a running system; and without one."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from tests.cli.calling import ROOT, Said, call
from tests.workflows.system import SECRET, System, eventually
from wfcelery.store import lease, open_database

GATE = """
start: g
steps: {g: {approval: {allow_self: true}, next: e}, e: {tool: echo, args: {value: 7}, done: true}}
"""
FAILS = "start: a\nsteps: {a: {tool: fail, args: {times: 1}, retry: {max_attempts: 1}, done: true}}\n"
LONGEST_S = 5.0


@pytest.fixture
def broker_url(here: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty broker, and the settings of whoever talks to the system."""
    with closing(redis.Redis.from_url(valkey_url)) as client:
        client.flushall()
    url = valkey_url.replace("unix://", "redis+socket://", 1)
    monkeypatch.setenv("WFCELERY_BROKER_URL", url)
    monkeypatch.setenv("WFCELERY_SECRET_KEY", SECRET)
    monkeypatch.setenv("WFCELERY_DATABASE_URL", f"sqlite:///{here}/wfcelery.db")
    (here / "gate.yaml").write_text(GATE)
    (here / "fails.yaml").write_text(FAILS)
    return url


@pytest.fixture
def system(broker_url: str) -> Iterator[System]:
    with System(broker_url, os.environ["WFCELERY_DATABASE_URL"]) as running:
        yield running


def started(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    said = call(capsys, "start", *args, "-o", "ids")
    assert (said.code, said.err) == (0, "")
    return said.out.strip()


def until(capsys: pytest.CaptureFixture[str], run: str, status: str) -> None:
    def is_so() -> bool:
        return bool(json.loads(call(capsys, "show", run, "-o", "json").out)["status"] == status)

    eventually(is_so)


def test_a_flow_is_started_and_its_id_and_what_to_do_next_are_told(
    system: System, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = call(capsys, "start", "gate.yaml", "--key", "k1", "--tag", "t")
    run = said.out.strip()
    assert (said.code, said.err) == (0, f"  wfcelery watch {run}\n")
    until(capsys, run, "paused")
    assert call(capsys, "ps", "--key", "k1", "--tag", "t", "-o", "ids").out == f"{run}\n"
    monkeypatch.setenv("WFCELERY_BASE_URL", "https://flows.example/")
    again = call(capsys, "start", "gate", "--key", "k1")
    assert again == Said(
        0,
        f"{run}\n",
        "a live run has this key already; nothing new was started\n"
        f"  wfcelery watch {run}\n  https://flows.example/runs/{run}\n",
    )
    told = json.loads(call(capsys, "start", "gate@1", "--key", "k1", "-o", "json").out)
    assert told == {"run_id": run, "created": False, "url": f"https://flows.example/runs/{run}"}
    refused = call(capsys, "start", "gate", "--key", "k1", "--on-conflict", "error")
    assert refused == Said(4, "", f"wfcelery: run {run} is live under the key k1\n")


def test_a_run_is_waited_for_and_its_end_is_the_exit_code(
    system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "start", str(ROOT / "flows" / "hello.yaml"), "-i", "name=Ann", "--wait", "-q")
    assert done == Said(0, '{\n  "greeting": "Hello, Ann!"\n}\n', "")
    failed = call(capsys, "start", "fails.yaml", "--wait", "-o", "json", "-q")
    assert (failed.code, json.loads(failed.out)["status"]) == (1, "failed")
    waits = call(capsys, "start", "gate.yaml", "--wait", "--timeout", "1")
    assert (waits.code, waits.out) == (6, "")
    assert waits.err.splitlines()[1:2] == ["⏸ g  waits for approval"]
    later = call(capsys, "start", "gate.yaml", "--at", "+1h", "--wait", "--timeout", "0.5", "-q")
    assert (later.code, later.out, later.err) == (7, "", "")


def test_a_start_that_is_repeated_with_its_id_is_harmless(
    system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    run = "01k9z3n5m8q0r2t4v6x8y0a1b2"
    assert [started(capsys, "gate.yaml", "--id", run) for _ in range(2)] == [run, run]
    assert call(capsys, "start", "fails.yaml", "--id", run) == Said(
        4, "", f"wfcelery: run {run} exists with another flow or input\n"
    )
    unread = call(capsys, "start", "gate.yaml", "--id", "x")
    assert unread.code == 2


def test_a_start_that_nobody_confirms_happens_when_somebody_comes(
    broker_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = started(capsys, "gate.yaml", "--no-confirm")
    with System(broker_url, os.environ["WFCELERY_DATABASE_URL"]):
        eventually(lambda: call(capsys, "show", run).code == 0)
        until(capsys, run, "paused")


def test_a_flow_or_an_input_that_is_wrong_is_told_and_nothing_begins(
    system: System, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad.yaml").write_text("start: nope\nsteps: {a: {done: true}}\n")
    faulty = call(capsys, "start", "bad.yaml")
    assert (faulty.code, faulty.out) == (2, "")
    assert faulty.err == (
        "wfcelery: the flow has 1 fault\nbad.yaml:1:1: there is no step `nope` [unknown-step]\n"
    )
    assert call(capsys, "start", "unknown").code == 3
    assert call(capsys, "start", "gate.yaml", "-i", "x").code == 2
    assert call(capsys, "start", "gate.yaml", "--at", "soon").code == 2
    assert call(capsys, "ps", "-o", "ids").out == ""


def test_runs_of_the_system_are_decided_held_cancelled_and_tried_again(
    system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    run = started(capsys, "gate.yaml", "--key", "k1")
    until(capsys, run, "paused")
    assert call(capsys, "explain", run).out.startswith("waits for the approval of a person at `g` since ")
    assert call(capsys, "pause", run).out == f"✓ {run}  paused\n"
    assert call(capsys, "resume", run).out == f"✓ {run}  goes on\n"
    assert call(capsys, "approve", "--flow", "gate", "--key", "k1").out == f"✓ {run}  approved g\n"
    assert call(capsys, "watch", run, "-q") == Said(0, "7\n", "")
    other = started(capsys, "gate.yaml")
    assert call(capsys, "cancel", other, "--reason", "enough").out == f"✓ {other}  cancelled\n"
    failed = call(capsys, "start", "fails.yaml", "--wait", "-o", "ids", "-q").out.strip()
    assert call(capsys, "retry", failed).out == f"✓ {failed}  tries again\n"
    assert call(capsys, "watch", failed, "-q").code == 0
    assert call(capsys, "cancel", "nope").code == 3


def test_flows_are_defined_by_the_running_executor(
    system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    # The executor makes the tables when it comes; until then there is nothing to ask.
    started(capsys, "fails.yaml")
    assert call(capsys, "define", "gate.yaml", "-o", "ids") == Said(0, "gate@1\n", "")


def test_without_a_broker_it_is_said_in_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "start", "hello") == Said(
        5,
        "",
        "wfcelery: the broker is out of reach: WFCELERY_BROKER_URL is not set; "
        "`wfcelery up` starts a whole system, `wfcelery run` needs none\n",
    )
    for process in ("executor", "worker", "beat"):
        assert call(capsys, process) == Said(
            5,
            "",
            "wfcelery: the broker is out of reach: WFCELERY_BROKER_URL is not set; "
            "`wfcelery up` starts a whole system with its own\n",
        )


@pytest.mark.parametrize("command", [("start", "hello"), ("cancel", "x"), ("signal", "x", "y")])
def test_a_broker_that_is_away_or_silent_keeps_nobody_waiting(
    broker_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    _make_tables()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        for url in ("redis+socket:///nowhere/valkey.sock", silent_url):
            monkeypatch.setenv("WFCELERY_BROKER_URL", url)
            began = time.monotonic()
            said = call(capsys, *command)
            assert time.monotonic() - began < LONGEST_S
            assert (said.code, said.out) == (5, "")
            assert len(said.err.splitlines()) == 1
            assert "the broker is out of reach: " in said.err


def test_a_system_without_an_executor_confirms_nothing_and_says_so(
    broker_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _make_tables()
    began = time.monotonic()
    said = call(capsys, "start", "gate.yaml")
    assert time.monotonic() - began < LONGEST_S
    assert (said.code, said.out) == (7, "")
    assert "the request Start was not confirmed within 4 s, and may happen yet" in said.err
    several = call(capsys, "cancel", "x", "y", "-o", "json")
    assert [each["exit_code"] for each in json.loads(several.out)] == [7, 7]


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--wait", "--no-confirm"], "--wait waits for the end, --no-confirm not even for the beginning"),
        (["--timeout", "3"], "--timeout belongs to --wait"),
    ],
)
def test_options_that_contradict_one_another_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], args: list[str], complaint: str
) -> None:
    said = call(capsys, "start", "f", *args)
    assert (said.code, said.err.splitlines()[-1]) == (2, f"Error: {complaint}")


def _make_tables() -> None:
    with closing(open_database(os.environ["WFCELERY_DATABASE_URL"])) as database:
        held = lease.acquire(database, "tests", ttl_s=15.0, now=time.time())
        assert held is not None
        held.release()
