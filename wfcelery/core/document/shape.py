"""From the errors of pydantic to our faults: one fault per wrong place, in our words and codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ValidationError

from wfcelery.core.document import spec
from wfcelery.core.faults import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from wfcelery.core.document.report import Report
    from wfcelery.core.reading.place import Path

M = TypeVar("M", bound=BaseModel)

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "approval": spec.ApprovalSpec,
    "wait": spec.WaitSpec,
    "foreach": spec.ForeachSpec,
    "flow": spec.FlowSpec,
    "branch": spec.BranchSpec,
    "retry": spec.RetrySpec,
    "backoff": spec.BackoffSpec,
    "defaults": spec.DefaultsSpec,
}
_EXPECTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
}
_RANGES: Final = {
    "greater_than": ("must be above {gt}", "gt"),
    "greater_than_equal": ("must be {ge} or more", "ge"),
    "less_than": ("must be below {lt}", "lt"),
    "less_than_equal": ("must be {le} or less", "le"),
    "too_short": ("must have at least {min_length}", "min_length"),
    "too_long": ("must have at most {max_length}", "max_length"),
    "string_too_short": ("must have at least {min_length} characters", "min_length"),
    "string_too_long": ("must have at most {max_length} characters", "max_length"),
}
LONGEST_SHOWN: Final = 80
_TAGS: Final = frozenset({spec.LIST_TAG, spec.MAP_TAG, "[key]"})


def fit(model: type[M], raw: Mapping[str, object], path: Path, report: Report) -> tuple[M, frozenset[str]]:
    """Read `raw` as `model`, noting each misfit; give it without the misfit fields, and their names."""
    try:
        return model.model_validate(dict(raw)), frozenset()
    except ValidationError as error:
        details = error.errors(include_url=False)
    for each in details:
        _note(model, each, path, report)
    misfit = frozenset(str(each["loc"][0]) for each in details if each["loc"])
    return model.model_validate({key: value for key, value in raw.items() if key not in misfit}), misfit


def kind(value: object) -> str:
    """Name the kind of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "text"
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "a map"
        case _:
            return "a list"


def _note(model: type[BaseModel], error: ErrorDetails, prefix: Path, report: Report) -> None:
    path = (*prefix, *(part for part in error["loc"] if part not in _TAGS))
    value, code = error["input"], error["type"]
    context = error.get("ctx", {})
    if code == "extra_forbidden":
        known = _fields_at(model, error["loc"][:-1])
        hint = nearest(str(path[-1]), known) or f"known here: {', '.join(sorted(known))}"
        report.add("unknown-field", path, f"there is no field `{path[-1]}`", hint)
    elif code == "missing":
        report.add("missing-field", path, f"the field `{path[-1]}` is required", f"add `{path[-1]}`")
    elif code in _EXPECTED:
        message = f"must be {_EXPECTED[code]}; it is {kind(value)}"
        report.add("bad-type", path, message, _hint(code, value))
    elif code in _RANGES:
        words, name = _RANGES[code]
        shown = f"; it is {value}" if isinstance(value, (int, float)) else ""
        report.add("out-of-range", path, words.format(**{name: _number(context[name])}) + shown)
    elif code == "literal_error":
        expected = str(context["expected"]).replace("'", "`")
        choices = expected.replace("`", "").replace(" or ", ", ").split(", ")
        hint = nearest(value, choices) if isinstance(value, str) else ""
        report.add("bad-value", path, f"must be {expected}; it is {quoted(value)}", hint)
    elif code == "bad-name":
        report.add(code, path, f"{quoted(value)} {error['msg']}")
    elif code == "bad-type" and value is None:
        report.add(code, path, "is null, which says nothing here", "leave the field out, or give it a value")
    else:
        report.add(code if code == "bad-type" else "bad-value", path, f"{error['msg']}; it is {kind(value)}")


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


def _hint(code: str, value: object) -> str:
    if value is None:
        return "leave the field out, or give it a value"
    if isinstance(value, str) and code in ("int_type", "float_type"):
        return "write the number without quotes or unit; durations are in seconds"
    return ""


def quoted(value: object) -> str:
    """Write a value into a message: text in quotes, unless it is long or unprintable."""
    if not isinstance(value, str):
        return kind(value)
    short = len(value) <= LONGEST_SHOWN and value.isprintable()
    return f"`{value}`" if short else f"a text of {len(value)} characters"


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> frozenset[str]:
    for part in loc:
        model = _MODELS.get(part, model) if isinstance(part, str) else model
    names = {field.alias or name for name, field in model.model_fields.items()}
    return frozenset(names | {"steps"} if model is spec.HeaderSpec else names)
