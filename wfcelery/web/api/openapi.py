"""The OpenAPI document, made from the operations. `python -m wfcelery.web.api.openapi` prints it."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from wfcelery.web.api.access import LONGEST_KEY
from wfcelery.web.api.operation import ROOT, Operation
from wfcelery.web.api.shapes import Problem
from wfcelery.web.api.table import OPERATIONS
from wfcelery.web.failures import PROBLEM

if TYPE_CHECKING:
    from pydantic import BaseModel

VERSION: Final = "3.1.1"
REF: Final = "#/components/schemas/{model}"
_PART: Final = re.compile(r"\{(\w+)\}")
_PARTS: Final = {
    "id": "The id of a run.",
    "name": "A name.",
    "step": "The name of a step.",
    "version": "The number of a version.",
}
_ALWAYS: Final = {
    401: "Nobody has signed in, or the token is not known.",
    403: "It is not allowed.",
    422: "Something in the request is wrong; `path` says what, `faults` what is wrong with a flow.",
    503: "The system does not answer; `Retry-After` says when to ask again.",
}
_OF_BODIES: Final = {413: "The body is too large.", 415: "The body is not JSON in UTF-8."}
_ABOUT: Final = (
    "Everything that the console does, for programs. Errors are problem details (RFC 9457). Lists are read "
    "page by page: give `next` of one page as `cursor` of the next."
)


@cache
def document() -> dict[str, Any]:
    """Describe the API."""
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": VERSION,
        "info": {"title": "wfcelery", "version": "1", "description": _ABOUT},
        "servers": [{"url": ROOT}],
        "security": [{"token": []}, {"session": [], "csrf": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token from the policy file.",
                },
                "session": {"type": "apiKey", "in": "cookie", "name": "wfcelery_session"},
                "csrf": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-CSRF-Token",
                    "description": "With the session's cookie only: `csrf_token` of /me.",
                },
            },
        },
    }


def text() -> str:
    """Write the document as it is kept in docs/openapi.json."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _operation(each: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "parameters": [*_path_parameters(each), *_query_parameters(each), *_header_parameters(each)],
        "responses": _responses(each),
    }
    if each.body is not None:
        required = any(field.is_required() for field in each.body.model_fields.values())
        described["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": _ref(each.body)}},
        }
    if each.permission is None:
        described["security"] = [{}] if each.name == "show_openapi" else [{"token": []}, {"session": []}]
    else:
        described["x-permission"] = each.permission.value
    return described


def _path_parameters(each: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARTS[name],
            "schema": {"type": "string"},
        }
        for name in _PART.findall(each.path)
    ]


def _query_parameters(each: Operation) -> list[dict[str, Any]]:
    schema = each.query.model_json_schema()
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _untitled(found)}
        for name, found in schema.get("properties", {}).items()
    ]


def _header_parameters(each: Operation) -> list[dict[str, Any]]:
    found = []
    if each.repeatable:
        about = "Names the request: a repeat of it by the same user with the same key does nothing twice."
        schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY}
        found.append({"name": "Idempotency-Key", "in": "header", "description": about, "schema": schema})
    if each.media == "text/event-stream":
        about = "The number of the last event that was seen."
        found.append(
            {"name": "Last-Event-ID", "in": "header", "description": about, "schema": {"type": "string"}}
        )
    return found


def _responses(each: Operation) -> dict[str, Any]:
    problems = dict(_ALWAYS)
    if each.method == "POST":
        problems |= _OF_BODIES
    if each.permission is None:
        problems.pop(403)
        if each.name == "show_openapi":
            problems.pop(401)
    said = {**problems, **each.statuses}
    return {str(status): _response(each, status, said[status]) for status in sorted(said)}


def _response(each: Operation, status: int, about: str) -> dict[str, Any]:
    if status >= HTTPStatus.BAD_REQUEST:
        return {"description": about, "content": {PROBLEM: {"schema": _ref(Problem)}}}
    if status == HTTPStatus.NO_CONTENT:
        return {"description": about}
    schema: dict[str, Any] = {"type": "object"} if each.media == "application/json" else {"type": "string"}
    if each.response is not None:
        schema = _ref(each.response)
    return {"description": about, "content": {each.media: {"schema": schema}}}


def _schemas() -> dict[str, Any]:
    sent = [(each.body, "validation") for each in OPERATIONS if each.body is not None]
    given = [(each.response, "serialization") for each in OPERATIONS if each.response is not None]
    models: Any = [*sent, *given, (Problem, "serialization")]
    _, schema = models_json_schema(models, ref_template=REF)
    return {name: _untitled(found) for name, found in sorted(schema["$defs"].items())}


def _ref(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": REF.format(model=model.__name__)}


def _untitled(schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Leave out the titles that pydantic makes of names: they say nothing that the names do not."""
    if isinstance(schema, dict):
        return {
            name: _untitled(value)
            for name, value in schema.items()
            if name != "title" or not isinstance(value, str)
        }
    return [_untitled(each) for each in schema] if isinstance(schema, list) else schema


if __name__ == "__main__":
    sys.stdout.write(text())
