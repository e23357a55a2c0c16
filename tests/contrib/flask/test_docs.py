"""What docs/flask.md and the README of the example say is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flask import Flask

from tests.system.system import ROOT
from wfcelery.contrib.flask import WfceleryFlask

PAGE = (ROOT / "docs" / "flask.md").read_text()
EXAMPLE = ROOT / "examples" / "flask_signup"


def test_the_application_of_the_page_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "shop"}
    block = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    exec(compile(block, "docs/flask.md", "exec"), names)  # noqa: S102
    app, flows = names["app"], names["flows"]
    assert isinstance(app, Flask)
    assert isinstance(flows, WfceleryFlask)
    assert "/flows/" in [rule.rule for rule in app.url_map.iter_rules()]
    assert flows.workflows.links.place.broker_url == "redis://localhost:6379/0"


def test_the_readme_of_the_example_has_the_commands_that_its_tests_run() -> None:
    text = (EXAMPLE / "README.md").read_text()
    commands = re.findall(r"^\$ flask --app signup (\S+)(?: (\S+))?", text, re.MULTILINE)
    run = (ROOT / "tests" / "contrib" / "flask" / "signup_place.py").read_text()
    assert {first for first, _ in commands} == {"init", "add-staff", "run", "wfcelery"}
    assert [first for first, _ in commands if f'"{first}"' not in run] == []
    assert [link for link in re.findall(r"\]\(([^):]+)\)", text) if not (EXAMPLE / link).exists()] == []
