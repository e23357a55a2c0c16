"""What the documentation says is so: its flow runs, and nothing that people meet is left out."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import wfcelery
from wfcelery.core.document import compile_flow
from wfcelery.core.flow import Gate
from wfcelery.core.reading import read
from wfcelery.errors import WfceleryError

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ERRORS = (ROOT / "docs" / "errors.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def every_error() -> Iterator[type[WfceleryError]]:
    for module in pkgutil.walk_packages(wfcelery.__path__, "wfcelery."):
        # Models of Django can be imported only where a project is set up; there are no errors among them.
        if not any(each in module.name for each in ("migrations", "__main__", "contrib.django.")):
            importlib.import_module(module.name)
    waiting = [WfceleryError]
    while waiting:
        found = waiting.pop().__subclasses__()
        waiting += found
        yield from found


def test_the_flow_of_the_readme_gives_the_output_of_the_readme(tmp_path: Path) -> None:
    (tmp_path / "greet.yaml").write_text(blocks(README, "yaml")[0])
    command, expected = blocks(README, "console")[0].removeprefix("$ ").split("\n", 1)
    program = Path(sys.executable).with_name("wfcelery")
    done = subprocess.run(
        [program, *command.split()[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_the_tool_of_the_readme_can_be_called() -> None:
    names: dict[str, object] = {}
    exec(compile(blocks(README, "python")[0], "README.md", "exec"), names)  # noqa: S102
    charge = names["charge"]
    assert isinstance(charge, wfcelery.Tool)
    assert charge(wfcelery.Context(), "A7", 1200)["order"] == "A7"


def test_the_flow_of_the_readme_that_calls_the_tool_runs(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(blocks(README, "python")[0])
    (tmp_path / "pay.yaml").write_text(next(each for each in blocks(README, "yaml") if "name: pay" in each))
    command = next(each for each in blocks(README, "console") if "pay.yaml" in each)
    program = Path(sys.executable).with_name("wfcelery")
    done = subprocess.run(
        [program, *command.split()[2:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["order"]) == (0, "A7"), done.stderr


def test_the_gate_of_the_readme_is_one() -> None:
    gate = next(each for each in blocks(README, "yaml") if each.startswith("review:"))
    steps = "".join(f"  {line}\n" for line in gate.splitlines())
    after = "".join(f"  {name}: {{tool: echo, done: true}}\n" for name in ("pay", "explain"))
    flow = compile_flow(read(f"name: refund\nstart: review\nsteps:\n{steps}{after}").data)
    assert isinstance(flow.steps["review"].action, Gate)


def test_the_test_of_the_readme_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(blocks(README, "python")[1], "README.md", "exec"), {})  # noqa: S102


def test_every_error_code_is_documented() -> None:
    missing = {error.code for error in every_error() if f"| `{error.code}` |" not in ERRORS}
    assert missing == set()


def test_every_type_of_error_that_the_engine_gives_a_step_or_run_is_documented() -> None:
    source = "".join(path.read_text() for path in (ROOT / "wfcelery").rglob("*.py"))
    types = set(re.findall(r'\bError\(\s*"([a-z-]+)"', source))
    assert {"stuck", "lost", "denied", "timeout"} <= types
    assert {each for each in types if f"| `{each}` |" not in ERRORS} == set()


def test_every_link_between_the_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "bench").glob("*.md")]
    link = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
    links = [(page, target) for page in pages for target in link.findall(page.read_text())]
    assert [target for page, target in links if not (page.parent / target).exists()] == []


def test_every_document_is_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\(docs/([a-z_-]+\.md)", README))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - linked == set()


def test_json_of_the_documentation_is_json() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for block in blocks(page.read_text(), "json"):
            json.loads(block)
