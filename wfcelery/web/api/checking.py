"""From what was sent to what an operation works with; the first thing that is wrong is named by its path."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar, get_origin
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from wfcelery.core.reading import spell
from wfcelery.core.values import Json, type_name
from wfcelery.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from starlette.requests import Request

MOST_PARAMETERS: Final = 100
M = TypeVar("M", bound=BaseModel)


def query_of(request: Request, model: type[M]) -> M:
    """Read the query; a parameter that is not known, or stands there twice, is refused."""
    text = request.scope.get("query_string", b"").decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="strict")
    except ValueError:
        reason = f"cannot be read: it must be UTF-8 with at most {MOST_PARAMETERS} parameters"
        raise InvalidInput("query", reason) from None
    found: dict[str, object] = {}
    for name, value in pairs:
        field = model.model_fields.get(name)
        if field is not None and get_origin(field.annotation) is list:
            many = found.setdefault(name, [])
            assert isinstance(many, list)  # noqa: S101 - made one line above
            many.append(value)
        elif name in found:
            raise InvalidInput(f"query.{_shown(name)}", "stands there twice; give it once")
        else:
            found[name] = value
    return _made(model, found, "query")


def body_of(body: Json, model: type[M]) -> M:
    """Read the body; where every field may be left out, it may be left out itself."""
    if body is None:
        if any(field.is_required() for field in model.model_fields.values()):
            raise InvalidInput("body", "is missing; send JSON")
        return model()
    if not isinstance(body, Mapping):
        raise InvalidInput("body", f"must be a map, not {type_name(body)}")
    return _made(model, body, "")


def _made(model: type[M], data: Mapping[str, object], prefix: str) -> M:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = spell(_path(first, prefix))
        raise InvalidInput(path or "body", _reason(model, first)) from None


def _path(error: ErrorDetails, prefix: str) -> tuple[str | int, ...]:
    # Which arm of a union was tried is no part of where it stands.
    named = [part for part in error["loc"] if isinstance(part, int) or "[" not in part]
    return (prefix, *named) if prefix else tuple(named)


def _reason(model: type[BaseModel], error: ErrorDetails) -> str:
    match error["type"]:
        case "extra_forbidden":
            close = difflib.get_close_matches(str(error["loc"][-1])[:100], model.model_fields, n=1)
            known = ", ".join(model.model_fields) or "none at all"
            return f"is not known; {f'did you mean {close[0]}?' if close else f'known are {known}'}"
        case "missing":
            return "is missing"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            message = error["msg"].removeprefix("Input ")
            return f"{message[:1].lower()}{message[1:]}"


def _shown(name: str) -> str:
    return spell((name,))
