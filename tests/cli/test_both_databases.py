"""The commands on SQLite and on PostgreSQL: the same words, the same numbers."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.cli.calling import WFCELERY, process

FLOW = """
name: order
start: check
steps:
  check: {tool: echo, args: {value: "{{input.n}}"}, next: sure}
  sure: {approval: {}, next: nap}
  nap: {tool: sleep, args: {seconds: "{{input.nap ?? 0}}"}, next: end}
  end: {tool: echo, args: {value: "{{steps.check.result * 2}}"}, done: true}
"""


def test_a_run_is_begun_stopped_resumed_and_shown(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text(FLOW)
    where = ["--database", database_url]
    waits = process("run", "order.yaml", "-i", "n:=21", "-o", "json", *where, cwd=tmp_path)
    assert waits.code == 6
    run_id = json.loads(waits.out)["id"]
    assert process("ps", "--status", "paused", "-o", "ids", *where, cwd=tmp_path).out == f"{run_id}\n"
    ended = process("run", "--resume", run_id, "--approve", "sure", *where, cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "42\n")
    shown = json.loads(process("show", run_id, "-o", "json", *where, cwd=tmp_path).out)
    assert [step["status"] for step in shown["steps"]] == ["done"] * 4
    events = json.loads(process("events", run_id, "-o", "json", *where, cwd=tmp_path).out)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert process("check", *where, cwd=tmp_path).code == 0


def test_a_killed_run_goes_on(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text(FLOW)
    where = ["--database", database_url]
    command = [WFCELERY, "run", "order.yaml", "-i", "n:=1", "-i", "nap:=4", "--approve", "sure", *where]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    run_id = running.stderr.readline().split()[1]
    while "nap" not in running.stderr.readline():
        pass
    running.send_signal(signal.SIGKILL)
    running.communicate()
    shown = process("show", run_id, "-o", "json", *where, cwd=tmp_path)
    assert json.loads(shown.out)["status"] == "running"
    said = process("run", "--resume", run_id, *where, cwd=tmp_path)
    while said.code == 4:  # On PostgreSQL the lease of the dead runs out first; SQLite's lock went at once.
        said = process("run", "--resume", run_id, *where, cwd=tmp_path)
    assert (said.code, said.out) == (0, "2\n")


def test_a_run_is_explained_decided_held_and_cancelled(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text(FLOW)
    where = ["--database", database_url]
    waits = process("run", "order.yaml", "-i", "n:=21", "-o", "json", *where, cwd=tmp_path)
    run_id = json.loads(waits.out)["id"]
    why = json.loads(process("explain", run_id, "-o", "json", *where, cwd=tmp_path).out)
    assert [each["code"] for each in why["reasons"]] == ["approval", "no-executor"]
    assert process("watch", run_id, "--timeout", "0", *where, cwd=tmp_path).code == 6
    assert process("pause", run_id, *where, cwd=tmp_path).code == 0
    assert process("approve", run_id, "--user", "bob", *where, cwd=tmp_path).code == 0
    assert process("resume", run_id, *where, cwd=tmp_path).code == 0
    why = json.loads(process("explain", run_id, "-o", "json", *where, cwd=tmp_path).out)
    assert [(each["code"], each["step"]) for each in why["reasons"]] == [
        ("no-executor", None),
        ("ready", "nap"),
    ]
    assert process("cancel", run_id, *where, cwd=tmp_path).out == f"✓ {run_id}  cancelled\n"
    assert process("watch", run_id, *where, cwd=tmp_path).code == 1
    assert process("dead-letters", *where, cwd=tmp_path).code == 0
