"""Every sample flow, run by the command that it documents, gives what it promises."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.calling import ROOT, process

FLOWS = sorted(path for path in (ROOT / "flows").iterdir() if path.suffix in {".yaml", ".json"})
EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": 1, "paused": 6}
EXPECTED = {
    *(
        "approval",
        "branch",
        "first_wins",
        "foreach",
        "hello",
        "parallel_join",
        "research",
        "retry",
        "subflow",
    ),
    "subflow_child",
}


def documented(flow: Path) -> dict[str, str]:
    """Read `# word: text` from the top of a flow; JSON has no comments, its lines are in the README."""
    text = flow.read_text()
    if flow.suffix == ".json":
        readme = (flow.parent / "README.md").read_text()
        text = readme[readme.index(f"# flow: {flow.name}") :]
    return dict(re.findall(r"^# (run|status|output): (.+)$", text, flags=re.MULTILINE))


def test_there_is_a_flow_for_each_thing_to_teach() -> None:
    assert {flow.stem for flow in FLOWS} == EXPECTED


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_a_sample_flow_gives_what_it_documents(flow: Path, tmp_path: Path) -> None:
    promised = documented(flow)
    program, *args = shlex.split(promised["run"])
    assert [program, *args[:2]] == ["wfcelery", "run", f"flows/{flow.name}"]
    database = str(tmp_path / "flows.db")
    said = process(*args, "--database", database, cwd=ROOT)
    assert said.code == EXIT_CODES[promised["status"]], said.err
    assert json.loads(said.out) == json.loads(promised["output"])
    assert process("check", "--database", database, cwd=ROOT).code == 0
