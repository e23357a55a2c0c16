"""Every example of docs/expressions.md is run."""

import json
import re
from pathlib import Path

import pytest

from wfcelery.core.expressions import parse, parse_condition, parse_template
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError

PAGE = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SCOPE = json.loads(next(text for kind, text in BLOCKS if kind == "json"))
EXAMPLES = [
    (kind, *map(str.strip, line.split("→", 1)))
    for kind, text in BLOCKS
    if kind != "json"
    for line in text.splitlines()
]


def test_the_page_has_examples_of_each_kind() -> None:
    assert {kind for kind, *_ in EXAMPLES} == {"expressions", "conditions", "templates"}


@pytest.mark.parametrize(("kind", "source", "expected"), EXAMPLES)
def test_an_example_gives_what_the_page_says(kind: str, source: str, expected: str) -> None:
    if expected.startswith("error: "):
        with pytest.raises(ExpressionError) as caught:
            run(kind, source)
        assert f"error: {caught.value.reason}" == expected
    else:
        value = run(kind, source)
        assert (type(value), value) == (type(json.loads(expected)), json.loads(expected))


def run(kind: str, source: str) -> Json:
    if kind == "expressions":
        return parse(source).evaluate(SCOPE)
    if kind == "conditions":
        return parse_condition(source).holds(SCOPE)
    return parse_template(json.loads(source)).render(SCOPE).value
