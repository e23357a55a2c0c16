"""The JSON Schema of a flow document, for editors: made from the same specs that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic.json_schema import models_json_schema

from wfcelery.core.document.spec import HeaderSpec, StepSpec

if TYPE_CHECKING:
    from wfcelery.core.values import Json


def flow_schema() -> dict[str, Json]:
    """Describe both spellings. What only the whole graph shows (cycles, names) is left to `validate`."""
    _, made = models_json_schema(
        [(HeaderSpec, "validation"), (StepSpec, "validation")],
        by_alias=True,
        ref_template="#/$defs/{model}",
    )
    definitions = cast("dict[str, dict[str, Json]]", _without_null(made["$defs"]))
    step = definitions["StepSpec"]
    properties = cast("dict[str, Json]", step["properties"])
    properties["tool"] = {
        "anyOf": [properties["tool"], {"type": "null"}],
        "description": "null: an approval gate",
    }
    one_step: Json = {"$ref": "#/$defs/StepSpec"}
    header = definitions.pop("HeaderSpec")
    fields = cast("dict[str, Json]", header["properties"])
    full: dict[str, Json] = {
        "type": "object",
        "title": "Full form",
        "properties": {**fields, "steps": {"type": "object", "additionalProperties": one_step}},
        "required": ["start", "steps"],
        "additionalProperties": False,
    }
    flat: dict[str, Json] = {
        "type": "object",
        "title": "Flat form",
        "properties": {"start": {"anyOf": [{"type": "string"}, one_step]}},
        "required": ["start"],
        "additionalProperties": one_step,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "wfcelery flow",
        "if": {"type": "object", "required": ["steps"]},
        "then": full,
        "else": flat,
        "$defs": cast("Json", definitions),
    }


def _without_null(schema: object) -> object:
    """Take back what the specs say only to Python: a field may be left out, it may not be null."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: _without_null(value) for key, value in schema.items() if not (key == "default" and value is None)
    }
    choices = plain.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        del plain["anyOf"]
        plain |= rest[0] if len(rest) == 1 and isinstance(rest[0], dict) else {"anyOf": rest}
    return plain
