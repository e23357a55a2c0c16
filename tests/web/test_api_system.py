"""The API in front of a system of real processes under a policy, and in front of one that does not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.web.api_place import API, Client, settings_for
from tests.web.server import TOKENS, House, Site, gate_flow
from tests.workflows.system import eventually

Clients = Callable[[Site, str], Client]


@pytest.fixture
def client() -> Iterator[Clients]:
    """Speak to a site as somebody."""
    made = []

    def make(site: Site, name: str) -> Client:
        made.append(Client(site.url, {"Authorization": f"Bearer {TOKENS[name]}"}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_run_is_started_decided_and_completed_over_the_api(
    house: House, site: Site, client: Clients
) -> None:
    stan, ann = client(site, "stan"), client(site, "ann")
    flow = gate_flow("over-the-api", approvers=["group:ops", "cy"])
    before = {each["id"] for each in stan.get("/runs", params={"limit": 200})["items"]}
    run_id = stan.post("/runs", {"flow": flow, "input": {"amount": 7, "to": "ann"}}, 201)["id"]
    assert run_id not in before
    eventually(lambda: stan.get(f"/runs/{run_id}")["status"] == "paused")
    assert run_id in {each["run_id"] for each in ann.get("/approvals", params={"limit": 200})["items"]}
    path, yes = f"/runs/{run_id}/gates/ask", {"decision": "approve", "comment": "fine"}
    for name in ("stan", "bob", "ann_agent", "robo"):
        assert client(site, name).post(path, yes, 403)["code"] == "forbidden", name
    client(site, "eve").post(path, yes, 403)
    client(site, "eve").get(f"/runs/{run_id}", 404)
    assert ann.post(path, yes)["approved"] is True
    eventually(lambda: stan.get(f"/runs/{run_id}")["status"] == "completed")
    assert stan.get(f"/runs/{run_id}")["output"] == {"amount": 7, "to": "ann"}
    system = stan.get("/system")
    assert system["executor"]["alive"]
    assert system["workers"]
    assert house.status(run_id) == "completed"


def test_a_tool_that_only_the_executor_knows_is_judged_by_it(house: House, client: Clients) -> None:
    site = house.site(tools=())
    stan = client(site, "stan")
    assert stan.post("/definitions", {"flow": gate_flow("known-there")}, 201)["version"] == 1
    [fault] = stan.post("/validate", {"flow": gate_flow("known-there")}, 422)["faults"]
    assert fault["code"] == "unknown-tool"
    unknown = gate_flow("known-nowhere")
    unknown["steps"]["pay"]["tool"] = "nothing"
    problem = stan.post("/definitions", {"flow": unknown}, 422)
    assert [each["code"] for each in problem["faults"]] == ["unknown-tool"]


def test_without_an_executor_a_start_says_that_it_may_happen_yet(house: House, valkey_url: str) -> None:
    # Its tables are those of a system that works, and on its broker nobody listens.
    away = house.site(broker_url=valkey_url.replace("unix://", "redis+socket://", 1), policy=None)
    body: Any = {"flow": gate_flow("nobody-begins-it")}
    with httpx.Client(base_url=away.url, timeout=30) as http:
        answer = http.post(f"{API}/runs", json=body, headers={"Idempotency-Key": "once"})
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (503, "not-confirmed")
        assert answer.headers["retry-after"] == "2"
        [run_id] = problem["ids"]
        again = http.post(f"{API}/runs", json=body, headers={"Idempotency-Key": "once"})
        assert again.json()["ids"] == [run_id]


def test_without_tables_every_reading_says_so_and_when_to_come_back(valkey_url: str, sqlite_url: str) -> None:
    site = Site(settings_for(valkey_url.replace("unix://", "redis+socket://", 1), sqlite_url))
    site.open()
    try:
        with httpx.Client(base_url=site.url, timeout=30) as http:
            for path in ("/runs", "/definitions", "/approvals"):
                answer = http.get(API + path)
                assert (answer.status_code, answer.json()["code"]) == (503, "not-reachable")
                assert answer.headers["retry-after"] == "2"
            system = http.get(f"{API}/system").json()
            assert (system["well"], system["executor"], system["dead_letters"]) == (False, None, None)
            assert http.get(f"{API}/me").status_code == 200
    finally:
        site.close()


def test_behind_a_prefix_addresses_have_it(house: House) -> None:
    site = house.site(base_url="http://flows.example/under/here")
    with httpx.Client(base_url=site.url, timeout=30) as http:
        for root in ("", "/under/here"):
            answer = http.get(f"{root}{API}/openapi.json")
            assert answer.json()["servers"] == [{"url": f"/under/here{API}"}]
            assert http.get(f"{root}{API}/none").headers["content-type"] == "application/problem+json"
