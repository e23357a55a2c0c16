"""Patterns of authors mean what they mean in Python, and take no more time than they may."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcelery.core.patterns import BadPattern, pattern
from wfcelery.core.schemas import problems as found_by
from wfcelery.core.values import Json


def problems(schema: Any, value: Json) -> list[str]:  # noqa: ANN401 - a schema of any shape
    """What is wrong with a value."""
    return found_by(schema, value)


SOURCES = (
    "^[a-z]+(-[a-z]+)*$",
    r"^\d{2,3}$",
    r"a|bc|^$",
    r"(a|ab)(c|bcd)?$",
    r"\bab\b|\Ba",
    r"[^ab\s]+.\Z",
    r"^(a+)+$",
    r"(?:a?){3}b*?-",
    r"\w\W\d\D|\s\S",
    r"(|a)*b{0}",
    r"[\d_-]{2}",
    "",
)


@given(st.sampled_from(SOURCES), st.text("abcd-_ 1\n", max_size=12))
def test_a_pattern_means_what_it_means_in_python(source: str, text: str) -> None:
    assert pattern(source).is_in(text) == (re.search(source, text) is not None)


@pytest.mark.parametrize(
    "source",
    ["(", r"(?=a)b", r"(a)\1", "(?i)a", "(?i:a)", "a++", "(?>a)", "a{3000}", "(((){999}){999}){999}"],
)
def test_what_cannot_be_matched_in_bounded_time_is_refused(source: str) -> None:
    with pytest.raises(BadPattern):
        pattern(source)


@pytest.mark.parametrize("source", ["^(a+)+$", "^(a|aa)+$", "^(a*)*c", "(.*a){20}c"])
def test_a_pattern_that_would_take_python_for_ever_is_answered(source: str) -> None:
    assert problems({"type": "string", "pattern": source}, "a" * 5_000 + "b!") != []
    names = {"type": "object", "patternProperties": {source: False}, "additionalProperties": False}
    assert problems(names, {"a" * 5_000 + "b!": 1}) != []


def test_a_schema_that_doubles_its_work_again_and_again_is_given_up() -> None:
    doubled = {f"d{each}": {"allOf": [{"$ref": f"#/$defs/d{each + 1}"}] * 2} for each in range(40)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**doubled, "d40": {"type": "integer"}}}
    assert problems(schema, 1) == ["input: is too much work to be checked by this schema"]
    assert problems({"anyOf": [{"type": "null"}] * 5_000}, "x" * 500_000) != []


def test_a_schema_that_means_itself_is_given_up() -> None:
    assert problems({"$ref": "#"}, 1) == ["input: is too much work to be checked by this schema"]


def test_items_that_must_differ_are_compared_at_once() -> None:
    many = [{"n": each} for each in range(50_000)]
    assert problems({"uniqueItems": True}, many) == []
    assert problems({"uniqueItems": True}, [*many, {"n": 7.0}]) != []
    assert problems({"uniqueItems": True}, [1, True, [1], [True], {"a": 0}, {"a": False}, "1", None]) == []


def test_names_that_match_a_pattern_are_held_to_it_and_others_to_the_rest() -> None:
    schema = {
        "properties": {"own": {}},
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    }
    assert problems(schema, {"own": [], "x-a": 1, "other": "text"}) == []
    assert problems(schema, {"x-a": "text"}) == ["['x-a']: 'text' is not of type 'integer'"]
    assert problems(schema, {"other": 1}) == ["other: 1 is not of type 'string'"]
    closed = {"patternProperties": {"^x-": {}}, "additionalProperties": False}
    assert "'y' was unexpected" in problems(closed, {"y": 1})[0]
