"""JSON Schema for inputs and forms: checked when a flow is defined, applied when a value comes in."""

from __future__ import annotations

from collections.abc import Mapping

from wfcelery.core.values import Json


def problems(schema: Mapping[str, Json], value: Json) -> list[str]:
    """List what is wrong with `value`, each with its place; empty if nothing is."""
    # jsonschema takes a fifth of a second to import, and most flows have no schema.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    found = Draft202012Validator(schema).iter_errors(value)
    return [f"{error.json_path.removeprefix('$').lstrip('.') or 'input'}: {error.message}" for error in found]
