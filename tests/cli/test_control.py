"""Commands that change runs, without a broker: written here, beside no executor, and nothing else happens."""

from __future__ import annotations

import io
import json
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.calling import Said, call
from wfcelery.store import dead_letters, lease, open_database

GATE = """
start: g
steps:
  g: {approval: {approvers: [bob, cy]}, next: e}
  e: {tool: echo, args: {value: "{{steps.g.result.form ?? 0}}"}, done: true}
"""
TWO = """
start: s
steps:
  s: {parallel: [g, h]}
  g: {approval: {quorum: 2}, join: e}
  h: {approval: {allow_self: true}, join: e}
  e: {done: true}
"""
WAIT = 'start: w\nsteps: {w: {wait: {signal: paid, key: "{{input.k}}"}, done: true}}\n'
BUSY = "an executor is at work on this database; set WFCELERY_BROKER_URL, so that this command can reach it"


def begin(capsys: pytest.CaptureFixture[str], flow: str, *more: str, name: str = "f") -> str:
    """Run a flow as far as it goes, and give its id."""
    Path(f"{name}.yaml").write_text(flow)
    call(capsys, "run", f"{name}.yaml", "--no-wait-gates", *more)
    return call(capsys, "ps", "--limit", "1", "-o", "ids").out.strip()


def status(capsys: pytest.CaptureFixture[str], run: str) -> str:
    return str(json.loads(call(capsys, "show", run, "-o", "json").out)["status"])


@pytest.fixture
def gate(here: Path, capsys: pytest.CaptureFixture[str]) -> str:
    return begin(capsys, GATE, "--key", "k1")


def test_a_gate_is_approved_and_the_run_goes_on_where_it_is_resumed(
    gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "approve", gate, "g", "--user", "bob", "--form", "n:=5", "--comment", "fine")
    assert said == Said(0, f"✓ {gate}  approved g\n", "")
    steps = json.loads(call(capsys, "show", gate, "-o", "json").out)["steps"]
    assert {step["name"]: step["status"] for step in steps} == {"g": "done", "e": "ready"}
    done = call(capsys, "run", "--resume", gate)
    assert (done.code, json.loads(done.out)) == (0, {"n": 5})


def test_the_only_open_gate_need_not_be_named_and_a_run_is_found_by_its_key(
    gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "deny", "--flow", "f", "--key", "k1", "--user", "cy", "-o", "json")
    assert (said.code, json.loads(said.out)) == (
        0,
        [{"run_id": gate, "ok": True, "exit_code": 0, "message": "denied g"}],
    )
    assert status(capsys, gate) == "cancelled"
    missing = call(capsys, "deny", "--flow", "f", "--key", "k1")
    assert missing == Said(
        3, "", "wfcelery: no live run of f with key k1; `wfcelery ps --flow f` lists its runs\n"
    )


def test_one_of_several_gates_must_be_named_and_votes_are_counted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begin(capsys, TWO)
    said = call(capsys, "approve", run)
    assert said == Said(2, "", f"wfcelery: run {run}: has 2 open gates: g, h; name one\n")
    assert call(capsys, "approve", run, "g", "--user", "bob").out == f"✓ {run}  approved g: 1 of 2 votes\n"
    assert call(capsys, "approve", run, "h").out == f"✓ {run}  approved h\n"
    assert call(capsys, "approve", run, "g", "--user", "cy").out == f"✓ {run}  approved g\n"
    assert status(capsys, run) == "completed"
    nothing = call(capsys, "approve", run)
    assert nothing == Said(
        3, "", f"wfcelery: no open gate in run {run}; `wfcelery explain {run}` says what it waits for\n"
    )


def test_a_decision_that_is_not_allowed_is_refused(gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "approve", gate, "g")
    assert said == Said(4, "", f"wfcelery: {gate}: ann is not an approver of g; it waits for bob, cy\n")
    call(capsys, "approve", gate, "--user", "bob")
    again = call(capsys, "approve", gate, "g", "--user", "cy")
    assert again == Said(4, "", f"wfcelery: {gate}: g is not waiting: it is done\n")
    assert call(capsys, "approve", "nope", "g") == Said(
        3, "", "wfcelery: no run nope; `wfcelery ps` lists the runs\n"
    )


def test_runs_are_held_and_go_on_and_are_cancelled(gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "pause", gate) == Said(0, f"✓ {gate}  paused\n", "")
    assert call(capsys, "explain", gate).out.startswith("held by an operator; ")
    assert call(capsys, "resume", gate, "-o", "ids") == Said(0, f"{gate}\n", "")
    assert call(capsys, "cancel", gate, "--reason", "sold out").code == 0
    run = json.loads(call(capsys, "show", gate, "-o", "json").out)
    assert (run["status"], run["error"]) == (
        "cancelled",
        {"type": "cancelled", "message": "cancelled by ann: sold out"},
    )


