"""`watch`, `events -f`, `explain`: looking on while a run goes on, or does not."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.calling import ROOT, WFCELERY, call, environment
from tests.cli.terminal import Terminal

FLOWS = ROOT / "flows"
GATE = """
start: g
steps: {g: {approval: {approvers: [bob]}, next: e}, e: {tool: echo, args: {value: 7}, done: true}}
"""


@pytest.fixture
def gate(here: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The id of a run that waits at a gate."""
    (here / "f.yaml").write_text(GATE)
    assert call(capsys, "run", "f.yaml", "--no-wait-gates", "--key", "k1").code == 6
    return call(capsys, "ps", "-o", "ids").out.strip()


def finish(capsys: pytest.CaptureFixture[str], run: str) -> None:
    assert call(capsys, "run", "--resume", run, "--approve", "g", "--user", "bob").code == 0


def test_a_run_that_has_ended_is_told_at_once(gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    finish(capsys, gate)
    said = call(capsys, "watch", gate)
    assert (said.code, said.out) == (0, "7\n")
    assert re.sub(r"\d[\d.]* s", "TOOK", said.err) == "✓ g  TOOK\n✓ e  TOOK\n✓ completed in TOOK\n"
    whole = call(capsys, "watch", gate, "-q", "-o", "json")
    assert (whole.code, json.loads(whole.out)["status"], whole.err) == (0, "completed", "")


def test_a_run_that_failed_exits_with_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "x.yaml").write_text(
        "start: a\nsteps: {a: {tool: fail, args: {message: no}, retry: {max_attempts: 1}, done: true}}\n"
    )
    call(capsys, "run", "x.yaml")
    run = call(capsys, "ps", "-o", "ids").out.strip()
    said = call(capsys, "watch", run)
    assert (said.code, said.out) == (1, "")
    assert said.err == "✗ a  ToolError: no\n✗ failed: ToolError: step a failed: no\n"
    assert call(capsys, "explain", run).out == (
        f"it has failed: ToolError: step a failed: no; `wfcelery retry {run}` tries again what failed\n"
    )


def test_a_gate_that_nobody_answers_in_time_exits_with_6(
    gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "watch", gate, "--timeout", "0")
    assert (said.code, said.out) == (6, "")
    assert said.err == (
        f"⏸ g  waits for approval\n⏸ paused; `wfcelery explain {gate}` says what it waits for\n"
    )


def test_the_end_of_a_run_ends_the_watching(
    gate: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [WFCELERY, "watch", gate]
    with subprocess.Popen(
        command, cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stderr is not None
        assert watching.stdout is not None
        assert watching.stderr.readline() == "⏸ g  waits for approval\n"
        finish(capsys, gate)
        assert watching.stderr.readline().startswith("✓ g  ")
        assert watching.stdout.read() == "7\n"
        assert watching.wait(10) == 0


def test_events_are_followed_to_the_end(gate: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [WFCELERY, "events", gate, "-f", "-o", "json"]
    with subprocess.Popen(
        command, cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        first = "".join(following.stdout.readline() for _ in range(3))
        reader = threading.Thread(target=finish, args=(capsys, gate))
        reader.start()
        rest = following.stdout.read()
        reader.join()
        assert following.wait(10) == 0
    assert json.loads(first + rest) == json.loads(call(capsys, "events", gate, "-o", "json").out)
    lines = call(capsys, "events", gate, "-f", "--limit", "2").out.splitlines()
    assert [line.split()[0] for line in lines] == ["SEQ", "1", "2"]


def test_a_run_that_waits_says_for_whom(gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = call(capsys, "explain", gate).out.splitlines()
    assert [re.sub(r"since \d+ s", "since N s", line) for line in lines] == [
        "waits for the approval of bob at `g` since N s",
        (
            "no executor is running since N s; start `wfcelery executor`, "
            f"or go on here with `wfcelery run --resume {gate}`"
        ),
    ]
    told = json.loads(call(capsys, "explain", gate, "-o", "json").out)
    assert (told["run_id"], told["status"]) == (gate, "paused")
    assert [reason["code"] for reason in told["reasons"]] == ["approval", "no-executor"]
    finish(capsys, gate)
    assert call(capsys, "explain", gate).out == "it is completed\n"


@pytest.mark.parametrize("command", ["watch", "explain"])
def test_a_run_that_is_not_there_exits_3(gate: str, capsys: pytest.CaptureFixture[str], command: str) -> None:
    said = call(capsys, command, "nope")
    assert (said.code, said.out, said.err) == (3, "", "wfcelery: no run nope; `wfcelery ps` lists the runs\n")


def test_runs_are_listed_since_when_and_by_several_statuses(
    gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, "ps", "--since", "1h", "-o", "ids").out == f"{gate}\n"
    assert call(capsys, "ps", "--since", "2030-01-31T12:00Z", "-o", "ids").out == ""
    both = ["--status", "paused", "--status", "failed"]
    assert call(capsys, "ps", *both, "-o", "ids").out == f"{gate}\n"
    said = call(capsys, "ps", "--since", "lately")
    assert (said.code, said.err) == (
        2,
        "wfcelery: --since: 'lately' is no moment; write +10m or 2030-01-31T12:00Z\n",
    )


def test_on_a_terminal_the_steps_are_redrawn_and_ctrl_c_ends_the_watching(
    gate: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Terminal("watch", gate, cwd=here) as terminal:
        terminal.read_until(" g  waits for approval")
        terminal.type("\x03")
        assert terminal.end()[:2] == (130, "")
    with Terminal("watch", gate, cwd=here) as terminal:
        terminal.read_until(" g  waits for approval")
        finish(capsys, gate)
        terminal.read_until(" completed")
        assert terminal.end()[:2] == (0, "7\n")
