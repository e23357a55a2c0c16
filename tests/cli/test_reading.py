"""`ps`, `show`, `events`, `definitions`, `define`, `check`: tables for people, JSON and ids for programs."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.cli.calling import ROOT, call

FLOWS = ROOT / "flows"
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?")


@pytest.fixture
def runs(here: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The ids of two runs: `retry` by ann, then `foreach` by bo with 30 items, a key and a tag."""
    items = json.dumps([f"n{n}" for n in range(30)])
    call(capsys, "run", str(FLOWS / "retry.yaml"))
    more = ["-i", f"names:={items}", "--user", "bo", "--key", "k", "--tag", "t"]
    call(capsys, "run", str(FLOWS / "foreach.yaml"), *more)
    return call(capsys, "ps", "-o", "ids").out.split()[::-1]


def test_runs_are_listed_newest_first(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    first, second = runs
    lines = [MOMENT.sub("TIME", line) for line in call(capsys, "ps").out.splitlines()]
    assert [line.split() for line in lines] == [
        ["RUN", "FLOW", "STATUS", "BY", "STARTED", "KEY", "ERROR"],
        [second, "foreach@1", "✓", "completed", "bo", "TIME", "k"],
        [first, "retry@1", "✓", "completed", "ann", "TIME"],
    ]


@pytest.mark.parametrize(
    ("filters", "which"),
    [
        (["--flow", "retry"], [0]),
        (["--user", "bo"], [1]),
        (["--key", "k"], [1]),
        (["--tag", "t"], [1]),
        (["--status", "failed"], []),
        (["--status", "completed"], [1, 0]),
        (["--limit", "1"], [1]),
    ],
)
def test_runs_are_filtered(
    runs: list[str], capsys: pytest.CaptureFixture[str], filters: list[str], which: list[int]
) -> None:
    wanted = [runs[index] for index in which]
    assert call(capsys, "ps", *filters, "-o", "ids").out.split() == wanted
    assert [run["id"] for run in json.loads(call(capsys, "ps", *filters, "-o", "json").out)] == wanted


def test_a_run_is_shown_with_its_steps(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    said = MOMENT.sub("TIME", call(capsys, "show", runs[0]).out)
    assert re.sub(r"\d\.\d\d s", "TOOK", said) == (
        f"retry@1  {runs[0]}\n"
        "  status        ✓ completed\n"
        "  created by    ann\n"
        "  created at    TIME UTC\n"
        "  completed at  TIME UTC\n"
        "  input         {}\n"
        "\n"
        "  STEP     ATTEMPT  STATUS   TOOK    RESULT\n"
        "✗ call     1        failed   TOOK  ToolError: the service is busy\n"
        "✗ call     2        failed   TOOK  ToolError: the service is busy\n"
        '✓ call     3        done     TOOK  {"attempts": 3}\n'
        "↷ give_up  1        skipped\n"
        "\n"
        'output: {\n  "attempts": 3\n}\n'
    )


def test_a_large_foreach_is_counted_unless_everything_is_wanted(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    counted = call(capsys, "show", runs[1]).out.splitlines()
    assert [line.split() for line in counted if "[…]" in line] == [
        ["greet[…]", "30", "done", "`--all`", "lists", "them"]
    ]
    everything = call(capsys, "show", runs[1], "--all").out
    assert len(re.findall(r"greet\[\d+\]", everything)) == 30
    assert len(call(capsys, "show", runs[1], "-o", "ids").out.split()) == 31


def test_events_are_listed_and_cut(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    events = json.loads(call(capsys, "events", runs[0], "-o", "json").out)
    assert list(events[0]) == ["seq", "at", "type", "step", "item", "attempt", "actor", "data"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("run_started", "run_completed")
    some = json.loads(call(capsys, "events", runs[0], "--after", "2", "--limit", "3", "-o", "json").out)
    assert some == events[2:5]
    table = call(capsys, "events", runs[0]).out.splitlines()
    assert (len(table), table[0].split()) == (len(events) + 1, ["SEQ", "AT", "EVENT", "STEP", "BY", "DATA"])


@pytest.mark.parametrize("command", ["show", "events"])
def test_a_run_that_is_not_there_exits_3(
    runs: list[str], capsys: pytest.CaptureFixture[str], command: str
) -> None:
    said = call(capsys, command, "nope")
    assert (said.code, said.out, said.err) == (3, "", "wfcelery: no run nope; `wfcelery ps` lists the runs\n")


def test_flows_are_kept_once_and_a_changed_one_is_the_next_version(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = here / "f.yaml"
    for value, version in ((1, 1), (1, 1), (2, 2), (1, 1)):
        flow.write_text(f"start: a\nsteps: {{a: {{tool: echo, args: {{value: {value}}}, done: true}}}}\n")
        assert call(capsys, "define", "f.yaml", "-o", "ids").out == f"f@{version}\n"
    assert call(capsys, "definitions", "f", "-o", "ids").out == "f@2\nf@1\n"
    assert call(capsys, "definitions", "-o", "ids").out == "f@2\n"
    newest = json.loads(call(capsys, "definitions", "-o", "json").out)[0]
    assert list(newest) == ["id", "name", "version", "created_by", "created_at"]
    assert call(capsys, "definitions").out.split()[:8] == [
        "NAME",
        "VERSION",
        "BY",
        "AT",
        "ID",
        "f",
        "2",
        "ann",
    ]
    unknown = call(capsys, "definitions", "g")
    assert (unknown.code, unknown.err) == (
        3,
        "wfcelery: no definition g; `wfcelery definitions` lists what there is\n",
    )


def test_a_folder_is_kept_with_what_it_calls_and_nothing_if_one_is_faulty(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "p.yaml").write_text("start: a\nsteps: {a: {flow: {name: c}, done: true}}\n")
    (here / "c.yaml").write_text("start: a\nsteps: {a: {tool: echo, done: true}}\n")
    (here / "x.yaml").write_text("start: nope\nsteps: {a: {done: true}}\n")
    assert call(capsys, "define", ".").code == 2
    assert not (here / ".wfcelery").exists()
    assert call(capsys, "define", "p.yaml", "-o", "ids").out == "c@1\np@1\n"


@pytest.mark.corrupts
def test_a_sound_database_agrees_and_a_changed_one_does_not(
    runs: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "check")
    assert (said.code, said.out, said.err) == (0, "", "everything agrees\n")
    assert call(capsys, "check", "-o", "json").out == "[]\n"
    connection = sqlite3.connect(here / ".wfcelery" / "wfcelery.db")
    with connection:
        # The tables defend themselves: a corruption has to disarm them first.
        for (trigger,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')
        changed = "UPDATE workflow_steps SET result = '7' WHERE workflow_id = ? AND status = 'done'"
        connection.execute(changed, [runs[0]])
    connection.close()
    wrong = call(capsys, "check", "-o", "json")
    assert wrong.code == 1
    assert {problem["run_id"] for problem in json.loads(wrong.out)} == {runs[0]}
    assert list(json.loads(wrong.out)[0]) == ["run_id", "code", "message"]
    assert call(capsys, "check").out.startswith(f"{runs[0]}: ")
