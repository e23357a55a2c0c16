"""Forms from JSON Schema: which fields, and which value comes back."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import ImmutableMultiDict

from wfcelery.web.forms import WHOLE, FieldKind, fields_of, value_from

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "title": "Amount", "description": "In euros", "minimum": 1},
        "count": {"type": "integer"},
        "urgent": {"type": "boolean"},
        "size": {"enum": ["small", "large"]},
        "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
        "day": {"type": "string", "format": "date"},
        "why": {"type": "string", "maxLength": 2_000},
        "who": {"type": "string", "default": "ann"},
        "more": {"type": "object"},
    },
    "required": ["amount", "size"],
}


def typed(*pairs: tuple[str, str]) -> ImmutableMultiDict[str, str]:
    return ImmutableMultiDict([(f"f.{name}", text) for name, text in pairs])


def test_each_property_becomes_a_field_of_its_kind() -> None:
    fields = fields_of(SCHEMA)
    assert [(field.name, field.kind) for field in fields] == [
        ("amount", FieldKind.NUMBER),
        ("size", FieldKind.CHOICE),
        ("count", FieldKind.INTEGER),
        ("urgent", FieldKind.CHECK),
        ("colours", FieldKind.CHOICES),
        ("day", FieldKind.DATE),
        ("why", FieldKind.LONG),
        ("who", FieldKind.TEXT),
        ("more", FieldKind.JSON),
    ]
    amount = fields[0]
    assert (amount.label, amount.help, amount.required, amount.least) == ("Amount", "In euros", True, "1")
    assert fields[7].text == "ann"
    assert len({field.id for field in fields}) == len(fields)


def test_typed_texts_become_typed_values() -> None:
    form = typed(
        ("amount", "12.5"),
        ("count", "3"),
        ("urgent", "true"),
        ("size", "large"),
        ("colours", "red"),
        ("colours", "blue"),
        ("day", "2030-01-31"),
        ("why", "one\r\ntwo"),
        ("who", "bob"),
        ("more", '{"a": [1]}'),
    )
    assert value_from(SCHEMA, form) == (
        {
            "amount": 12.5,
            "count": 3,
            "urgent": True,
            "size": "large",
            "colours": ["red", "blue"],
            "day": "2030-01-31",
            "why": "one\ntwo",
            "who": "bob",
            "more": {"a": [1]},
        },
        {},
    )


def test_what_is_left_empty_is_absent() -> None:
    value, errors = value_from(SCHEMA, typed(("amount", "2"), ("size", "small"), ("who", ""), ("why", "  ")))
    assert (value, errors) == ({"amount": 2, "size": "small", "urgent": False}, {})


def test_every_fault_is_told_beside_its_field_and_what_was_typed_is_kept() -> None:
    form = typed(("amount", "a lot"), ("count", "1.5"), ("size", "huge"), ("day", "tomorrow"), ("more", "{"))
    _, errors = value_from(SCHEMA, form)
    assert errors == {
        "amount": "must be a number, like 12 or 3.5",
        "count": "must be a whole number, like 12",
        "size": "is none of those that may be chosen",
        "day": "must be a date, like 2030-01-31",
        "more": errors["more"],
    }
    assert errors["more"].startswith("is not JSON: ")
    shown = {field.name: (field.text, field.error) for field in fields_of(SCHEMA, form, errors)}
    assert shown["amount"] == ("a lot", "must be a number, like 12 or 3.5")
    assert shown["who"] == ("", "")


def test_what_is_required_must_be_there() -> None:
    assert value_from(SCHEMA, typed())[1] == {"amount": "is missing", "size": "is missing"}


def test_the_schema_has_the_last_word() -> None:
    _, errors = value_from(SCHEMA, typed(("amount", "0.5"), ("size", "small")))
    assert errors == {"amount": "0.5 is less than the minimum of 1"}


def test_a_property_may_be_null_where_it_must_be_there() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"note": {"type": ["string", "null"]}},
        "required": ["note"],
    }
    assert value_from(schema, typed(("note", ""))) == ({"note": None}, {})
    assert value_from(schema, typed(("note", "x"))) == ({"note": "x"}, {})


def test_choices_that_look_alike_are_told_apart_by_their_spelling() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"enum": [1, "1", None]}}}
    [field] = fields_of(schema)
    assert [choice.text for choice in field.choices] == ["1", '"1"', "null"]
    assert value_from(schema, typed(("n", '"1"'))) == ({"n": "1"}, {})
    assert value_from(schema, typed(("n", "null"))) == ({"n": None}, {})


def test_constants_with_titles_are_choices() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"oneOf": [{"const": 1, "title": "One"}, {"const": 2}]}},
    }
    [field] = fields_of(schema)
    assert [(choice.text, choice.label) for choice in field.choices] == [("1", "One"), ("2", "2")]
    assert value_from(schema, typed(("n", "2"))) == ({"n": 2}, {})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array"},
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]},
    ],
)
def test_what_is_no_flat_object_is_one_field_for_json(schema: dict[str, Any]) -> None:
    [field] = fields_of(schema)
    assert (field.name, field.kind) == (WHOLE, FieldKind.JSON)


def test_json_as_a_whole_is_read_and_checked() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    assert value_from(schema, typed(("", "[1, 2]"))) == ([1, 2], {})
    assert value_from(schema, typed(("", '["a"]')))[1] == {WHOLE: "'a' is not of type 'integer'"}
    assert value_from(schema, typed(("", "")))[1] == {WHOLE: "is missing"}
    assert value_from({}, typed(("", ""))) == (None, {})


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "[" * 100_000, "1" * 5_000, '"\\ud800"', '"\\u0000"', ""]
)
def test_no_text_gives_what_is_not_json(text: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
    assert set(value_from(schema, typed(("x", text)))[1]) == {"x"}


@pytest.mark.parametrize("text", ["1e999", "nan", "inf", "0x10", "1_000", "1,5", "٣", "9" * 400])
def test_no_text_gives_what_is_not_a_number(text: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "number"}}}
    assert set(value_from(schema, typed(("x", text)))[1]) == {"x"}
