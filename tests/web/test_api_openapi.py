"""The OpenAPI document: it is sound, it is what the code says, and it leaves no way in out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from wfcelery.web.api.openapi import document, text
from wfcelery.web.api.operation import ROOT
from wfcelery.web.api.table import OPERATIONS
from wfcelery.web.doors import all_doors

KEPT = Path(__file__).parents[2] / "docs" / "openapi.json"
DOCUMENT = document()
METHODS = {"get", "post", "put", "delete", "patch"}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def everything(node: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    if isinstance(node, dict):
        yield node
        for each in node.values():
            yield from everything(each)
    elif isinstance(node, list):
        for each in node:
            yield from everything(each)


def test_what_is_kept_is_what_the_code_generates() -> None:
    assert KEPT.read_text() == text(), "run: python -m wfcelery.web.api.openapi > docs/openapi.json"


def test_every_door_of_the_api_is_in_it_and_nothing_else() -> None:
    doors = {(door.method, door.path) for door in all_doors() if door.path.startswith("/api/")}
    assert {(method.upper(), ROOT + path) for path, method, _ in operations()} == doors
    assert all(door.is_api for door in all_doors() if door.path.startswith("/api/"))
    assert not any(door.is_api for door in all_doors() if not door.path.startswith("/api/"))


def test_the_document_has_the_shape_that_openapi_asks_for() -> None:
    assert re.fullmatch(r"3\.1\.\d", DOCUMENT["openapi"])
    assert {"title", "version"} <= DOCUMENT["info"].keys()
    assert set(DOCUMENT) <= {"openapi", "info", "servers", "security", "paths", "components"}
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids)) == len(OPERATIONS)
    for path, method, operation in operations():
        assert path.startswith("/")
        assert method in METHODS
        assert operation["summary"]
        parameters = operation["parameters"]
        places = [(each["in"], each["name"]) for each in parameters]
        assert len(places) == len(set(places))
        assert {name for place, name in places if place == "path"} == set(re.findall(r"\{(\w+)\}", path))
        assert all(each["required"] for each in parameters if each["in"] == "path")
        assert all("schema" in each for each in parameters)
        assert ("requestBody" in operation) <= (method == "post")
        assert any(status.startswith("2") for status in operation["responses"])
        for status, response in operation["responses"].items():
            assert re.fullmatch(r"[1-5]\d\d", status)
            assert response["description"]
            if status == "204":
                assert "content" not in response
                continue
            [kind] = response["content"]
            assert (kind == "application/problem+json") == status.startswith(("4", "5"))


def test_every_reference_leads_somewhere_and_every_schema_is_one() -> None:
    refs = {node["$ref"] for node in everything(DOCUMENT) if isinstance(node.get("$ref"), str)}
    schemas = DOCUMENT["components"]["schemas"]
    assert {ref.removeprefix("#/components/schemas/") for ref in refs} <= schemas.keys()
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    for _, _, operation in operations():
        for parameter in operation["parameters"]:
            Draft202012Validator.check_schema(parameter["schema"])
    for scheme in {name for each in DOCUMENT["security"] for name in each}:
        assert scheme in DOCUMENT["components"]["securitySchemes"]


def test_what_clients_send_and_get_has_no_unknown_fields() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False, name


def test_each_operation_says_the_permission_of_its_door() -> None:
    doors = {(door.method, door.path): door for door in all_doors()}
    for path, method, operation in operations():
        door = doors[method.upper(), ROOT + path]
        wanted = None if door.permission is None else door.permission.value
        assert operation.get("x-permission") == wanted
        assert (door.permission is None) == bool(door.open_because)


def test_it_is_json_and_not_too_long() -> None:
    assert json.loads(text()) == DOCUMENT
    assert len(text()) < 200_000
