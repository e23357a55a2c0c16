"""Bad input over HTTP, on both databases: one clear problem that names the place, and nothing written."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import httpx
import pytest
import redis

from tests.web.api_place import API, Client, check, served, settings_for
from tests.workflows.system import System, eventually

JSON = {"content-type": "application/json"}
RUN = "01k9z3n5m8q0r2t4v6x8y0a1b2"
WAIT: Any = {
    "name": "wait",
    "start": "paid",
    "steps": {"paid": {"wait": {"signal": "paid"}, "done": True}},
}
DEEP = 100_000
ECHO: Any = {"name": "echo", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}


@pytest.fixture
def api(valkey_url: str, database_url: str) -> Iterator[Client]:
    """The API of an open system, once on each database."""
    broker = redis.Redis.from_url(valkey_url)
    broker.flushall()
    broker.close()
    broker_url = valkey_url.replace("unix://", "redis+socket://", 1)
    with System(broker_url, database_url), served(settings_for(broker_url, database_url)) as address:
        client = Client(address, {"X-Wfcelery-User": "ann"})
        eventually(lambda: client.http.get(f"{API}/runs").status_code == HTTPStatus.OK)
        yield client
        assert client.get("/runs")["items"] == []
        assert client.get("/definitions")["items"] == []
        client.close()


def sent(api: Client, path: str, content: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    response = api.http.post(API + path, content=content, headers=JSON if headers is None else headers)
    check("POST", path, response)
    return response


def nested(depth: int) -> Any:  # noqa: ANN401
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 422),
    "null": (b"null", 422),
    "a list": (b"[]", 422),
    "text": (b'"x"', 422),
    "a number": (b"1", 422),
    "two documents": (b'{"flow": "a"} {"flow": "b"}', 422),
    "a byte order mark": (b'\xef\xbb\xbf{"flow": "a"}', 422),
    "UTF-16": ('{"flow": "a"}'.encode("utf-16"), 422),
    "gzip": (gzip.compress(b'{"flow": "a"}'), 422),
    "a trailing comma": (b'{"flow": "a",}', 422),
    "a comment": (b'{"flow": "a"} // x', 422),
    "not closed": (b'{"flow": "a"', 422),
    "brackets": (b"[" * DEEP, 422),
    "braces": (b'{"flow":' * 10_000, 422),
    "a key twice": (b'{"flow": "a", "flow": "b"}', 422),
    "a key twice inside": (b'{"flow": "a", "input": {"x": 1, "x": 2}}', 422),
    "NaN": (b'{"flow": "a", "input": NaN}', 422),
    "Infinity": (b'{"flow": "a", "input": {"x": -Infinity}}', 422),
    "a huge number": (b'{"flow": "a", "input": 1e400}', 422),
    "a huge integer": (b'{"flow": "a", "input": ' + b"9" * 5_000 + b"}", 422),
    "65 bits": (b'{"flow": "a", "input": 18446744073709551616}', 422),
    "NUL": (b'{"flow": "a", "input": {"x": "\\u0000"}}', 422),
    "NUL in a key": (b'{"flow": "a", "input": {"\\u0000": 1}}', 422),
    "NUL as a field": (b'{"flow": "a", "\\u0000": 1}', 422),
    "half a character": (b'{"flow": "a", "input": "\\ud800"}', 422),
    "half a character as a field": (b'{"flow": "a", "\\ud800": 1}', 422),
    "half a character in the name": (b'{"flow": "\\ud800"}', 422),
    "NUL in the name": (b'{"flow": "a\\u0000"}', 422),
    "NUL in the key": (b'{"flow": "a", "key": "a\\u0000"}', 422),
    "NUL in a tag": (b'{"flow": "a", "tags": ["a\\u0000"]}', 422),
    "half a character in a tag": (b'{"flow": "a", "tags": ["\\udfff"]}', 422),
    "33 levels": (json.dumps({"flow": "a", "input": nested(33)}).encode(), 422),
    "too much input": (json.dumps({"flow": "a", "input": "x" * (1024 * 1024)}).encode(), 422),
    "too much of all": (b'{"flow": "a", "input": "' + b"x" * (4 * 1024 * 1024) + b'"}', 413),
    "a flow that is a number": (b'{"flow": 3}', 422),
    "a flow that is a list": (b'{"flow": []}', 422),
    "a flow that is null": (b'{"flow": null}', 422),
    "an empty flow": (b'{"flow": {}}', 422),
    "an empty name": (b'{"flow": ""}', 422),
    "a long name": (b'{"flow": "' + b"x" * 10_000 + b'"}', 422),
    "an unknown flow": (b'{"flow": "a"}', 404),
    "an unknown version": (b'{"flow": "a@99"}', 404),
    "a huge version": (b'{"flow": "a@' + b"9" * 150 + b'"}', 404),
    "a version of other digits": ('{"flow": "a@\u0663"}'.encode(), 404),
    "a text for a list": (b'{"flow": "a", "tags": "x"}', 422),
    "too many tags": (json.dumps({"flow": "a", "tags": ["x"] * 101}).encode(), 422),
    "a number for a tag": (b'{"flow": "a", "tags": [1]}', 422),
    "a number for a key": (b'{"flow": "a", "key": 1}', 422),
    "an empty key": (b'{"flow": "a", "key": ""}', 422),
    "an unknown field": (b'{"flow": "a", "requires_aproval": true}', 422),
    "a bad id": (b'{"flow": "a", "id": "../../etc"}', 422),
    "an id in capitals": (b'{"flow": "a", "id": "01K9Z3N5M8Q0R2T4V6X8Y0A1B2"}', 422),
    "a time without a zone": (b'{"flow": "a", "at": "2030-01-01T00:00:00"}', 422),
    "a time before all": (b'{"flow": "a", "at": "0001-01-01T00:00:00+14:00"}', 422),
    "a time after all": (b'{"flow": "a", "at": "9999-12-31T23:59:59-14:00"}', 422),
    "a leap second": (b'{"flow": "a", "at": "2030-12-31T23:59:60Z"}', 422),
    "a number for a time": (b'{"flow": "a", "at": 1}', 422),
    "another answer to a conflict": (b'{"flow": "a", "on_conflict": "ignore"}', 422),
}
QUERIES: dict[str, str] = {
    "limit=0": "query.limit",
    "limit=-1": "query.limit",
    "limit=201": "query.limit",
    "limit=1000000000": "query.limit",
    f"limit={'9' * 5000}": "query.limit",
    "limit=1.0": "query.limit",
    "limit=1e2": "query.limit",
    "limit=": "query.limit",
    "limit=%20%201": "query.limit",
    "limit=1_0": "query.limit",
    "limit=%D9%A3": "query.limit",
    "limit=1&limit=2": "query.limit",
    "cursor=": "query.cursor",
    "cursor=x": "query.cursor",
    f"cursor={'a' * 5000}": "query.cursor",
    "cursor=%00": "query.cursor",
    "status=nothing": "query.status[0]",
    "status=": "query.status[0]",
    "since=yesterday": "query.since",
    "since=2030-01-01": "query.since",
    "since=0001-01-01T00:00%2B14:00": "query.since",
    "until=9999-12-31T23:59-14:00": "query.until",
    "flow=%00": "query.flow",
    "flow=": "query.flow",
    f"key={'x' * 201}": "query.key",
    "flow=%ff": "query",
    "unknown=1": "query.unknown",
    "token=wfc_x": "query.token",
    "access_token=wfc_x": "query.access_token",
    "&".join(f"p{n}=1" for n in range(5_000)): "query",
    "%00=1": "query.\\x00",
}


def test_every_bad_body_is_one_clear_problem_and_changes_nothing(api: Client) -> None:
    for name, (body, status) in BODIES.items():
        response = sent(api, "/runs", body)
        assert response.status_code == status, (name, response.text)
        assert len(response.text) < 2_000, name
    for path in ("/definitions", "/validate"):
        for name, (body, status) in BODIES.items():
            found = sent(api, path, body)
            assert found.status_code in (status, 422), (path, name, found.text)


def test_every_bad_query_is_named(api: Client) -> None:
    for query, path in QUERIES.items():
        problem = api.get(f"/runs?{query}", 422)
        assert problem["path"] == path, query[:80]
    for query in ("after=-1", "after=x", f"after={10**20}", "limit=1001", "limit=0"):
        api.get(f"/runs/{RUN}/events?{query}", 422)
    many = http.client.HTTPConnection(api.address.removeprefix("http://"), timeout=30)
    many.request("GET", f"{API}/runs?{'&'.join(f'p{n}=1' for n in range(10_000))}")
    assert many.getresponse().status in (400, 422)  # It may be refused before it is read.
    many.close()
    api.get("/approvals?mine=1", 422)
    api.get("/definitions/x?version=0", 422)


def test_a_flow_that_is_too_large_or_too_deep_has_faults_and_is_not_kept(api: Client) -> None:
    steps = {f"s{n}": {"next": f"s{n + 1}"} for n in range(1_001)} | {"s1001": {"done": True}}
    many = {"name": "x", "start": "s0", "steps": steps}
    deep = {**ECHO, "steps": {"a": {"tool": "echo", "args": {"x": nested(40)}, "done": True}}}
    large = {**ECHO, "description": "x" * (256 * 1024 + 1)}
    nul = {**ECHO, "description": "a\x00"}
    number = {**ECHO, "steps": {"a": {"tool": "echo", "args": {"x": 2**64}, "done": True}}}
    extra = {**ECHO, "requires_aproval": True}
    codes = {
        "too-many-steps": many,
        "too-deep": deep,
        "too-large": large,
        "bad-text": nul,
        "bad-number": number,
        "unknown-field": extra,
    }
    for path in ("/definitions", "/validate", "/runs"):
        for code, flow in codes.items():
            problem = api.post(path, {"flow": flow}, 422)
            assert code in {fault["code"] for fault in problem["faults"]}, (path, code)
        for text in ("a: [\n", "%YAML 1.1\n---\na: &x 1\n", '{"name": "x",\n "name": "y"}', "\n\n"):
            assert api.post(path, {"flow": text}, 422)["faults"], (path, text)


def test_kinds_and_methods_and_paths_that_are_not_there_are_problems_too(api: Client) -> None:
    body = b'{"flow": "a"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert sent(api, "/runs", body, {"content-type": kind}).status_code == 415
    for more in ("application/json; charset=utf-16", "application/json; charset=latin-1"):
        assert sent(api, "/runs", body, {"content-type": more}).status_code == 415
    assert sent(api, "/runs", gzip.compress(body), {**JSON, "content-encoding": "gzip"}).status_code == 415
    assert sent(api, "/runs", body, {"content-type": 'Application/JSON; charset="UTF-8"'}).status_code == 404
    wrong = api.http.put(f"{API}/runs", json={})
    check("PUT", "/runs", wrong)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, POST")
    assert wrong.json()["code"] == "no-such-method"
    for method, path in (
        ("DELETE", f"/runs/{RUN}"),
        ("PATCH", "/me"),
        ("POST", "/system"),
        ("OPTIONS", "/runs"),
    ):
        answer = api.http.request(method, API + path)
        assert answer.status_code == 405
        check(method, path, answer)
    for path in ("/none", "/runs/x/y/z", "/", "", "//runs", "/runs/%2e%2e/me", "/../../etc/passwd"):
        answer = api.http.get(API + path)
        assert answer.status_code in (404, 307), path
    api.get("/none", 404)


def test_ids_and_names_that_cannot_be_are_not_found(api: Client) -> None:
    for run_id in (RUN, "x", "%00", "'; drop table workflows; --", "a" * 3_000, RUN.upper(), "%ED%A0%80"):
        for tail in ("", "/steps", "/events", "/explain", "/gates", "/stream"):
            api.get(f"/runs/{run_id}{tail}", 404)
        for tail in ("cancel", "pause", "resume", "retry", "signals/x"):
            api.post(f"/runs/{run_id}/{tail}", {}, 404)
        api.post(f"/runs/{run_id}/gates/x", {"decision": "deny"}, 404)
        api.get(f"/definitions/{run_id}", 404)
        api.ask("DELETE", f"/definitions/{run_id}@1", 404)
    for version in ("x", "-1", "1.0", "%D9%A3", "9" * 400):
        api.ask("DELETE", f"/definitions/a@{version}", 404)
    assert api.ask("DELETE", "/definitions/a@1", 422, json={})["path"] == "body"


def test_headers_that_cannot_be_are_refused(api: Client) -> None:
    body = {"flow": "a"}
    for key in (b"", b"x" * 201, b"a\xad"):
        problem = api.http.post(f"{API}/runs", json=body, headers={b"Idempotency-Key": key})
        assert (problem.status_code, problem.json()["path"]) == (422, "idempotency-key")
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert api.http.post(f"{API}/runs", json=body, headers=twice).status_code == 422
    for user in ("x" * 201, b"\xad"):
        assert api.get("/me", 422, headers={"X-Wfcelery-User": user})["path"] == "user"
    assert api.http.get(f"{API}/me", headers={"Host": "evil.example"}).status_code == 421
    origins = [{"Origin": origin} for origin in ("https://evil.example", "null", "file://", "x")]
    for headers in (*origins, {"Sec-Fetch-Site": "cross-site"}):
        assert api.post("/runs", body, 403, headers=headers)["code"] == "forbidden"
        assert api.post(f"/runs/{RUN}/cancel", None, 403, headers=headers)["code"] == "forbidden"
