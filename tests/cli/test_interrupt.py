"""Ctrl-C, a second process, and a reader that goes away."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.calling import WFCELERY, environment, process

SLOW = """
name: slow
start: first
steps:
  first: {tool: echo, args: {value: 1}, next: nap}
  nap: {tool: sleep, args: {seconds: "{{input.seconds}}"}, next: last}
  last: {tool: echo, args: {value: awake}, done: true}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.yaml").write_text(SLOW)
    return tmp_path


def napping(folder: Path, seconds: str = "600", **more: str) -> subprocess.Popen[str]:
    """Start a run and give it once its nap has begun."""
    started = subprocess.Popen(
        [WFCELERY, "run", "slow.yaml", "-i", f"seconds:={seconds}"],
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    for line in started.stderr:
        if line == "▶ nap\n":
            return started
    raise AssertionError(started.communicate())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_exits_130_leaves_a_sound_database_and_says_how_to_go_on(
    folder: Path, number: signal.Signals
) -> None:
    run = napping(folder)
    run.send_signal(number)
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out) == (130, "")
    run_id = process("ps", "-o", "ids", cwd=folder).out.strip()
    assert err == f"interrupted; go on with\n  wfcelery run --resume {run_id}\n"
    assert process("check", cwd=folder).code == 0
    assert json.loads(process("show", run_id, "-o", "json", cwd=folder).out)["status"] == "running"


def test_a_run_that_was_killed_goes_on_where_it_was(folder: Path) -> None:
    run = napping(folder, "10")
    run_id = process("ps", "-o", "ids", cwd=folder).out.strip()
    statuses = [""]
    while statuses[-1] != "running":
        shown = json.loads(process("show", run_id, "-o", "json", cwd=folder).out)
        statuses = [step["status"] for step in shown["steps"]]
    run.kill()
    run.communicate(timeout=30)
    said = process("run", "--resume", run_id, "-o", "json", cwd=folder)
    assert said.code == 0
    steps = [(step["name"], step["attempt"], step["status"]) for step in json.loads(said.out)["steps"]]
    assert steps == [("first", 1, "done"), ("nap", 1, "failed"), ("nap", 2, "done"), ("last", 1, "done")]
    assert said.err.splitlines()[0] == f"run {run_id} goes on"
    assert process("check", cwd=folder).code == 0


def test_a_database_that_somebody_else_writes_to_is_refused_with_exit_4(folder: Path) -> None:
    run = napping(folder)
    began = process("run", "slow.yaml", "-i", "seconds:=0", cwd=folder)
    assert (began.code, began.out, began.err) == (
        4,
        "",
        "wfcelery: another executor is at work on this database; use it, or name another with --database\n",
    )
    defined = process("define", "slow.yaml", cwd=folder)
    assert (defined.code, defined.out, defined.err) == (
        4,
        "",
        (
            f"wfcelery: a flow is run here on this database, by process {run.pid}; "
            "wait for its end, or stop it\n"
        ),
    )
    assert len(process("ps", "-o", "ids", cwd=folder).out.split()) == 1
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)


HANGS = """
import time
from wfcelery.tools import tool

@tool
def hang() -> None:
    while True:
        time.sleep(1000)
"""


def test_a_tool_that_hangs_fails_when_its_time_is_over_and_keeps_nobody(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGS)
    (tmp_path / "f.yaml").write_text(
        "name: f\nstart: a\nsteps: {a: {tool: hang, timeout_s: 0.2, "
        "retry: {max_attempts: 2, backoff: [0]}, done: true}}\n"
    )
    said = process("run", "f.yaml", "--tools", "hanging", "-o", "json", cwd=tmp_path)
    run = json.loads(said.out)
    assert (said.code, run["error"]) == (
        1,
        {"type": "timeout", "message": "step a failed: the tool ran longer than 0.2 s"},
    )
    assert process("check", cwd=tmp_path).code == 0


def test_a_tool_that_hangs_does_not_hold_up_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGS)
    (tmp_path / "slow.yaml").write_text("name: f\nstart: nap\nsteps: {nap: {tool: hang, done: true}}\n")
    run = napping(tmp_path, "0", WFCELERY_TOOLS="hanging")
    run.send_signal(signal.SIGINT)
    assert (run.communicate(timeout=30)[0], run.returncode) == ("", 130)


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    text = "".join(f"  s{n}: {{tool: echo, next: s{n + 1}}}\n" for n in range(900))
    (folder / "long.yaml").write_text(f"name: long\nstart: s0\nsteps:\n{text}  s900: {{done: true}}\n")
    command = f"'{WFCELERY}' graph long.yaml | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("long\n0\n", "")


@pytest.mark.parametrize(
    ("streams", "code"), [(">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 1)]
)
def test_streams_that_are_closed_or_full_do_no_harm(tmp_path: Path, streams: str, code: int) -> None:
    (tmp_path / "a.yaml").write_text("start: a\nsteps: {a: {tool: echo, args: {value: 1}, done: true}}\n")
    done = subprocess.run(
        ["bash", "-c", f"'{WFCELERY}' run a.yaml -q {streams}"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    full = "wfcelery: what was asked for cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (code, full if code else "")
    checked = process("check", cwd=tmp_path)
    assert (checked.code, json.loads(process("ps", "-o", "json", cwd=tmp_path).out)[0]["status"]) == (
        0,
        "completed",
    )
