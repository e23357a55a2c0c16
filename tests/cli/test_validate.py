"""`wfcelery validate`: every fault with its place, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import ROOT, call

GOOD = "start: a\nsteps: {a: {tool: echo, done: true}}\n"
BAD = "start: a\nsteps:\n  a: {tool: ecko, next: b}\n  c: {tool: echo, done: true}\n"


def test_the_sample_flows_have_no_faults(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "validate", str(ROOT / "flows"))
    assert (said.code, said.out, said.err) == (0, "", "10 flows, no faults\n")
    assert list(here.iterdir()) == []


def test_faults_are_told_by_file_line_and_column(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "f.yaml").write_text(BAD)
    said = call(capsys, "validate", "f.yaml")
    assert said.code == 2
    assert [line.split(" ")[0] for line in said.out.splitlines()] == [
        "f.yaml:3:7:",
        "f.yaml:3:19:",
        "f.yaml:4:3:",
    ]
    assert (
        said.out.splitlines()[0]
        == "f.yaml:3:7: there is no tool `ecko` [unknown-tool] (did you mean `echo`?)"
    )
    assert said.err == "1 flow, 3 faults in 1\n"


def test_faults_as_json_have_the_documented_fields(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "f.yaml").write_text(BAD)
    said = call(capsys, "validate", "f.yaml", "-o", "json")
    faults = json.loads(said.out)
    assert (said.code, said.err) == (2, "")
    assert faults[0] == {
        "code": "unknown-tool",
        "message": "there is no tool `ecko`",
        "path": "steps.a.tool",
        "line": 3,
        "column": 7,
        "hint": "did you mean `echo`?",
    }
    assert [fault["code"] for fault in faults] == ["unknown-tool", "unknown-step", "unreachable-step"]


def test_of_several_files_each_fault_names_its_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = here / "flows"
    folder.mkdir()
    (folder / "good.yml").write_text(GOOD)
    (folder / "bad.json").write_text("{")
    (folder / "notes.txt").write_text("not a flow")
    said = call(capsys, "validate", "flows", "-o", "json")
    assert (said.code, [fault["file"] for fault in json.loads(said.out)]) == (2, ["flows/bad.json"])


def test_no_faults_as_json_are_an_empty_list(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "f.yaml").write_text(GOOD)
    said = call(capsys, "validate", "f.yaml", "-o", "json")
    assert (said.code, said.out) == (0, "[]\n")


def test_a_folder_without_flows_and_a_missing_file_exit_2(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "empty").mkdir()
    empty = call(capsys, "validate", "empty")
    assert (empty.code, empty.out) == (
        2,
        "empty: holds no flows [unreadable-file] (they end in .yaml, .yml or .json)\n",
    )
    missing = call(capsys, "validate", "nope.yaml")
    assert (missing.code, missing.out) == (2, "nope.yaml: there is no such file [unreadable-file]\n")


@pytest.mark.parametrize("command", ["validate", "define"])
def test_a_file_that_is_not_there_hides_the_faults_of_no_other(
    here: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (here / "bad.yaml").write_text("start: a\nsteps: {a: {tool: ecko, done: true}}\n")
    (here / "good.yaml").write_text(GOOD)
    (here / "worse.json").write_text("[]")
    said = call(capsys, command, "nope.yaml", "bad.yaml", "good.yaml", "worse.json")
    lines = [
        "nope.yaml: there is no such file [unreadable-file]",
        "bad.yaml:2:13: there is no tool `ecko` [unknown-tool] (did you mean `echo`?)",
        "worse.json:1:1: a flow is a map; this is a list [bad-type] (write a map with `start` and its steps)",
    ]
    tally = "4 flows, 3 faults in 3"
    assert said.code == 2
    assert (said.out + said.err).splitlines() == (
        [*lines, tally] if command == "validate" else [f"wfcelery: {tally}", *lines]
    )
    assert not (here / ".wfcelery").exists()


def test_the_faults_of_a_flow_that_others_call_are_told_once(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "parent.yaml").write_text("start: a\nsteps: {a: {flow: {name: child}, done: true}}\n")
    (here / "child.yaml").write_text("[]")
    said = call(capsys, "validate", ".")
    assert said.out == (
        "child.yaml:1:1: a flow is a map; this is a list [bad-type] "
        "(write a map with `start` and its steps)\n"
    )


def test_your_own_tools_are_known(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "shop_tools.py").write_text(
        "from wfcelery.tools import tool\n\n@tool\ndef ecko() -> int:\n    return 1\n"
    )
    (here / "f.yaml").write_text("start: a\nsteps: {a: {tool: ecko, done: true}}\n")
    assert call(capsys, "validate", "f.yaml", "--tools", "shop_tools").code == 0


def test_sub_flows_are_found_beside_the_file_or_in_the_database(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "parent.yaml").write_text("start: a\nsteps: {a: {flow: {name: child}, done: true}}\n")
    missing = call(capsys, "validate", "sub")
    assert (missing.code, missing.out) == (
        2,
        "sub/parent.yaml:2:20: there is no flow `child` [unknown-flow] (define it first)\n",
    )
    (here / "child.yaml").write_text(GOOD)
    call(capsys, "define", "child.yaml")
    assert call(capsys, "validate", "sub").code == 0
    (here / "sub" / "child.yaml").write_text(GOOD)
    assert call(capsys, "validate", "sub", "--database", "elsewhere.db").code == 0


@pytest.mark.parametrize("levels", [11, 12])
def test_ten_levels_of_sub_flows_below_a_flow_are_the_most(
    here: Path, capsys: pytest.CaptureFixture[str], levels: int
) -> None:
    for level in range(1, levels):
        text = f"start: a\nsteps: {{a: {{flow: {{name: f{level + 1}}}, done: true}}}}\n"
        (here / f"f{level}.yaml").write_text(text)
    (here / f"f{levels}.yaml").write_text(GOOD)
    said = call(capsys, "validate", "f1.yaml")
    assert (said.code, "subflow-too-deep" in said.out) == ((0, False) if levels == 11 else (2, True))
