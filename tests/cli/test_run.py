"""`wfcelery run`: what comes out, on which stream, with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import Said, call, process

GATED = """
name: gated
start: prepare
steps:
  prepare: {tool: echo, args: {value: 1}, next: review}
  review: {approval: {on_deny: refuse}, next: pay}
  pay: {tool: echo, args: {paid: 7}, done: true}
  refuse: {tool: echo, args: {paid: 0}, done: true}
"""
WAITING = """
start: hold
steps:
  hold: {wait: {signal: paid}, next: report}
  report: {tool: echo, args: {value: "{{result}}"}, done: true}
name: waiting
"""
FAILING = """
name: failing
start: break
steps:
  break: {tool: fail, args: {message: no luck}, retry: {max_attempts: 1}, done: true}
"""


LOUD = """
from wfcelery.tools import tool

@tool
def shout() -> None:
    raise ValueError("bad\\x1b[31m\\u202e\\rnews")
"""


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


def run_of(said: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said.out)
    return found


def only_id(capsys: pytest.CaptureFixture[str]) -> str:
    return call(capsys, "ps", "-o", "ids").out.strip()


def test_a_completed_run_prints_its_output_and_exits_0(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = write(
        here,
        "hello.yaml",
        "start: greet\nsteps: {greet: {tool: echo, args: {hi: '{{input.name}}'}, done: true}}\n",
    )
    said = call(capsys, "run", flow, "-i", "name=Ann")
    assert (said.code, json.loads(said.out)) == (0, {"hi": "Ann"})
    lines = said.err.splitlines()
    run_id = only_id(capsys)
    assert lines[:2] == [f"run {run_id}", "▶ greet"]
    assert lines[-1] == f"  wfcelery show {run_id}"
    assert (here / ".wfcelery" / "wfcelery.db").exists()


def test_as_json_stdout_is_one_document_whatever_tools_print(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        here,
        "noisy.py",
        "import os, sys\nfrom wfcelery.tools import tool\n\n@tool\ndef noise() -> int:\n"
        "    print('printed')\n    os.write(1, b'written\\n')\n    sys.stdout.write('half')\n    return 1\n",
    )
    flow = write(here, "f.yaml", "start: a\nsteps: {a: {tool: noise, done: true}}\n")
    said = process("run", flow, "--tools", "noisy", "-o", "json", cwd=here)
    assert (said.code, run_of(said)["status"], run_of(said)["output"]) == (0, "completed", 1)
    assert {"printed", "written", "half"} <= set(said.err.splitlines())


def test_a_run_as_json_has_the_documented_fields(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "run", write(here, "f.yaml", FAILING), "-o", "json", "--tag", "t", "--key", "k", "-q")
    run = run_of(said)
    assert list(run) == [
        *("id", "name", "version", "status", "input", "output", "error", "created_by", "key", "tags"),
        *("created_at", "completed_at", "steps"),
    ]
    assert list(run["steps"][0]) == [
        *("id", "name", "item", "attempt", "status", "tool", "args", "result", "error", "ready_at", "due_at"),
        *("started_at", "completed_at", "worker"),
    ]
    assert (run["created_by"], run["key"], run["tags"], run["input"]) == ("ann", "k", ["t"], {})


def test_a_failed_run_says_why_and_exits_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "run", write(here, "f.yaml", FAILING), "-q")
    assert (said.code, said.out) == (1, "")
    assert said.err == "✗ failed: ToolError: step break failed: no luck\n"


def test_what_a_tool_says_cannot_steer_the_terminal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, "loud.py", LOUD)
    flow = "start: a\nsteps: {a: {tool: shout, retry: {max_attempts: 1}, done: true}}\n"
    said = call(capsys, "run", write(here, "loud.yaml", flow), "--tools", "loud", "--key", "k\x1b[2J")
    assert said.err.splitlines()[2:4] == [
        "✗ a  ValueError: bad[31m news",
        "✗ failed: ValueError: step a failed: bad[31m news",
    ]
    shown = [call(capsys, *command).out for command in (["ps"], ["show", only_id(capsys)])]
    assert [character for character in "".join(shown) if character < " " and character != "\n"] == []


def test_without_a_terminal_a_gate_stops_the_run_with_exit_6(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "run", write(here, "g.yaml", GATED), "-q", "--user", "bo")
    assert (said.code, said.out) == (6, "")
    run_id = only_id(capsys)
    assert said.err.splitlines() == [
        "review waits for approval; go on with",
        f"  wfcelery run --resume {run_id} --approve review --user bo",
    ]
    went_on = call(capsys, "run", "--resume", run_id, "--approve", "review", "-q")
    assert (went_on.code, json.loads(went_on.out)) == (0, {"paid": 7})


def test_a_waiting_run_is_printed_as_json_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "run", write(here, "g.yaml", GATED), "-o", "json")
    assert (said.code, run_of(said)["status"]) == (6, "paused")


@pytest.mark.parametrize(("answer", "paid"), [("--approve", 7), ("--deny", 0)])
def test_gates_are_answered_beforehand(
    here: Path, capsys: pytest.CaptureFixture[str], answer: str, paid: int
) -> None:
    said = call(capsys, "run", write(here, "g.yaml", GATED), answer, "review", "--comment", "so be it")
    assert (said.code, json.loads(said.out)) == (0, {"paid": paid})
    events = json.loads(call(capsys, "events", only_id(capsys), "-o", "json").out)
    votes = [event for event in events if event["type"] == "vote_cast"]
    assert [(vote["actor"], vote["data"]["comment"]) for vote in votes] == [("ann", "so be it")]


def test_a_gate_for_others_is_refused_with_exit_4(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = write(here, "g.yaml", GATED.replace("{on_deny: refuse}", "{on_deny: refuse, approvers: [zoe]}"))
    said = call(capsys, "run", flow, "--approve", "review", "-q")
    assert (said.code, said.err) == (4, "wfcelery: ann is not an approver of review; it waits for zoe\n")
    run_id = only_id(capsys)
    again = call(capsys, "run", "--resume", run_id, "--approve", "review", "--user", "zoe")
    assert again.code == 0


def test_a_group_is_not_proposed_as_a_user(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = '{on_deny: refuse, approvers: ["group:ops"]}'
    flow = write(here, "g.yaml", GATED.replace("{on_deny: refuse}", gate))
    said = call(capsys, "run", flow, "-i", "amount:=5", "--no-wait-gates")
    assert said.err.endswith(" --approve review --user NAME\n")


def test_the_command_that_goes_on_has_all_that_the_gate_asks_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = "{on_deny: refuse, approvers: [zoe, ann], quorum: 2, require_comment: true}"
    flow = write(here, "g.yaml", GATED.replace("{on_deny: refuse}", gate))
    said = call(capsys, "run", flow, "--approve", "review", "--comment", "fine", "--user", "ann", "-q")
    assert (said.code, said.err.splitlines()) == (
        6,
        [
            "review waits for approval by zoe, ann; go on with",
            f"  wfcelery run --resume {only_id(capsys)} --approve review --comment TEXT --user zoe",
        ],
    )


def test_answers_to_nothing_are_told_when_the_run_waits(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = write(here, "g.yaml", GATED)
    said = call(capsys, "run", flow, "--approve", "reviw", "--signal", "paid=1", "-q")
    assert (said.code, said.err.splitlines()) == (
        6,
        [
            "--approve reviw: nothing of that name has waited so far",
            "--signal paid: nothing of that name has waited so far",
            "review waits for approval; go on with",
            f"  wfcelery run --resume {only_id(capsys)} --approve review",
        ],
    )


def test_a_signal_can_be_given_beforehand(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = write(here, "w.yaml", WAITING)
    waits = call(capsys, "run", flow, "-q")
    run_id = only_id(capsys)
    assert (waits.code, waits.err.splitlines()) == (
        6,
        ["hold waits for the signal paid; go on with", f"  wfcelery run --resume {run_id} --signal paid"],
    )
    said = call(capsys, "run", "--resume", run_id, "--signal", 'paid={"sum": 3}')
    assert (said.code, json.loads(said.out)) == (0, {"sum": 3})


def test_a_gate_inside_a_sub_flow_is_found_and_answered(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, "gated.yaml", GATED)
    parent = write(here, "p.yaml", "start: a\nsteps: {a: {flow: {name: gated}, done: true}}\n")
    waits = call(capsys, "run", parent)
    assert waits.code == 6
    assert "defined gated@1 from gated.yaml" in waits.err.splitlines()
    run_id = json.loads(call(capsys, "ps", "--flow", "p", "-o", "json").out)[0]["id"]
    assert waits.err.splitlines()[-1] == f"  wfcelery run --resume {run_id} --approve review"
    said = call(capsys, "run", "--resume", run_id, "--approve", "review", "-q")
    assert (said.code, json.loads(said.out)) == (0, {"paid": 7})


def test_a_changed_sub_flow_beside_the_file_is_used_at_once(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = "start: a\nsteps: {{a: {{tool: echo, args: {{value: {value}}}, done: true}}}}\n"
    parent = write(here, "p.yaml", "start: a\nsteps: {a: {flow: {name: child}, done: true}}\n")
    for value in (1, 2):
        write(here, "child.yaml", child.format(value=value))
        assert json.loads(call(capsys, "run", parent).out) == value


def test_flows_that_call_one_another_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, "a.yaml", "start: x\nsteps: {x: {flow: {name: b}, done: true}}\n")
    write(here, "b.yaml", "start: x\nsteps: {x: {flow: {name: a}, done: true}}\n")
    said = call(capsys, "run", "a.yaml")
    assert (said.code, said.err) == (
        2,
        (
            "wfcelery: the flow has 1 fault\n"
            "b.yaml: these flows call one another: a.yaml → b.yaml → a.yaml [subflow-cycle] "
            "(a flow ends; use `retry` or `foreach` to repeat work)\n"
        ),
    )
    assert not (here / ".wfcelery").exists()


def test_a_defined_flow_runs_by_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "define", write(here, "w.yaml", WAITING), "-o", "ids").out == "waiting@1\n"
    said = call(capsys, "run", "waiting@1", "--signal", "paid=5")
    assert (said.code, json.loads(said.out)) == (0, 5)
    unknown = call(capsys, "run", "waiting@2")
    assert (unknown.code, unknown.err) == (
        3,
        "wfcelery: no definition waiting@2; `wfcelery definitions` lists what there is\n",
    )


def test_a_second_run_with_a_live_key_is_refused_and_names_the_first(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = write(here, "g.yaml", GATED)
    call(capsys, "run", flow, "--key", "k1")
    run_id = only_id(capsys)
    said = call(capsys, "run", flow, "--key", "k1")
    assert (said.code, said.err) == (4, f"wfcelery: run {run_id} is live under the key k1\n")


def test_resuming_an_ended_run_just_prints_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "run", write(here, "f.yaml", FAILING))
    run_id = only_id(capsys)
    said = call(capsys, "run", "--resume", run_id, "-q")
    assert (said.code, said.err) == (1, "✗ failed: ToolError: step break failed: no luck\n")


def test_other_runs_in_the_database_are_left_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "run", write(here, "g.yaml", GATED))
    first = only_id(capsys)
    before = call(capsys, "events", first, "-o", "json").out
    call(capsys, "run", write(here, "f.yaml", FAILING))
    assert call(capsys, "events", first, "-o", "json").out == before


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["nope.yaml"], 2, "wfcelery: nope.yaml: there is no such file\n"),
        (
            ["nope"],
            3,
            (
                "wfcelery: no definition nope; and no file of that name; a flow is a .yaml or .json file, "
                "or is kept by `wfcelery define`\n"
            ),
        ),
        (["f.yaml", "-i", "x"], 2, "wfcelery: -i x: is no input; write key=text, key:=json or @file.json\n"),
        (
            ["--resume", "0" * 26],
            5,
            (
                "wfcelery: database .wfcelery/wfcelery.db is out of reach: there is no such file; "
                "`wfcelery run` makes it, --database names another\n"
            ),
        ),
        (
            ["f.yaml", "--database", "mysql://x"],
            2,
            "wfcelery: setting database_url: names mysql; wfcelery speaks sqlite and postgresql\n",
        ),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence_and_leaves_nothing_behind(
    here: Path, capsys: pytest.CaptureFixture[str], args: list[str], code: int, said: str
) -> None:
    write(here, "f.yaml", FAILING)
    answer = call(capsys, "run", *args)
    assert (answer.code, answer.out, answer.err) == (code, "", said)
    assert not (here / ".wfcelery").exists()


def test_tools_that_cannot_be_imported_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "run", write(here, "f.yaml", FAILING), "--tools", "no_such_module")
    assert (said.code, said.err) == (
        2,
        (
            "wfcelery: setting WFCELERY_TOOLS: module `no_such_module` cannot be imported: "
            "ModuleNotFoundError: No module named 'no_such_module'\n"
        ),
    )


def test_an_input_that_does_not_fit_exits_2(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "input: {type: object, required: [n]}\nstart: a\nsteps: {a: {tool: echo, done: true}}\nname: f\n"
    said = call(capsys, "run", write(here, "f.yaml", text))
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("wfcelery: the input does not fit f: ")


def test_the_faults_of_a_flow_are_told_with_their_lines(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = write(here, "f.yaml", "start: a\nsteps:\n  a: {tool: ecko, done: true}\n")
    said = call(capsys, "run", flow)
    assert (said.code, said.err) == (
        2,
        (
            "wfcelery: the flow has 1 fault\n"
            "f.yaml:3:7: there is no tool `ecko` [unknown-tool] (did you mean `echo`?)\n"
        ),
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "name a FLOW, or a run to --resume; not both"),
        (["f.yaml", "--resume", "x"], "name a FLOW, or a run to --resume; not both"),
        (
            ["--resume", "x", "-i", "a=1"],
            "--resume goes on with what was given at the start: leave -i, --key and --tag out",
        ),
        (["f.yaml", "--approve", "a", "--deny", "a"], "--approve and --deny both name a"),
    ],
)
def test_options_that_contradict_each_other_exit_2(
    here: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    answer = call(capsys, "run", *args)
    assert (answer.code, answer.err.splitlines()[-1]) == (2, f"Error: {said}")


def test_a_database_in_memory_is_enough_for_a_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "run", write(here, "w.yaml", WAITING), "--signal", "paid", "--database", "sqlite://")
    assert (said.code, json.loads(said.out)) == (0, None)
    assert not (here / ".wfcelery").exists()


def test_a_run_on_either_database_is_resumed_shown_and_sound(
    here: Path, capsys: pytest.CaptureFixture[str], database_url: str
) -> None:
    on = ["--database", database_url]
    assert call(capsys, "run", write(here, "g.yaml", GATED), *on).code == 6
    run_id = call(capsys, "ps", "-o", "ids", *on).out.strip()
    assert json.loads(call(capsys, "show", run_id, "-o", "json", *on).out)["status"] == "paused"
    said = call(capsys, "run", "--resume", run_id, "--approve", "review", *on)
    assert (said.code, json.loads(said.out)) == (0, {"paid": 7})
    assert call(capsys, "check", *on).code == 0
    assert not (here / ".wfcelery").exists()


def test_a_sub_run_goes_on_only_with_the_run_it_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text("start: ask\nsteps:\n  ask: {approval: {}, done: true}\n")
    (tmp_path / "parent.yaml").write_text("start: c\nsteps:\n  c: {flow: {name: child}, done: true}\n")
    said = process("run", "parent.yaml", "-o", "json", cwd=tmp_path)
    assert said.code == 6
    parent = json.loads(said.out)["id"]
    child = next(run for run in process("ps", "-o", "ids", cwd=tmp_path).out.split() if run != parent)
    refused = process("run", "--resume", child, "--approve", "ask", cwd=tmp_path)
    assert (refused.code, refused.err) == (
        4,
        f"wfcelery: {child} is a sub-run; go on with `wfcelery run --resume {parent}`\n",
    )
    assert process("run", "--resume", parent, "--approve", "ask", cwd=tmp_path).code == 0
