"""`wfcelery run` in front of a person: gates are asked while it goes on, progress is redrawn in place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import process
from tests.cli.terminal import Terminal

ASK = "approve / deny / comment? "
GATED = """
name: gated
start: review
steps:
  review:
    description: May this be paid?
    approval: {on_deny: refuse}
    next: pay
  pay: {tool: echo, args: {sum: "{{input.sum}}"}, next: report}
  report: {tool: echo, args: {value: "{{steps.review.result}}"}, done: true}
  refuse: {tool: echo, args: {value: "{{steps.review.result}}"}, done: true}
"""


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    (tmp_path / "gated.yaml").write_text(GATED)
    return tmp_path


def started(folder: Path, *more: str, **environment: str) -> Terminal:
    return Terminal("run", "gated.yaml", "-i", "sum:=12", "--user", "ann", *more, cwd=folder, **environment)


def test_a_gate_shows_who_asks_for_what_and_is_approved_with_a_comment(flow: Path) -> None:
    with started(flow) as terminal:
        asked = terminal.read_until(ASK)
        question = asked[asked.index("⏸ review asks") :]
        assert question == (
            "⏸ review asks for your approval  (flow gated, started by ann)\n"
            "  May this be paid?\n"
            '  then pay: {\n    "sum": 12\n  }\n' + ASK
        )
        terminal.type("what?\n")
        terminal.read_until("Please type approve, deny or comment (a, d, c).")
        terminal.read_until(ASK)
        terminal.type("c looks good\n")
        terminal.read_until(ASK)
        terminal.type("approve\n")
        code, out, _ = terminal.end()
    result = {"approved": True, "by": ["ann"], "comment": "looks good", "form": None}
    assert (code, json.loads(out)) == (0, result)


def test_a_gate_is_denied(flow: Path) -> None:
    with started(flow) as terminal:
        terminal.read_until(ASK)
        terminal.type("d too much\n")
        code, out, shown = terminal.end()
    assert (code, json.loads(out)["comment"]) == (0, "too much")
    assert "✓ completed" in shown


def test_the_end_of_input_leaves_the_gate_open_and_exits_6(flow: Path) -> None:
    with started(flow) as terminal:
        terminal.read_until(ASK)
        terminal.type("\x04")
        code, _, shown = terminal.end()
    assert code == 6
    assert "review waits for approval; go on with\n  wfcelery run --resume " in shown


def test_ctrl_c_at_a_question_exits_130_and_the_run_goes_on_later(flow: Path) -> None:
    with started(flow) as terminal:
        terminal.read_until(ASK)
        terminal.type("\x03")
        code, _, shown = terminal.end()
    assert code == 130
    command = shown[shown.index("wfcelery run --resume") :].split()
    said = process(*command[1:], "--approve", "review", cwd=flow)
    assert said.code == 0
    assert process("check", cwd=flow).code == 0


def test_no_wait_gates_asks_nothing(flow: Path) -> None:
    with started(flow, "--no-wait-gates") as terminal:
        code, _, shown = terminal.end()
    assert (code, ASK in shown) == (6, False)


def test_the_run_goes_on_behind_a_question(tmp_path: Path) -> None:
    (tmp_path / "gated.yaml").write_text(
        """
name: gated
start: split
steps:
  split: {parallel: [gate, work], join: end}
  gate: {approval: {}}
  work: {tool: fail, args: {times: 1}, retry: {max_attempts: 2, backoff: [0.2]}}
  end: {tool: echo, args: {value: "{{result.work}}"}, done: true}
"""
    )
    with started(tmp_path) as terminal:
        terminal.read_until(ASK)
        run_id = process("ps", "-o", "ids", cwd=tmp_path).out.strip()
        done: list[object] = []
        while not done:
            steps = json.loads(process("show", run_id, "-o", "json", cwd=tmp_path).out)["steps"]
            done = [step for step in steps if step["name"] == "work" and step["status"] == "done"]
        terminal.type("a\n")
        code, out, _ = terminal.end()
    assert (code, json.loads(out)) == (0, {"attempts": 2})


def test_a_gate_that_runs_out_of_time_needs_no_answer(tmp_path: Path) -> None:
    gate = "start: gate\nname: g\nsteps: {gate: {approval: {timeout_s: 0.5}, next: end}, end: {done: true}}\n"
    (tmp_path / "gated.yaml").write_text(gate)
    with started(tmp_path) as terminal:
        terminal.read_until(ASK)
        terminal.read_until("This gate has been decided meanwhile.")
        code, _, shown = terminal.end()
    assert code == 1
    assert "⊘ cancelled: denied: gate was denied by timeout: nobody decided in time" in shown


def test_progress_is_redrawn_in_place_with_signs_of_their_own_and_without_colour_if_unwelcome(
    tmp_path: Path,
) -> None:
    (tmp_path / "gated.yaml").write_text(
        "name: f\nstart: a\nsteps: {a: {tool: fail, args: {times: 1}, retry: {backoff: [0.3]}, next: b}, "
        "b: {tool: sleep, args: {seconds: 0.3}, done: true}}\n"
    )
    with started(tmp_path, NO_COLOR="1") as terminal:
        terminal.read_until("⏲ a  retry 2/3 in 0.")
        raw = terminal.shown
        terminal.read_until("▶ b")
        code, _, shown = terminal.end()
    assert code == 0
    assert "✓ a" in shown
    assert "\x1b[3" not in raw + terminal.shown
    assert "\x1b[1A\r\x1b[J" in raw + terminal.shown or "\x1b[2A\r\x1b[J" in raw + terminal.shown


def test_a_terminal_that_knows_only_ascii_gets_ascii(flow: Path) -> None:
    with started(flow, "--approve", "review", PYTHONIOENCODING="ascii") as terminal:
        code, _, shown = terminal.end()
    assert code == 0
    assert "+ completed in" in shown
    assert shown.isascii()
