"""Who may do what over the API: by token, by session, and only what the policy allows."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from tests.web.api_place import API, DOCUMENT, TOKENS, Client, check, policy, served, settings_for
from tests.workflows.system import SECRET, System, celery_app, eventually
from wfcelery.workflows import Workflows

GATE: Any = {
    "name": "gate",
    "start": "ask",
    "steps": {"ask": {"approval": {}, "next": "end"}, "end": {"done": True}},
}
OTHER: Any = {**GATE, "name": "other"}
MISSING = "01k9z3n5m8q0r2t4v6x8y0a1b2"


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS.get(name, name)}"}


@pytest.fixture
def address(valkey_url: str, sqlite_url: str, tmp_path: Path) -> Iterator[str]:
    """The API under a policy."""
    broker = redis.Redis.from_url(valkey_url)
    broker.flushall()
    broker.close()
    broker_url = valkey_url.replace("unix://", "redis+socket://", 1)
    rights = tmp_path / "policy.toml"
    rights.write_text(policy())
    settings = settings_for(broker_url, sqlite_url, policy=str(rights))
    with System(broker_url, sqlite_url), served(settings) as found:
        eventually(
            lambda: httpx.get(f"{found}{API}/runs", headers=bearer("ann")).status_code == HTTPStatus.OK
        )
        yield found


@pytest.fixture
def people(address: str) -> Iterator[dict[str, Client]]:
    clients = {name: Client(address, bearer(name)) for name in TOKENS}
    clients["nobody"] = Client(address)
    yield clients
    for each in clients.values():
        each.close()


def started(ann: Client, flow: Any) -> str:  # noqa: ANN401
    run_id: str = ann.post("/runs", {"flow": flow}, 201)["id"]
    eventually(lambda: ann.get(f"/runs/{run_id}")["status"] == "paused")
    return run_id


def every_request() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Give each operation of the document once, with a path and a body that can be read."""
    bodies: dict[str, Any] = {
        "start_run": {"flow": "gate"},
        "decide_gate": {"decision": "deny"},
        "define_flow": {"flow": GATE},
        "validate_flow": {"flow": GATE},
    }
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            filled = path.format(id=MISSING, name="gate", step="ask", version="1")
            body = bodies.get(operation["operationId"], {}) if method == "post" else None
            yield method.upper(), filled, {} if body is None else {"json": body}


def test_without_a_token_nothing_is_told_but_the_description(people: dict[str, Client]) -> None:
    for method, path, more in every_request():
        open_to_all = path == "/openapi.json"
        people["nobody"].ask(method, path, 200 if open_to_all else 401, **more)
    answer = people["nobody"].http.get(f"{API}/runs")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_who_may_do_nothing_gets_nothing(people: dict[str, Client]) -> None:
    for method, path, more in every_request():
        expect = 200 if path in ("/me", "/openapi.json") else 403
        people["mute"].ask(method, path, expect, **more)
    assert people["mute"].get("/me")["permissions"] == []


def test_tokens_that_are_not_quite_right_are_nobodys(people: dict[str, Client], address: str) -> None:
    token = TOKENS["ann"]
    for given in (
        token[:-1],
        token + "=",
        token.upper(),
        f"{token}, Bearer {token}",
        "",
        "x" * 10_000,
        "\u00e4",
    ):
        headers = {b"Authorization": f"Bearer {given}".strip().encode("latin-1")}
        answer = people["nobody"].http.get(f"{API}/me", headers=headers)
        assert answer.status_code == 401, given
        check("GET", "/me", answer)
    padded = {"Authorization": f"bearer   {token}"}
    assert people["nobody"].http.get(f"{API}/me", headers=padded).json()["id"] == "ann"
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {TOKENS['bob']}")]
    assert httpx.get(f"{address}{API}/me", headers=twice).status_code == 422
    in_query = people["nobody"].http.get(f"{API}/runs", params={"token": token})
    assert in_query.status_code == 401
    both = people["ann"].get("/runs", 422, params={"token": token})
    assert both["path"] == "query.token"
    named = people["nobody"].http.get(f"{API}/me", headers={"X-Wfcelery-User": "ann"})
    assert named.status_code == 401
    assert people["bob"].get("/me", headers={"X-Wfcelery-User": "ann"})["id"] == "bob"


