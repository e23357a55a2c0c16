"""Forms from JSON Schema, and JSON values from what was typed into them. Values only: nothing here sees HTTP.

A flat object becomes one field for each property; a property that no field can hold, and a schema that is
not such an object, becomes one field for JSON. What the schema says is checked in the end by the schema.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from typing import Final, Protocol

from wfcelery.core import schemas, values
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput

PREFIX: Final = "f."
"""Stands before the names of properties, so that none is taken for a field of the page itself."""

WHOLE: Final = ""
"""The name of the one field of a form that is JSON as a whole, and of what is wrong with a whole form."""

LONG_FROM: Final = 200
_LONG_FORMATS: Final = frozenset({"text", "textarea", "multiline", "markdown"})
_TYPED: Final = {"email": "email", "uri": "url"}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")


class Typed(Protocol):
    """What was typed: several values may have one name."""

    def get(self, key: str, /) -> str | None:
        """Give the last value of a name."""

    def getlist(self, key: str, /) -> list[str]:
        """Give every value of a name."""


class FieldKind(StrEnum):
    """How a field looks."""

    TEXT = "text"
    LONG = "long"
    NUMBER = "number"
    INTEGER = "integer"
    DATE = "date"
    CHECK = "check"
    CHOICE = "choice"
    CHOICES = "choices"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several: `text` is posted, `label` is shown, `value` is what it means."""

    text: str
    label: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `name` is the property, `posted` what the field is called in the form, `id` in the page.

    `texts` is what stands in it: of a text its one text, of choices those that are chosen, of a check `true`
    or nothing. `error` says what is wrong with what was typed.
    """

    name: str
    posted: str
    id: str
    kind: FieldKind
    label: str
    help: str = ""
    required: bool = False
    nullable: bool = False
    choices: tuple[Choice, ...] = ()
    texts: tuple[str, ...] = ()
    least: str = ""
    most: str = ""
    longest: int | None = None
    typed: str = "text"
    error: str = ""

    @property
    def text(self) -> str:
        """Give what stands in a field of one text."""
        return self.texts[0] if self.texts else ""


def fields_of(
    schema: Mapping[str, Json], form: Typed | None = None, errors: Mapping[str, str] | None = None
) -> list[Field]:
    """Make the fields of a schema: with its defaults, or with what was typed and what is wrong with it."""
    made = [_field(place, *each) for place, each in enumerate(_properties(schema))]
    if form is not None:
        made = [replace(field, texts=_typed(field, form)) for field in made]
    told = errors or {}
    return [replace(field, error=told.get(field.name, "")) for field in made]


def value_from(schema: Mapping[str, Json], form: Typed) -> tuple[Json, dict[str, str]]:
    """Give the value that a posted form means, and what is wrong with it, by property.

    A field that is left empty is absent, or null where the schema asks for it. What is wrong with the value
    as a whole has the name `WHOLE`.
    """
    fields = fields_of(schema, form)
    errors: dict[str, str] = {}
    found: dict[str, Json] = {}
    for field in fields:
        try:
            if _is_empty(field):
                _leave_out(field, found)
            else:
                found[field.name] = values.check(_read(field), field.label)
        except InvalidInput as error:
            errors[field.name] = error.reason
    value: Json = found
    if [field.name for field in fields] == [WHOLE]:
        value = found.get(WHOLE)
    if not errors:
        named = {field.name for field in fields}
        for path, message in schemas.complaints(schema, value):
            name = str(path[0]) if path and str(path[0]) in named else WHOLE
            errors.setdefault(name, message)
    return value, errors


def _properties(schema: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, Json], bool]]:
    """Give each property with its schema, and whether it is required; or the whole as one."""
    properties, required = schema.get("properties"), schema.get("required", ())
    names = set(required) if isinstance(required, Sequence) and not isinstance(required, str) else set()
    is_flat = (
        schema.get("type", "object") == "object"
        and isinstance(properties, Mapping)
        and names <= set(properties)
        and not any(word in schema for word in ("$ref", "allOf", "anyOf", "oneOf", "if"))
    )
    if not is_flat or not isinstance(properties, Mapping):
        # An empty text is no JSON; where null will do, nothing need be typed.
        yield WHOLE, schema, bool(schemas.complaints(schema, None))
        return
    # A kept document has its keys in the order of the alphabet; this list is as it was written.
    first = [name for name in required if isinstance(name, str)] if isinstance(required, Sequence) else []
    for name in dict.fromkeys((*first, *properties)):
        inner = properties[name]
        yield name, inner if isinstance(inner, Mapping) else {}, name in names


def _field(place: int, name: str, schema: Mapping[str, Json], required: bool) -> Field:  # noqa: FBT001 - one of a row
    kind, nullable = (FieldKind.JSON, False) if name == WHOLE else _kind(schema)
    items = schema.get("items")
    choices = _choices(items if kind is FieldKind.CHOICES and isinstance(items, Mapping) else schema)
    title, text = schema.get("title"), schema.get("description")
    made = Field(
        name=name,
        posted=PREFIX + name,
        id=f"field-{place}",
        kind=kind,
        label=title if isinstance(title, str) and title.strip() else name or "Value (JSON)",
        help=text if isinstance(text, str) else "",
        required=required,
        nullable=nullable,
        choices=choices if kind in (FieldKind.CHOICE, FieldKind.CHOICES) else (),
        least=_bound(schema, "minimum") if kind in (FieldKind.NUMBER, FieldKind.INTEGER) else "",
        most=_bound(schema, "maximum") if kind in (FieldKind.NUMBER, FieldKind.INTEGER) else "",
        longest=_length(schema) if kind in (FieldKind.TEXT, FieldKind.LONG) else None,
        typed=_TYPED.get(str(schema.get("format")), "text"),
    )
    return replace(made, texts=_texts(made, schema["default"])) if "default" in schema else made


def _kind(schema: Mapping[str, Json]) -> tuple[FieldKind, bool]:
    """Say how a property looks, and whether it may be null."""
    kinds = schema.get("type")
    several = list(kinds) if isinstance(kinds, Sequence) and not isinstance(kinds, str) else [kinds]
    nullable = "null" in several
    plain = [each for each in several if each != "null"]
    if _choices(schema):
        return FieldKind.CHOICE, nullable
    if len(plain) != 1 or any(word in schema for word in ("$ref", "allOf", "anyOf", "oneOf", "if")):
        return FieldKind.JSON, False
    match plain[0]:
        case "string":
            return _kind_of_text(schema), nullable
        case "number":
            return FieldKind.NUMBER, nullable
        case "integer":
            return FieldKind.INTEGER, nullable
        case "boolean" if not nullable:
            return FieldKind.CHECK, False
        case "array" if isinstance(items := schema.get("items"), Mapping) and _choices(items):
            return FieldKind.CHOICES, nullable
        case _:
            return FieldKind.JSON, False


def _kind_of_text(schema: Mapping[str, Json]) -> FieldKind:
    if schema.get("format") == "date":
        return FieldKind.DATE
    longest = schema.get("maxLength")
    is_long = isinstance(longest, int) and longest > LONG_FROM
    return FieldKind.LONG if is_long or schema.get("format") in _LONG_FORMATS else FieldKind.TEXT


def _choices(schema: Mapping[str, Json]) -> tuple[Choice, ...]:
    """List what may be chosen; empty if it is not a matter of choosing."""
    listed, titled = schema.get("enum"), schema.get("oneOf")
    pairs: list[tuple[Json, str]] = []
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        pairs = [(value, _said(value)) for value in listed]
    elif isinstance(titled, Sequence) and not isinstance(titled, str):
        if not all(isinstance(each, Mapping) and "const" in each for each in titled):
            return ()
        constants = [each for each in titled if isinstance(each, Mapping)]
        pairs = [(each["const"], str(each.get("title", _said(each["const"])))) for each in constants]
    texts = [_said(value) for value, _ in pairs]
    if len(set(texts)) < len(texts):  # 1 and "1" look alike, and are two.
        texts = [values.canonical(value) for value, _ in pairs]
    return tuple(
        Choice(text, label or "(empty)", value) for text, (value, label) in zip(texts, pairs, strict=True)
    )


def _said(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _bound(schema: Mapping[str, Json], word: str) -> str:
    found = schema.get(word)
    return "" if found is None else json.dumps(found)


def _length(schema: Mapping[str, Json]) -> int | None:
    found = schema.get("maxLength")
    return found if isinstance(found, int) else None


def _texts(field: Field, value: Json) -> tuple[str, ...]:
    """Write a value as it stands in a field."""
    match field.kind:
        case FieldKind.JSON:
            return (json.dumps(value, ensure_ascii=False, indent=2),)
        case FieldKind.CHECK:
            return ("true",) if value is True else ()
        case FieldKind.CHOICES:
            several = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
            return tuple(choice.text for choice in field.choices if choice.value in several)
        case FieldKind.CHOICE:
            wanted = values.canonical(value)
            return tuple(each.text for each in field.choices if values.canonical(each.value) == wanted)[:1]
        case _:
            return () if value is None else (_said(value),)


def _typed(field: Field, form: Typed) -> tuple[str, ...]:
    if field.kind is FieldKind.CHOICES:
        return tuple(form.getlist(field.posted))
    # Browsers end lines as mails do.
    text = (form.get(field.posted) or "").replace("\r\n", "\n")
    return (text,) if text else ()


def _is_empty(field: Field) -> bool:
    if field.kind is FieldKind.CHECK:
        return False
    if field.kind is FieldKind.CHOICES:
        return not field.texts and not field.required
    if field.kind is FieldKind.CHOICE and any(choice.text == "" for choice in field.choices):
        return False
    return not field.text.strip()


def _leave_out(field: Field, found: dict[str, Json]) -> None:
    if field.required and not field.nullable:
        raise InvalidInput(field.label, "is missing")
    if field.required:
        found[field.name] = None


def _read(field: Field) -> Json:
    """Read what was typed. Raises `InvalidInput`."""
    match field.kind:
        case FieldKind.CHECK:
            return bool(field.text)
        case FieldKind.CHOICE:
            return _chosen(field, field.text)
        case FieldKind.CHOICES:
            return [_chosen(field, text) for text in field.texts]
        case FieldKind.NUMBER | FieldKind.INTEGER:
            return _number(field)
        case FieldKind.DATE:
            return _date(field)
        case FieldKind.JSON:
            return _json(field)
        case _:
            return field.text


def _chosen(field: Field, text: str) -> Json:
    for choice in field.choices:
        if choice.text == text:
            return choice.value
    raise InvalidInput(field.label, "is none of those that may be chosen")


def _number(field: Field) -> Json:
    text = field.text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if field.kind is FieldKind.INTEGER:
        raise InvalidInput(field.label, "must be a whole number, like 12")
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise InvalidInput(field.label, "must be a number, like 12 or 3.5")
    return number


def _date(field: Field) -> Json:
    text = field.text.strip()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InvalidInput(field.label, "must be a date, like 2030-01-31") from None


def _json(field: Field) -> Json:
    try:
        read: Json = json.loads(field.text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(field.label, f"is not JSON: {error}") from None
    return read


def _no_constant(name: str) -> Json:
    message = f"{name} is not JSON"
    raise ValueError(message)
