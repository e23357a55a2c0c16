"""Every operation of the API through real HTTP, against a real executor behind a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

import httpx
import pytest
import redis

from tests.web.api_place import API, Client, served, settings_for
from tests.workflows.system import System, eventually

ECHO: Any = {
    "name": "echo",
    "start": "a",
    "steps": {"a": {"tool": "echo", "args": {"value": "{{input.x}}"}, "done": True}},
}
GATE: Any = {
    "name": "gate",
    "start": "ask",
    "steps": {
        "ask": {
            "approval": {
                "approvers": ["bob", "cid"],
                "require_comment": True,
                "form": {
                    "type": "object",
                    "required": ["limit"],
                    "properties": {"limit": {"type": "integer"}},
                },
            },
            "next": "end",
        },
        "end": {"tool": "echo", "args": {"value": "{{input.x}}"}, "done": True},
    },
}
WAIT: Any = {
    "name": "wait",
    "start": "paid",
    "steps": {"paid": {"wait": {"signal": "paid"}, "done": True}},
}
FAIL: Any = {
    "name": "fail",
    "start": "a",
    "steps": {"a": {"tool": "fail", "args": {"times": 1}, "retry": {"max_attempts": 1}, "done": True}},
}
MANY: Any = {
    "name": "many",
    "start": "all",
    "steps": {
        "all": {
            "foreach": {"items": "{{input.items}}", "tool": "echo", "args": {"value": "{{item}}"}},
            "done": True,
        }
    },
}


@pytest.fixture
def address(valkey_url: str, database_url: str) -> Iterator[str]:
    """The API of an open system, once on each database."""
    client = redis.Redis.from_url(valkey_url)
    client.flushall()
    broker_url = valkey_url.replace("unix://", "redis+socket://", 1)
    with System(broker_url, database_url), served(settings_for(broker_url, database_url)) as found:
        eventually(lambda: httpx.get(f"{found}{API}/runs").status_code == HTTPStatus.OK)
        yield found
    client.close()


@pytest.fixture
def api(address: str) -> Iterator[Client]:
    client = Client(address, {"X-Wfcelery-User": "ann"})
    yield client
    client.close()


def as_user(api: Client, user: str) -> dict[str, Any]:
    return {"headers": {"X-Wfcelery-User": user}}


def ended(api: Client, run_id: str, status: str = "completed") -> Any:  # noqa: ANN401
    eventually(lambda: api.get(f"/runs/{run_id}")["status"] == status)
    return api.get(f"/runs/{run_id}")


def paused(api: Client, flow: Any, given: Any = None) -> str:  # noqa: ANN401
    """Start a run that comes to rest, and give its id."""
    run_id: str = api.post("/runs", {"flow": flow, "input": given}, 201)["id"]
    ended(api, run_id, "paused")
    return run_id


def test_a_flow_is_defined_shown_started_and_its_run_is_read(api: Client) -> None:
    made = api.post("/definitions", {"flow": ECHO}, 201)
    assert api.post("/definitions", {"flow": ECHO}, 200) == made
    assert api.get("/definitions")["items"] == [
        {**made, "created_by": "ann", "created_at": api.get("/definitions/echo")["created_at"]}
    ]
    assert api.get("/definitions/echo")["document"] == ECHO
    assert api.get("/definitions/echo@1") == api.get("/definitions/echo", params={"version": 1})
    answer = api.http.post(f"{API}/runs", json={"flow": "echo", "input": {"x": [7]}, "tags": ["a", "b"]})
    run_id = answer.json()["id"]
    assert (answer.status_code, answer.headers["location"]) == (201, f"{API}/runs/{run_id}")
    run = ended(api, run_id)
    assert (run["output"], run["created_by"], run["tags"], run["steps_next"]) == (
        [7],
        "ann",
        ["a", "b"],
        None,
    )
    assert [step["name"] for step in run["steps"]] == ["a"]
    listed = api.get("/runs")["items"]
    assert listed == [{name: run[name] for name in listed[0]}]
    assert api.get(f"/runs/{run_id}/explain")["reasons"][0]["code"] == "completed"
    assert api.get(f"/runs/{run_id}/steps")["items"] == run["steps"]


def test_a_retired_version_starts_nothing_and_is_not_found(api: Client) -> None:
    api.post("/definitions", {"flow": ECHO}, 201)
    assert api.ask("DELETE", "/definitions/echo@1", 200)["version"] == 1
    assert api.post("/runs", {"flow": "echo"}, 404)["code"] == "not-found"
    api.get("/definitions/echo", 404)
    api.ask("DELETE", "/definitions/echo@1", 404)
    api.ask("DELETE", f"/definitions/echo@{'9' * 5000}", 404)


def test_faults_of_a_flow_come_back_whole_and_the_same_from_all_who_say_them(api: Client) -> None:
    bad = {"name": "bad", "start": "a", "steps": {"a": {"tool": "nothing", "next": "b"}, "c": {"done": True}}}
    said = [
        api.post(path, {"flow": bad}, 422)["faults"] for path in ("/definitions", "/validate", "/definitions")
    ]
    assert {fault["code"] for fault in said[1]} >= {"unknown-step", "unreachable-step", "unknown-tool"}
    assert {fault["code"] for fault in said[0]} >= {"unknown-step", "unreachable-step"}
    assert api.post("/runs", {"flow": bad}, 422)["code"] == "invalid-flow"
    unknown = {"name": "bad", "start": "a", "steps": {"a": {"tool": "nothing", "done": True}}}
    assert (
        api.post("/definitions", {"flow": unknown}, 422)["faults"]
        == api.post("/validate", {"flow": unknown}, 422)["faults"]
    )
    text = "name: t\nstart: a\nsteps:\n  a: {tool: echo, next: b}\n"
    [fault] = api.post("/validate", {"flow": text}, 422)["faults"]
    assert (fault["code"], fault["line"]) == ("unknown-step", 4)
    assert api.post("/validate", {"flow": ECHO}) == {"name": "echo", "faults": []}
    assert api.get("/definitions")["items"] == []


def test_fifty_equal_starts_at_once_give_one_run(api: Client) -> None:
    api.post("/definitions", {"flow": ECHO}, 201)

    def start(_: int) -> httpx.Response:
        body = {"flow": "echo", "input": {"x": 1}}
        return api.http.post(f"{API}/runs", json=body, headers={"Idempotency-Key": "order 17"})

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(start, range(50)))
    assert sorted(each.status_code for each in answers) == [200] * 49 + [201]
    assert len({each.json()["id"] for each in answers}) == 1
    assert len(api.get("/runs")["items"]) == 1
    headers = {"Idempotency-Key": "order 17"}
    again = {"flow": "echo", "input": {"x": 2}}
    assert api.post("/runs", again, 409, headers=headers)["code"] == "conflict"
    other = {"Idempotency-Key": "order 17", "X-Wfcelery-User": "bob"}
    assert api.post("/runs", again, 201, headers=other)["id"] != answers[0].json()["id"]


def test_a_start_by_id_by_key_and_for_later_is_as_asked_for(api: Client) -> None:
    run_id = "01k9z3n5m8q0r2t4v6x8y0a1b2"
    body = {"flow": WAIT, "id": run_id, "key": "k", "at": "2030-01-01T00:00:00+02:00"}
    assert api.post("/runs", body, 201) == {"id": run_id, "created": True}
    assert api.post("/runs", body, 200) == {"id": run_id, "created": False}
    assert api.post("/runs", {"flow": WAIT, "key": "k"}, 200) == {"id": run_id, "created": False}
    assert api.post("/runs", {"flow": WAIT, "key": "k", "on_conflict": "error"}, 409)["code"] == "conflict"
    both = api.post("/runs", body, 422, headers={"Idempotency-Key": "x"})
    assert both["path"] == "id"
    assert api.get(f"/runs/{run_id}")["steps"][0]["due_at"] == "2029-12-31T22:00:00.000Z"
    assert "ten years" in api.post("/runs", {"flow": WAIT, "at": "2500-01-01T00:00Z"}, 422)["detail"]


def test_lists_are_read_page_by_page_and_nothing_twice(api: Client) -> None:
    api.post("/definitions", {"flow": ECHO}, 201)
    made = [api.post("/runs", {"flow": "echo", "tags": [f"t{n % 2}"]}, 201)["id"] for n in range(7)]
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 3}
    while True:
        page = api.get("/runs", params=params)
        seen += [run["id"] for run in page["items"]]
        if page["next"] is None:
            break
        params["cursor"] = page["next"]
    assert sorted(seen) == sorted(made)
    assert len(api.get("/runs", params={"tag": "t1"})["items"]) == 3
    created = api.get(f"/runs/{made[3]}")["created_at"]
    later = api.get("/runs", params={"since": created})["items"]
    sooner = api.get("/runs", params={"until": created})["items"]
    assert len(later) + len(sooner) == 7
    for given in ({"flow": "other"}, {"user": "bob"}, {"key": "k"}, {"status": "paused"}, {"tag": "t"}):
        assert api.get("/runs", params=given)["items"] == []
    both = api.http.get(f"{API}/runs?status=completed&status=running&status=paused&status=failed")
    assert len(both.json()["items"]) == 7


def test_a_huge_run_is_shown_in_parts(api: Client) -> None:
    run_id = api.post("/runs", {"flow": MANY, "input": {"items": list(range(450))}}, 201)["id"]
    run = ended(api, run_id)
    assert len(run["steps"]) == 200
    seen, following = list(run["steps"]), run["steps_next"]
    while following is not None:
        page = api.get(f"/runs/{run_id}/steps", params={"cursor": following})
        seen, following = seen + page["items"], page["next"]
    assert len(seen) == len({step["id"] for step in seen}) == 451
    big = {"items": ["x" * 300_000, "y" * 300_000]}
    large = ended(api, api.post("/runs", {"flow": MANY, "input": big}, 201)["id"])
    assert len(large["steps"]) == 3
    events: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = api.get(f"/runs/{run_id}/events", params={"after": after, "limit": 500})
        events, after = events + page["items"], page["next"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    other = api.get(f"/runs/{large['id']}/steps", 422, params={"cursor": run["steps_next"]})
    assert other["path"] == "query.cursor"


def test_a_page_of_runs_ends_before_it_is_too_large(api: Client) -> None:
    api.post("/definitions", {"flow": ECHO}, 201)
    big = {"x": "x" * 900_000}
    made = [api.post("/runs", {"flow": "echo", "input": big}, 201)["id"] for _ in range(4)]
    for run_id in made:
        ended(api, run_id)
    first = api.get("/runs")
    assert [run["id"] for run in first["items"]] == [made[3], made[2]]
    second = api.get("/runs", params={"cursor": first["next"]})
    assert ([run["id"] for run in second["items"]], second["next"]) == ([made[1], made[0]], None)


def test_runs_are_told_things(api: Client) -> None:
    run_id = paused(api, WAIT)
    assert api.post(f"/runs/{run_id}/pause")["id"] == run_id
    assert {each["code"] for each in api.get(f"/runs/{run_id}/explain")["reasons"]} >= {"held"}
    api.post(f"/runs/{run_id}/resume", {})
    assert "waits for paid" in api.post(f"/runs/{run_id}/signals/other", {}, 409)["detail"]
    once = {"Idempotency-Key": "s1"}
    api.post(f"/runs/{run_id}/signals/paid", {"payload": {"by": "card"}}, headers=once)
    assert ended(api, run_id)["output"] == {"by": "card"}
    assert api.post(f"/runs/{run_id}/signals/paid", {"payload": {"by": "card"}}, headers=once)
    assert api.post(f"/runs/{run_id}/signals/paid", {"payload": 1}, 409, headers=once)["code"] == "refused"
    assert api.post(f"/runs/{run_id}/cancel", {}, 409)["code"] == "refused"
    other = paused(api, WAIT)
    assert api.post(f"/runs/{other}/cancel", {"reason": "too late"}) == {"id": other, "status": "cancelled"}
    run = api.get(f"/runs/{other}")
    assert run["error"] == {"type": "cancelled", "message": "cancelled by ann: too late"}
    assert api.post(f"/runs/{other}/retry", None, 409)["code"] == "refused"


def test_a_failed_run_is_retried(api: Client) -> None:
    run_id = api.post("/runs", {"flow": FAIL}, 201)["id"]
    assert ended(api, run_id, "failed")["error"]["message"]
    api.post(f"/runs/{run_id}/retry")
    assert len(ended(api, run_id)["steps"]) == 2


def test_a_gate_is_seen_in_the_inbox_and_decided_once(api: Client) -> None:
    run_id = paused(api, GATE, {"x": 1})
    assert api.get("/approvals")["items"] == []
    assert [each["step"] for each in api.get("/approvals", params={"mine": "false"})["items"]] == ["ask"]
    [seen] = api.get("/approvals", **as_user(api, "bob"))["items"]
    assert (seen["run_id"], seen["objection"], seen["approvers"]) == (run_id, None, ["bob", "cid"])
    [gate] = api.get(f"/runs/{run_id}/gates")["items"]
    assert (gate["state"], gate["runs_next"][0]["args"], gate["input"]) == ("open", {"value": 1}, {"x": 1})
    path, form = f"/runs/{run_id}/gates/ask", {"limit": 5}
    yes = {"decision": "approve", "comment": "as agreed", "form": form, "attempt": gate["attempt"]}
    assert api.post(path, yes, 403)["code"] == "forbidden"
    assert api.post(path, yes, 403, **as_user(api, "dan"))["code"] == "forbidden"
    bob = as_user(api, "bob")
    assert "comment" in api.post(path, {**yes, "comment": " "}, 422, **bob)["detail"]
    assert "limit" in api.post(path, {**yes, "form": {}}, 422, **bob)["detail"]
    assert api.post(path, {**yes, "attempt": 2}, 409, **bob)["code"] == "refused"
    assert api.post(path, {**yes, "approved": True}, 422, **bob)["path"] == "approved"
    assert api.post(path, {**yes, "decision": "yes"}, 422, **bob)["path"] == "decision"
    api.post(f"/runs/{run_id}/gates/end", yes, 404, **bob)
    api.post(f"/runs/{run_id}/gates/none", yes, 404, **bob)
    assert api.post(path, yes, **bob) == {"decided": True, "approved": True, "votes": None, "quorum": None}
    assert api.post(path, yes, 409, **bob)["code"] == "refused"
    assert api.post(path, yes, 409, **as_user(api, "cid"))["code"] == "refused"
    assert ended(api, run_id)["output"] == 1
    [gate] = api.get(f"/runs/{run_id}/gates")["items"]
    assert (gate["state"], gate["votes"][0]["via"], gate["decided"]["by"]) == ("approved", "api", ["bob"])


def test_of_fifty_decisions_at_once_one_counts(api: Client) -> None:
    run_id = paused(
        api, {**GATE, "steps": {**GATE["steps"], "ask": {"approval": {}, "next": "end"}}}, {"x": 1}
    )

    def decide(number: int) -> int:
        headers = {"X-Wfcelery-User": f"user{number}"}
        body = {"decision": "approve"}
        return api.http.post(f"{API}/runs/{run_id}/gates/ask", json=body, headers=headers).status_code

    with ThreadPoolExecutor(50) as pool:
        assert sorted(pool.map(decide, range(50))) == [200] + [409] * 49
    votes = [each for each in api.get(f"/runs/{run_id}/events")["items"] if each["type"] == "vote_cast"]
    assert len(votes) == 1


def test_the_events_of_a_run_are_streamed_until_it_ends_and_none_is_missed(api: Client, address: str) -> None:
    run_id = paused(api, WAIT)
    before = api.get(f"/runs/{run_id}/events")["items"]
    ids: list[int] = []
    names: list[str] = []
    with (
        httpx.Client(timeout=30) as http,
        http.stream("GET", f"{address}{API}/runs/{run_id}/stream") as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("id: "):
                ids.append(int(line[4:]))
                if len(ids) == len(before):
                    api.post(f"/runs/{run_id}/signals/paid", {})
            if line.startswith("event: "):
                names.append(line[7:])
    events = api.get(f"/runs/{run_id}/events")["items"]
    assert ids[:-1] == [event["seq"] for event in events]
    assert names == [*(event["type"] for event in events), "ended"]
    headers = {"Last-Event-ID": str(ids[1])}
    rest = httpx.get(f"{address}{API}/runs/{run_id}/stream", headers=headers, timeout=30).text
    assert f"id: {ids[2]}\n" in rest
    assert f"id: {ids[1]}\n" not in rest
    everything = {"Last-Event-ID": str(ids[-1])}
    assert httpx.get(f"{address}{API}/runs/{run_id}/stream", headers=everything).status_code == 204
    assert api.http.head(f"{API}/runs/{run_id}/stream").status_code == 200
    api.get(f"/runs/{run_id}/stream", 422, headers={"Last-Event-ID": "-1"})
    api.get("/runs/01k9z3n5m8q0r2t4v6x8y0a1b2/stream", 404)


def test_the_system_says_how_it_is_and_the_visitor_who_they_are(api: Client) -> None:
    system = api.get("/system")
    assert system["executor"]["alive"]
    assert system["dead_letters"] == 0
    assert "secret-key" in {each["check"] for each in system["findings"]}
    me = api.get("/me")
    assert (me["id"], me["is_open"], me["csrf_token"]) == ("ann", True, None)
    assert "admin" in me["permissions"]
    assert api.get("/me", **as_user(api, "bob"))["id"] == "bob"
