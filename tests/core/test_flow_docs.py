"""docs/flows.md names every field, its examples are valid; docs/errors.md lists every code and no other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from wfcelery.core.document import spec
from wfcelery.core.reading import read
from wfcelery.core.schema import flow_schema
from wfcelery.core.validate import check_flow

ROOT = Path(__file__).parents[2]
FLOWS = (ROOT / "docs" / "flows.md").read_text(encoding="utf-8")
ERRORS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml( steps)?\n(.*?)^```$", FLOWS, re.MULTILINE | re.DOTALL)
SCHEMA = Draft202012Validator(flow_schema())
SPECS: list[type[BaseModel]] = [
    spec.HeaderSpec,
    spec.StepSpec,
    spec.ApprovalSpec,
    spec.WaitSpec,
    spec.ForeachSpec,
    spec.FlowSpec,
    spec.BranchSpec,
    spec.RetrySpec,
    spec.BackoffSpec,
]


class Tools:
    names = ("echo", "judge")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def events(self, name: str, /) -> tuple[str, ...]:
        return ("good", "bad") if name == "judge" else ()

    def requires_approval(self, _name: str, /) -> bool:
        return False

    def permission(self, _name: str, /) -> str | None:
        return None

    def check_arguments(
        self, _name: str, _args: Mapping[str, object], _is_constant: Callable[[object], bool], /
    ) -> list[tuple[str, str]]:
        return []


def whole(text: str, *, is_part: bool) -> object:
    data = read(text).data
    assert isinstance(data, dict)
    return {"start": next(iter(data)), "steps": data} if is_part else data


@pytest.mark.parametrize(("part", "text"), EXAMPLES)
def test_an_example_is_a_valid_flow_for_us_and_for_editors(part: str, text: str) -> None:
    data = whole(text, is_part=bool(part))
    assert check_flow(data, tools=Tools()).steps
    assert [error.message for error in SCHEMA.iter_errors(data)] == []


@pytest.mark.parametrize("model", SPECS, ids=lambda model: model.__name__)
def test_every_field_is_described_and_shown(model: type[BaseModel]) -> None:
    fields = {field.alias or name for name, field in model.model_fields.items()}
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", FLOWS))))
    shown = set(re.findall(r"(\w+):", " ".join(text for _, text in EXAMPLES)))
    assert fields - words == set()
    assert fields - shown == set()


def test_the_schema_refuses_what_we_refuse() -> None:
    step = {"start": "a", "steps": {"a": {"aproval": {}, "retry": None, "timeout_s": 0, "done": 1}}}
    assert len(list(SCHEMA.iter_errors(step))) == 4
    assert len(list(SCHEMA.iter_errors({"a": {}}))) == 1


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    table = re.findall(
        r"^\| `([a-z-]+)` \|", ERRORS.partition("## Validation faults")[2].partition("\n## ")[0], re.MULTILINE
    )
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("reading", "document", "validate")
        for path in (ROOT / "wfcelery" / "core" / folder).glob("*.py")
    ]
    quoted = {word for text in sources for word in re.findall(r'"([a-z]+(?:-[a-z]+)*)"', text)}
    found_in_files = {
        code
        for path in (ROOT / "wfcelery" / "cli").glob("*.py")
        for code in re.findall(r'\bFault\("([a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    said = {word for word in quoted if "-" in word} | {"cycle", "empty"} | found_in_files
    assert table == sorted(table)
    assert set(table) == said


def test_the_published_schema_is_the_one_of_the_code() -> None:
    published = Path(__file__).parent.parent.parent / "docs" / "flow.schema.json"
    assert json.loads(published.read_text()) == flow_schema()
