"""Whether the JSON Schemas inside a flow (its `input`, the `form` of a gate) can be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wfcelery.core.patterns import BadPattern, pattern

if TYPE_CHECKING:
    from wfcelery.core.document.report import Report
    from wfcelery.core.reading.place import Path


def check_schema(schema: Mapping[str, object], path: Path, report: Report) -> None:
    """Note every fault of a schema: not Draft 2020-12, a reference that leaves the flow, a bad pattern."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 (slow to load, and most flows have none)

    dialect = schema.get("$schema", Draft202012Validator.META_SCHEMA["$schema"])
    if dialect != Draft202012Validator.META_SCHEMA["$schema"]:
        hint = "remove `$schema`, or write https://json-schema.org/draft/2020-12/schema"
        report.add("bad-schema", (*path, "$schema"), "only Draft 2020-12 of JSON Schema is known", hint)
        return
    for error in Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema):
        report.add("bad-schema", (*path, *error.absolute_path), f"is not JSON Schema: {error.message[:200]}")
    for code, place, message, hint in _details(schema, path):
        report.add(code, place, message, hint)


def _details(schema: Mapping[str, object], path: Path) -> Iterator[tuple[str, Path, str, str]]:
    todo: list[tuple[object, Path]] = [(schema, path)]
    named = unevaluated = False
    while todo:
        value, place = todo.pop()
        if isinstance(value, Mapping):
            for key in ("$ref", "$dynamicRef"):
                target = value.get(key)
                if isinstance(target, str) and not (target == "#" or _resolves(schema, target)):
                    message = f"`{target[:64]}` is not a place in this schema"
                    yield "bad-schema", (*place, key), message, "use references like #/$defs/name"
            patterns = value.get("patternProperties")
            sources = [value.get("pattern"), *(patterns if isinstance(patterns, Mapping) else ())]
            for source in sources:
                if isinstance(source, str) and (wrong := _fault(source)):
                    yield "bad-schema", place, f"`{source[:64]}` {wrong}", ""
            if place != path and isinstance(value.get("$schema"), str):
                yield "bad-schema", (*place, "$schema"), "stands at the top of a schema only", "remove it"
            if isinstance(patterns, Mapping):
                named = True
            unevaluated = unevaluated or "unevaluatedProperties" in value
            todo.extend((value[key], (*place, key)) for key in reversed(list(value)))
        elif isinstance(value, (list, tuple)):
            todo.extend((value[index], (*place, index)) for index in reversed(range(len(value))))
    if named and unevaluated:
        hint = "use `additionalProperties`"
        yield "bad-schema", path, "`unevaluatedProperties` is not known beside `patternProperties`", hint


def _resolves(schema: object, pointer: str) -> bool:
    if not pointer.startswith("#/"):
        return False
    found = schema
    for part in pointer[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, (list, tuple)) and key.isdecimal() and len(key) < 6 and int(key) < len(found):  # noqa: PLR2004
            found = found[int(key)]
        else:
            return False
    return isinstance(found, (Mapping, bool))


def _fault(source: str) -> str:
    try:
        pattern(source)
    except BadPattern as error:
        return str(error)
    return ""
