"""JSON Schema for inputs and forms: checked when a flow is defined, applied when a value comes in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from wfcelery.core.values import Json

if TYPE_CHECKING:
    from jsonschema import ValidationError


def problems(schema: Mapping[str, Json], value: Json) -> list[str]:
    """List what is wrong with `value`, each with its place; empty if nothing is."""
    return [
        f"{error.json_path.removeprefix('$').lstrip('.') or 'input'}: {error.message}"
        for error in _errors(schema, value)
    ]


def complaints(schema: Mapping[str, Json], value: Json) -> list[tuple[tuple[str | int, ...], str]]:
    """List what is wrong with `value` as (path inside of it, what is wrong)."""
    return [(tuple(error.absolute_path), error.message) for error in _errors(schema, value)]


def _errors(schema: Mapping[str, Json], value: Json) -> Iterable[ValidationError]:
    # jsonschema takes a fifth of a second to import, and most flows have no schema.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    return Draft202012Validator(schema).iter_errors(value)