def test_a_failed_run_is_reopened_where_it_failed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = "start: a\nsteps: {a: {tool: fail, args: {times: 1}, retry: {max_attempts: 1}, done: true}}\n"
    run = begin(capsys, flow)
    assert status(capsys, run) == "failed"
    assert call(capsys, "retry", run).out == f"✓ {run}  tries again\n"
    assert call(capsys, "run", "--resume", run).code == 0
    assert call(capsys, "retry", run) == Said(
        4, "", f"wfcelery: {run}: only a failed run can be retried; this one is completed\n"
    )


def test_ids_come_from_stdin_and_the_worst_decides_the_exit_code(
    gate: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{gate}\nnope\n{gate}\n"))
    said = call(capsys, "cancel", "-")
    assert said == Said(3, f"✓ {gate}  cancelled\n", "wfcelery: no run nope\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{gate}\n"))
    assert call(capsys, "retry").code == 4
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert call(capsys, "retry", "-") == Said(0, "", "")
    nothing = call(capsys, "retry")
    assert (nothing.code, nothing.err.splitlines()[-1]) == (
        2,
        "Error: name a RUN; `-` reads ids from stdin, one a line",
    )


def test_a_signal_reaches_a_run_by_its_id_and_everybody_by_a_key(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (begin(capsys, WAIT, "-i", "k=17", "--key", each) for each in ("a", "b"))
    third = begin(capsys, WAIT, "-i", "k=18")
    assert call(capsys, "explain", third).out.startswith("waits for signal `paid` with key 18 at `w`")
    said = call(capsys, "signal", "--key", "17", "paid", "-i", "n:=1")
    assert (said.code, sorted(said.out.split())) == (0, sorted([*("✓", "told", "paid") * 2, first, second]))
    assert status(capsys, first) == "completed"
    assert call(capsys, "signal", third, "paid").out == f"✓ {third}  told paid\n"
    assert status(capsys, third) == "completed"
    nobody = call(capsys, "signal", "--key", "19", "paid")
    assert nobody == Said(0, "", "nobody waits for paid with key 19 now; it is kept for a week\n")
    wrong = call(capsys, "signal", "paid")
    assert (wrong.code, wrong.err.splitlines()[-1]) == (
        2,
        "Error: name a RUN and the signal's NAME; with --key the NAME only",
    )


def test_beside_a_live_executor_it_is_refused(gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(open_database("sqlite:///.wfcelery/wfcelery.db")) as database:
        held = lease.acquire(database, "e1", ttl_s=60.0, now=time.time())
        assert held is not None
        for command in (["cancel", gate], ["approve", gate], ["signal", gate, "x"], ["define", "f.yaml"]):
            assert call(capsys, *command) == Said(4, "", f"wfcelery: {BUSY}\n")
        held.release()
    assert call(capsys, "cancel", gate).code == 0


@pytest.mark.parametrize("command", ["cancel", "pause", "resume", "retry", "approve", "deny"])
def test_who_changes_a_run_makes_no_database(
    here: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    said = call(capsys, command, "nope")
    assert (said.code, said.out) == (5, "")
    assert said.err == (
        "wfcelery: database .wfcelery/wfcelery.db is out of reach: there is no such file; "
        "`wfcelery run` makes it, --database names another\n"
    )
    assert not (here / ".wfcelery").exists()


def test_dead_letters_are_listed_and_shown(gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "dead-letters").out.split() == ["ID", "AT", "RUN", "ERROR", "MESSAGE"]
    with (
        closing(open_database("sqlite:///.wfcelery/wfcelery.db")) as database,
        database.transaction() as conn,
    ):
        dead_letters.put(conn, at=1_700_000_000.0, run_id=gate, message="{}", error="no kind")
    assert call(capsys, "dead-letters").out.splitlines()[1].split() == [
        "1", "2023-11-14", "22:13:20", gate, "no", "kind", "{}",
    ]  # fmt: skip
    assert call(capsys, "dead-letters", "-o", "ids").out == "1\n"
    assert json.loads(call(capsys, "dead-letters", "--show", "1", "-o", "json").out) == {
        "id": 1,
        "at": "2023-11-14T22:13:20.000Z",
        "run_id": gate,
        "error": "no kind",
        "message": "{}",
    }
    assert call(capsys, "dead-letters", "--show", "1").out == (
        f"dead letter 1\n  at     2023-11-14 22:13:20 UTC\n  run    {gate}\n  error  no kind\n\n{{}}\n"
    )
    assert call(capsys, "dead-letters", "--show", "2") == Said(
        3, "", "wfcelery: no dead letter 2; `wfcelery dead-letters` lists them\n"
    )
