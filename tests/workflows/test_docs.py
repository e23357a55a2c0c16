"""docs/python.md: what it shows works, and it names every method."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.system import eventually
from wfcelery.workflows import Run, Workflows

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ORDER = """
name: order
start: fork
steps:
  fork: {parallel: [review, paid, cool-down, ship]}
  review: {approval: {approvers: [bob]}, next: all}
  paid: {wait: {signal: paid}, next: all}
  cool-down: {delay: 3600, next: all}
  ship: {tool: later, next: all}
  all: {done: true}
"""


def public(cls: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(cls, callable) if not name.startswith("_")}


def test_every_method_and_argument_is_documented() -> None:
    assert {name for name in public(Workflows) - {"tools"} if f"{name}(" not in PAGE} == set()
    assert {name for name in public(Run) if f"{name}()" not in PAGE} == set()
    parameters = {*inspect.signature(Workflows).parameters, *inspect.signature(Workflows.start).parameters}
    assert {name for name in parameters - {"self", "flow", "input"} if name not in PAGE} == set()


def test_the_examples_of_starting_and_reading_work(
    workflows: Workflows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = tmp_path / "flows" / "order.yaml"
    flow.parent.mkdir()
    flow.write_text("start:\n  tool: echo\n  args: {value: 7}\n  done: true\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"workflows": workflows}
    for number in (2, 1, 3, 4):
        exec(compile(BLOCKS[number], "docs/python.md", "exec"), names)  # noqa: S102
    assert capsys.readouterr().out.splitlines()[-1] == "7"


def test_the_examples_of_telling_work(workflows: Workflows) -> None:
    run = workflows.start(ORDER, key="A7", by="ann")

    def postponed() -> bool:
        steps: Any = run.get()["steps"]
        return any((step["name"], step["status"]) == ("ship", "pending") for step in steps)

    eventually(postponed)
    names = {"workflows": workflows, "run": run}
    said = {line.partition("(")[0]: line for line in BLOCKS[5].splitlines()}
    for word in ("pause", "resume", "decide", "signal", "broadcast", "step_ready", "step_done"):
        exec(said[f"workflows.{word}"], names)  # noqa: S102
    assert run.wait(30)["status"] == "completed"
