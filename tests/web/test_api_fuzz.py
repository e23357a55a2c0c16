"""Whatever is sent that the OpenAPI document allows, or nearly allows, is answered as the document says."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import httpx
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.api_place import API, DOCUMENT, Client, check, served, settings_for
from tests.workflows.system import System, eventually

WAIT: Any = {
    "name": "wait",
    "start": "paid",
    "steps": {"paid": {"wait": {"signal": "paid"}, "done": True}},
}
GATE: Any = {
    "name": "gate",
    "start": "ask",
    "steps": {"ask": {"approval": {}, "next": "end"}, "end": {"done": True}},
}
REQUESTS = [
    (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if not path.endswith("/stream")
]
TEXT = st.text(max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.sampled_from(["wait", "gate", "wait@1", "gate@2", "a\nb", "2030-01-01T00:00Z", "approve", "\u202e"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, valkey_url: str) -> Iterator[tuple[Client, list[str]]]:
    """An open system with two flows and a run of each that waits."""
    broker = redis.Redis.from_url(valkey_url)
    broker.flushall()
    broker.close()
    broker_url = valkey_url.replace("unix://", "redis+socket://", 1)
    url = f"sqlite:///{tmp_path_factory.mktemp('fuzz') / 'wfcelery.db'}"
    with System(broker_url, url), served(settings_for(broker_url, url)) as address:
        client = Client(address, {"X-Wfcelery-User": "ann"})
        eventually(lambda: client.http.get(f"{API}/runs").status_code == HTTPStatus.OK)
        runs = [client.post("/runs", {"flow": flow}, 201)["id"] for flow in (WAIT, GATE)]
        yield client, runs
        client.close()


def of_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Give values that a schema allows, roughly; what it says of length and form is left to chance."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return of_schema(DOCUMENT["components"]["schemas"][name])
    if "anyOf" in schema:
        return st.one_of(*map(of_schema, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object":
            fields = {name: of_schema(each) for name, each in schema.get("properties", {}).items()}
            needed = {name: fields[name] for name in schema.get("required", ())}
            return st.fixed_dictionaries(
                needed, optional={name: each for name, each in fields.items() if name not in needed}
            )
        case "array":
            return st.lists(of_schema(schema.get("items", {})), max_size=3)
        case "integer":
            return st.integers(schema.get("minimum", -(2**70)), schema.get("maximum", 2**70))
        case "boolean":
            return st.booleans()
        case "string":
            return st.one_of(TEXT, SCALARS.filter(lambda each: isinstance(each, str)))
        case "null":
            return st.none()
        case _:
            return st.one_of(JSON, st.sampled_from([WAIT, GATE]))


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, dict[str, Any], Any]:
    path, method, operation = draw(st.sampled_from(REQUESTS))
    parameters = operation["parameters"]
    query = {}
    for each in parameters:
        if each["in"] == "query" and draw(st.booleans()):
            value = draw(st.one_of(of_schema(each["schema"]), SCALARS))
            query[each["name"]] = "" if value is None else str(value).lower() if value is True else value
    if draw(st.integers(0, 9)) == 0:
        query[draw(TEXT)] = draw(TEXT)
    body = None
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = draw(st.one_of(of_schema(schema), JSON))
        if isinstance(body, dict) and body and draw(st.integers(0, 4)) == 0:
            body = {**body, draw(st.sampled_from([*body, "extra"])): draw(JSON)}
    return path, method, query, body


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(request=requests(), data=st.data())
def test_whatever_is_sent_is_answered_as_the_document_says(
    place: tuple[Client, list[str]], request: tuple[str, str, dict[str, Any], Any], data: st.DataObject
) -> None:
    client, runs = place
    path, method, query, body = request
    parts = {
        "id": st.sampled_from([*runs, "01k9z3n5m8q0r2t4v6x8y0a1b2", "x"]),
        "name": st.sampled_from(["wait", "gate", "paid", "none", "wait@1", "a b"]),
        "step": st.sampled_from(["ask", "paid", "none"]),
        "version": st.sampled_from(["1", "99", "x"]),
    }
    for name, strategy in parts.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", data.draw(strategy, label=name))
    try:
        answer = client.http.request(
            method.upper(), API + path, params=query, **({} if body is None else {"json": body})
        )
    except (UnicodeEncodeError, httpx.InvalidURL):
        return  # Half a character cannot be sent so; the refusals send it as bytes.
    assert answer.status_code != HTTPStatus.INTERNAL_SERVER_ERROR, answer.text
    assert answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE, answer.text
    check(method.upper(), path, answer)
