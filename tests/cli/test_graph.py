"""`wfcelery graph`: a tree for the terminal, an SVG image, a chart for Mermaid, signs for a run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.calling import ROOT, call
from wfcelery.cli.graph_tree import tree
from wfcelery.cli.symbols import UNICODE
from wfcelery.core.document import compile_flow
from wfcelery.core.reading import read

ORDER = """
name: order
start: check
steps:
  check:
    tool: echo
    branch: [{if: "result > 100", then: review}, {else: split}]
    on_error: sorry
  review: {approval: {approvers: [ann, "group:boss"], on_deny: refuse}, next: split}
  refuse: {tool: echo, done: true}
  sorry: {tool: echo, next: wait}
  split: {parallel: [pack, bill], join: ship}
  pack: {foreach: {items: [1], tool: echo}, next: label}
  label: {tool: echo, optional: true, join: ship}
  bill: {delay: 5}
  ship: {join_mode: any, flow: {name: shipping, version: 2}, next: wait}
  wait: {wait: {signal: arrived}, done: true}
"""


def drawn(text: str) -> str:
    return "\n".join(tree(compile_flow(read(text).data, name="f"), UNICODE))


def test_ways_apart_are_indented_and_what_follows_stands_below() -> None:
    assert drawn(ORDER) == (
        "○ check  echo\n"
        "├─ if result > 100 → ○ review  approval by ann, group:boss\n"
        "│  └─ on deny → ○ refuse  echo  (done)\n"
        "├─ else → split\n"
        "└─ on error → ○ sorry  echo\n"
        "   ○ wait  waits for signal arrived  (done)\n"
        "○ split\n"
        "├─ parallel → ○ pack  echo, each of 1\n"
        "│  ○ label  echo  (optional)\n"
        "└─ parallel → ○ bill  waits 5 s\n"
        "○ ship  flow shipping@2  (joins any of 2)\n"
        "→ wait (above)"
    )


def test_a_chain_of_a_thousand_steps_is_a_thousand_lines() -> None:
    steps = "".join(f"  s{n}: {{tool: echo, next: s{n + 1}}}\n" for n in range(999))
    lines = drawn(f"start: s0\nsteps:\n{steps}  s999: {{done: true}}\n").splitlines()
    assert (len(lines), lines[-1]) == (1000, "○ s999  (done)")


def test_branches_nested_hundreds_deep_are_drawn() -> None:
    steps = "".join(
        f"  s{n}: {{tool: echo, branch: [{{if: 'result == true', then: s{n + 1}}}, {{else: e{n}}}]}}\n"
        f"  e{n}: {{done: true}}\n"
        for n in range(450)
    )
    assert len(drawn(f"start: s0\nsteps:\n{steps}  s450: {{done: true}}\n").splitlines()) == 901


def test_a_file_is_drawn_with_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "graph", str(ROOT / "flows" / "first_wins.yaml"))
    assert (said.code, said.out) == (
        0,
        (
            "first_wins\n"
            "○ race\n"
            "├─ parallel → ○ quick  echo\n"
            "├─ parallel → ○ slow  sleep\n"
            "└─ parallel → ○ broken  fail  (optional)\n"
            "○ finish  echo  (joins any of 3, done)\n"
        ),
    )


def test_a_run_carries_the_signs_of_its_steps(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "run", str(ROOT / "flows" / "approval.yaml"), "-i", "amount:=1")
    run_id = call(capsys, "ps", "-o", "ids").out.strip()
    head = "approval\n✓ prepare  echo\n"
    waiting = "⏸ review  approval\n└─ on deny → · refuse  echo  (done)\n· pay  echo  (done)\n"
    assert call(capsys, "graph", run_id).out == head + waiting
    call(capsys, "run", "--resume", run_id, "--deny", "review")
    ended = "✓ review  approval\n└─ on deny → ✓ refuse  echo  (done)\n↷ pay  echo  (done)\n"
    assert call(capsys, "graph", run_id).out == head + ended


def test_a_foreach_of_a_run_tells_how_many_items_are_done(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "run", str(ROOT / "flows" / "foreach.yaml"), "-i", 'names:=["a", "b"]')
    run_id = call(capsys, "ps", "-o", "ids").out.strip()
    assert call(capsys, "graph", run_id).out == "foreach\n✓ 2/2 greet  echo, each of input.names  (done)\n"


def test_mermaid_gets_shapes_labels_and_statuses(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "run", str(ROOT / "flows" / "approval.yaml"), "-i", "amount:=1", "--deny", "review")
    run_id = call(capsys, "ps", "-o", "ids").out.strip()
    assert call(capsys, "graph", run_id, "--mermaid").out == (
        "flowchart TD\n"
        '  s0["✓ prepare<br/>echo"]\n'
        '  s1{{"✓ review<br/>approval"}}\n'
        '  s2["↷ pay<br/>echo<br/>done"]\n'
        '  s3["✓ refuse<br/>echo<br/>done"]\n'
        "  s0 --> s1\n"
        "  s1 --> s2\n"
        '  s1 -.->|"on deny"| s3\n'
        "  classDef done fill:#d7f0dd,stroke:#1e7e34\n"
        "  classDef skipped fill:#eeeeee,stroke:#999999,color:#777777\n"
        "  class s0 done\n"
        "  class s1 done\n"
        "  class s2 skipped\n"
        "  class s3 done\n"
    )


def test_mermaid_reads_no_syntax_from_conditions(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    branch = "[{if: 'result == \"x|y#\"', then: b}, {else: b}]"
    text = f"name: q\nstart: a\nsteps: {{a: {{branch: {branch}}}, b: {{done: true}}}}\n"
    (here / "q.yaml").write_text(text)
    assert (
        '  s0 -->|"if result == #34;x#124;y#35;#34;"| s1'
        in call(capsys, "graph", "q.yaml", "--mermaid").out.splitlines()
    )


def statuses_in(picture: str) -> dict[str, str]:
    """Give the status of each step in an SVG image."""
    root = ET.fromstring(picture)  # noqa: S314 - our own document, and that it parses is the point
    found = {each.get("data-step"): each.get("class", "").split() for each in root.iter()}
    return {name: classes[1] for name, classes in found.items() if name is not None}


def test_an_image_of_a_file_stands_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "graph", str(ROOT / "flows" / "approval.yaml"), "--svg")
    assert (said.code, said.err) == (0, "")
    assert statuses_in(said.out) == dict.fromkeys(["prepare", "review", "pay", "refuse"], "status-none")
    assert "prefers-color-scheme: dark" in said.out


def test_an_image_of_a_run_tells_how_its_steps_stand(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "run", str(ROOT / "flows" / "approval.yaml"), "-i", "amount:=1")
    run_id = call(capsys, "ps", "-o", "ids").out.strip()
    assert statuses_in(call(capsys, "graph", run_id, "--svg").out) == {
        "prepare": "status-done",
        "review": "status-waiting",
        "pay": "status-none",
        "refuse": "status-none",
    }
    call(capsys, "run", "--resume", run_id, "--deny", "review")
    assert statuses_in(call(capsys, "graph", run_id, "--svg").out) == {
        "prepare": "status-done",
        "review": "status-done",
        "pay": "status-skipped",
        "refuse": "status-done",
    }


def test_an_image_of_a_run_counts_the_items_that_are_done(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "run", str(ROOT / "flows" / "foreach.yaml"), "-i", 'names:=["a", "b"]')
    run_id = call(capsys, "ps", "-o", "ids").out.strip()
    assert ">2/2</text>" in call(capsys, "graph", run_id, "--svg").out


def test_an_image_is_no_chart(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "graph", str(ROOT / "flows" / "hello.yaml"), "--svg", "--mermaid")
    assert (said.code, said.out) == (2, "")
    assert "--svg and --mermaid exclude each other; give one of them" in said.err


def test_what_is_not_there_exits_3(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "define", str(ROOT / "flows" / "hello.yaml"))
    unknown = call(capsys, "graph", "nope")
    assert (unknown.code, unknown.err) == (
        3,
        "wfcelery: no definition nope; `wfcelery definitions` lists what there is\n",
    )
    lost = call(capsys, "graph", "0" * 26)
    assert (lost.code, lost.err) == (3, f"wfcelery: no run {'0' * 26}; `wfcelery ps` lists the runs\n")
    assert call(capsys, "graph", "hello@1").out == "hello\n○ greet  echo  (done)\n"