def test_a_run_that_may_not_be_read_is_like_one_that_is_not_there(people: dict[str, Client]) -> None:
    hidden, seen = started(people["ann"], GATE), started(people["ann"], OTHER)
    eve = people["eve"]
    assert [run["id"] for run in eve.get("/runs")["items"]] == [seen]
    assert [run["id"] for run in people["ann"].get("/runs")["items"]] == [seen, hidden]
    for tail in ("", "/steps", "/events", "/explain", "/gates", "/stream"):
        unknown = eve.get(f"/runs/{MISSING}{tail}", 404)
        forbidden = eve.get(f"/runs/{hidden}{tail}", 404)
        assert {**forbidden, "instance": "", "detail": ""} == {**unknown, "instance": "", "detail": ""}
        assert forbidden["detail"] == unknown["detail"].replace(MISSING, hidden)
    eve.post(f"/runs/{hidden}/cancel", {}, 404)
    assert [each["name"] for each in eve.get("/definitions")["items"]] == ["other"]
    digest = people["ann"].get("/definitions/gate")["id"]
    for name, unknown in (("gate", "none"), ("gate@1", "none@1"), (digest, "0" * 64)):
        said = eve.post("/runs", {"flow": name}, 404)
        assert said == {**eve.post("/runs", {"flow": unknown}, 404), "detail": f"no definition {name}"}
    for name in ("gate", "gate@1", "none", "none@1"):
        assert eve.get(f"/definitions/{name}", 404)["detail"] == f"no definition {name}"
    assert [each["flow"] for each in eve.get("/approvals", params={"mine": "false"})["items"]] == ["other"]
    assert eve.post(f"/runs/{seen}/cancel", {})["status"] == "cancelled"
    assert people["ann"].get(f"/runs/{hidden}")["status"] == "paused"


def test_what_may_be_read_and_not_done_is_forbidden(people: dict[str, Client]) -> None:
    run_id = started(people["ann"], GATE)
    bob = people["bob"]
    for verb in ("cancel", "pause", "resume", "retry", "signals/x"):
        assert bob.post(f"/runs/{run_id}/{verb}", {}, 403)["code"] == "forbidden"
    bob.post("/runs", {"flow": OTHER}, 403)
    bob.post("/definitions", {"flow": GATE}, 403)
    bob.post("/validate", {"flow": GATE}, 403)
    bob.ask("DELETE", "/definitions/gate@1", 403)
    people["eve"].post("/definitions", {"flow": GATE}, 403)
    people["eve"].post("/validate", {"flow": GATE}, 403)
    people["eve"].post("/runs", {"flow": {**GATE, "description": "mine"}}, 403)
    assert people["eve"].post("/definitions", {"flow": {**OTHER, "name": "other2"}}, 201)["version"] == 1
    assert people["ann"].get(f"/runs/{run_id}")["status"] == "paused"


def test_everything_is_done_in_the_name_of_who_asks(people: dict[str, Client]) -> None:
    run_id = started(people["ann"], GATE)
    own = people["bob"].post("/runs", {"flow": "gate"}, 201)["id"]
    assert people["ann"].get(f"/runs/{own}")["created_by"] == "bob"
    yes = {"decision": "approve"}
    assert "started" in people["bob"].post(f"/runs/{own}/gates/ask", yes, 403)["detail"]
    people["bot"].post(f"/runs/{run_id}/gates/ask", yes, 403)
    people["ann"].post(f"/runs/{run_id}/gates/ask", {**yes, "by": "bob"}, 422)
    people["ann"].post(f"/runs/{run_id}/gates/ask", yes, 403)
    people["bob"].post(f"/runs/{run_id}/gates/ask", yes)
    [vote] = [
        each for each in people["ann"].get(f"/runs/{run_id}/events")["items"] if each["type"] == "vote_cast"
    ]
    assert (vote["actor"], vote["data"]["via"]) == ("bob", "api")


def test_a_session_works_with_its_csrf_token_only(people: dict[str, Client], address: str) -> None:
    people["ann"].post("/definitions", {"flow": GATE}, 201)
    with httpx.Client(base_url=address) as browser:
        page = browser.get("/login").text
        csrf = page.split('name="csrf" value="')[1].split('"')[0]
        browser.post("/login", data={"token": TOKENS["bob"], "csrf": csrf})
        me = browser.get(f"{API}/me").json()
        assert me["id"] == "bob"
        body = {"flow": "gate"}
        refused = browser.post(f"{API}/runs", json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        wrong = browser.post(f"{API}/runs", json=body, headers={"X-CSRF-Token": csrf})
        assert wrong.status_code == 403
        right = browser.post(f"{API}/runs", json=body, headers={"X-CSRF-Token": me["csrf_token"]})
        assert right.status_code == 201
        bad = browser.get(f"{API}/me", headers=bearer("unknown"))
        assert bad.status_code == 401, "a bad token is nobody, whatever the cookie says"
    assert people["ann"].get("/me")["csrf_token"] is None


def test_a_page_is_filled_although_most_may_not_be_read(
    people: dict[str, Client], valkey_url: str, sqlite_url: str
) -> None:
    broker_url = valkey_url.replace("unix://", "redis+socket://", 1)
    with Workflows(celery_app(broker_url), sqlite_url, secret_key=SECRET, user="ann") as workflows:
        workflows.define(GATE)
        workflows.define(OTHER)
        wishes = [{"flow": "other" if n % 50 == 0 else "gate"} for n in range(150)]
        workflows.start_many(wishes)
    eve = people["eve"]
    first = eve.get("/runs", params={"limit": 2})
    assert [run["name"] for run in first["items"]] == ["other", "other"]
    last = eve.get("/runs", params={"limit": 2, "cursor": first["next"]})
    assert ([run["name"] for run in last["items"]], last["next"]) == (["other"], None)
