"""What an agent does from its first look to the end of a run, and what it cannot do, through both doors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from tests.mcp.agents import APPROVER, DOOR, TOKENS, Agency, Agent
from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.errors import Refused
from wfcelery.mcp.quota import check_live
from wfcelery.mcp.table import TOOLS

WAYS = ("stdio", "http")
NINE = {
    "workflow_define",
    "workflow_list_definitions",
    "workflow_start",
    "workflow_status",
    "workflow_list_runs",
    "workflow_approve",
    "workflow_deny",
    "workflow_cancel",
    "workflow_events",
}


def pay(name: str) -> dict[str, Any]:
    """A gate, then a tool."""
    return {
        "name": name,
        "description": "Pays a bill",
        "input": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]},
        "start": "ask",
        "steps": {
            "ask": {"approval": {"approvers": ["ann", "robo"]}, "next": "pay"},
            "pay": {"tool": "act", "args": {"value": "{{input.amount}}"}, "done": True},
        },
    }


def bare(name: str) -> dict[str, Any]:
    """A tool that requires an approval, and no gate."""
    return {"name": name, "start": "guarded", "steps": {"guarded": {"tool": "erase", "done": True}}}


async def waits_at(agent: Agent, run: str, gate: str) -> dict[str, Any]:
    """Look until a gate is open."""
    async with asyncio.timeout(30):
        while True:
            status = await agent.call("workflow_status", run_id=run)
            if [each["step"] for each in status["gates"]] == [gate]:
                return status
            await asyncio.sleep(0.05)


async def ended(agent: Agent, run: str) -> dict[str, Any]:
    """Look until a run has ended."""
    async with asyncio.timeout(30):
        while True:
            status = await agent.call("workflow_status", run_id=run)
            if status["status"] not in ("running", "paused"):
                return status
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_defines_starts_and_follows_a_run_that_a_person_approves(served: Agency, way: str) -> None:
    name = f"pay-{way}"

    async def play(agent: Agent) -> None:
        assert {tool.name for tool in (await agent.client.list_tools()).tools} == NINE
        made = await agent.call("workflow_define", flow=pay(name))
        assert (made["name"], made["version"], made["created"]) == (name, 1, True)
        assert (made["gates"], made["added_gates"]) == (["ask"], [])
        again = await agent.call("workflow_define", flow=json.dumps(pay(name)))
        assert (again["id"], again["created"]) == (made["id"], False)
        [listed] = (await agent.call("workflow_list_definitions", flow=name))["items"]
        assert listed["document"]["steps"]["pay"]["tool"] == "act"
        assert listed["input"]["required"] == ["amount"]

        started = await agent.call("workflow_start", flow=name, input={"amount": 12}, key="A7")
        run = started["run_id"]
        assert started["created"]
        again = await agent.call("workflow_start", flow=name, input={"amount": 12}, key="A7")
        assert again == {**started, "created": False}
        by_id = await agent.call("workflow_start", flow=name, input={"amount": 12}, run_id=run)
        assert (by_id["run_id"], by_id["created"]) == (run, False)

        status = await waits_at(agent, run, "ask")
        assert status["status"] == "paused"
        assert status["gates"][0]["approvers"] == ["ann", "robo"]
        assert status["gates"][0]["objection"] == "robo is an agent; only a person may decide a gate"
        assert [each["code"] for each in status["reasons"]] == ["approval"]

        decide = served.system.workflows.decide
        await asyncio.to_thread(decide, run, "ask", approve=True, comment="fine", by=APPROVER)
        status = await ended(agent, run)
        assert (status["status"], status["output"], status["gates"]) == ("completed", 12, [])
        assert {each["step"]: each["status"] for each in status["steps"]} == {"ask": "done", "pay": "done"}
        first = await agent.call("workflow_events", run_id=run, limit=2)
        rest = await agent.call("workflow_events", run_id=run, after=first["next"])
        types = [each["type"] for each in (*first["items"], *rest["items"])]
        assert (types[0], types[-1]) == ("run_started", "run_completed")
        assert {"gate_opened", "vote_cast", "step_done"} <= set(types)
        assert rest["next"] is None
        [found] = (await agent.call("workflow_list_runs", flow=name, key="A7", status=["completed"]))["items"]
        assert (found["run_id"], found["created_by"]) == (run, "robo")

    served.play(way, "robo", play)


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_gets_around_no_gate_and_each_attempt_is_recorded(served: Agency, way: str) -> None:
    system, name = served.system, f"erase-{way}"
    runs: list[str] = []

    async def play(agent: Agent) -> None:
        made = await agent.call("workflow_define", flow=bare(name))
        assert (made["gates"], made["added_gates"]) == (["approve-guarded"], ["approve-guarded"])
        [kept] = (await agent.call("workflow_list_definitions", flow=name))["items"]
        assert kept["document"]["start"] == "approve-guarded"
        for _ in range(2):
            run = (await agent.call("workflow_start", flow=name))["run_id"]
            runs.append(run)
            await waits_at(agent, run, "approve-guarded")
            for tool in ("workflow_approve", "workflow_deny"):
                said = await agent.refused(tool, run_id=run, step="approve-guarded", comment="by me")
                assert said["code"] == "forbidden"
                assert "robo may not decide in runs of" in said["message"]
            assert len(served.recorded("Decide", "robo", run)) == 2
            assert (await agent.call("workflow_cancel", run_id=run))["status"] == "cancelled"
        opened_by_the_clock = bare(name)
        opened_by_the_clock["start"] = "wait"
        gate = {"approval": {"timeout_s": 1, "on_timeout": "approve", "allow_self": True}, "next": "guarded"}
        opened_by_the_clock["steps"]["wait"] = gate
        said = await agent.refused("workflow_define", flow=opened_by_the_clock)
        assert said["code"] == "invalid-flow"
        assert {each["code"] for each in said["faults"]} == {"approval-required"}

    served.play(way, "robo", play)
    assert len(runs) == 2
    assert [line for line in system.ledger.lines() if line.run in runs] == []
    among = ", ".join(f"'{run}'" for run in runs)
    reached = f"SELECT * FROM workflow_steps WHERE tool = 'erase' AND workflow_id IN ({among})"  # noqa: S608
    assert [row for row in system.query(reached) if {"ready", "running", "done"} & set(map(str, row))] == []


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_allowed_is_refused_and_recorded(served: Agency, way: str) -> None:
    name = f"open-{way}"
    system = served.system
    system.workflows.define(pay(name), by="stan")
    run = system.workflows.start(name, {"amount": 1}, by="stan").id
    secret = system.workflows.start({**pay(f"secret-{way}")}, {"amount": 1}, by="stan").id

    async def play(agent: Agent) -> None:
        assert (await waits_at(agent, run, "ask"))["created_by"] == "stan"
        for tool, more in (
            ("workflow_cancel", {"run_id": run}),
            ("workflow_start", {"flow": name, "input": {"amount": 1}}),
            ("workflow_approve", {"run_id": run, "step": "ask"}),
            ("workflow_define", {"flow": pay(name)}),
        ):
            said = await agent.refused(tool, **more)
            assert said["code"] == "forbidden", said
            assert said["message"].startswith("reader may not")
        for tool in ("workflow_status", "workflow_events", "workflow_cancel"):
            assert (await agent.refused(tool, run_id=secret))["code"] == "not-found"
        assert (await agent.refused("workflow_start", flow=f"secret-{way}"))["code"] == "not-found"
        assert (await agent.refused("workflow_list_definitions", flow=f"secret-{way}"))["code"] == "not-found"
        names = [each["name"] for each in (await agent.call("workflow_list_definitions"))["items"]]
        assert names
        assert all(each.startswith("open") for each in names)
        flows = {each["flow"] for each in (await agent.call("workflow_list_runs"))["items"]}
        assert all(each.startswith("open") for each in flows)

    served.play(way, "reader", play)
    for kind in ("Cancel", "Start", "Decide", "Define"):
        told = served.recorded(kind, "reader")
        assert told, kind
        assert {str(row[1]) for row in told} == {"forbidden"}
    assert system.workflows.status(run) == "paused"


@pytest.mark.parametrize("way", WAYS)
def test_a_malformed_flow_comes_back_with_every_fault(served: Agency, way: str) -> None:
    text = (
        "name: bad\nstart: nowhere\nsteps:\n  a: {tool: echoo, next: b}\n"
        "  b: {tool: act, args: {valeu: 1}, if: x, done: true}\n  c: {done: yes please}\n"
    )

    async def play(agent: Agent) -> None:
        said = await agent.refused("workflow_define", flow=text)
        assert said["code"] == "invalid-flow"
        assert len(said["faults"]) >= 3
        assert all(each["line"] and each["path"] and each["message"] for each in said["faults"])
        assert {"unknown-field", "bad-type", "unknown-step"} <= {each["code"] for each in said["faults"]}
        only_tools = {"name": "bad", "start": "a", "steps": {"a": {"tool": "echoo", "done": True}}}
        [fault] = (await agent.refused("workflow_define", flow=only_tools))["faults"]
        assert (fault["code"], fault["path"], fault["hint"]) == (
            "unknown-tool",
            "steps.a.tool",
            "did you mean `echo`?",
        )
        wrong = await agent.refused("workflow_start", flw="x", tags="one", run_id="short", limit=2)
        assert wrong["code"] == "invalid-input"
        assert {each["path"] for each in wrong["faults"]} == {"flow", "flw", "tags", "run_id", "limit"}
        assert "did you mean flow?" in {each["hint"] for each in wrong["faults"]}
        assert (await agent.refused("workflow_skip_gate"))["code"] == "not-found"
        assert (await agent.refused("workflow_start", flow="no-such"))["code"] == "not-found"
        assert (await agent.refused("workflow_list_runs", cursor="made-up"))["path"] == "cursor"

    served.play(way, "robo", play)


def test_a_person_decides_by_a_token_of_their_own_and_not_by_one_for_an_agent(served: Agency) -> None:
    run = served.system.workflows.start(pay("open-token"), {"amount": 3}, by="robo").id
    served.system.workflows.start(pay("open-own"), {"amount": 3}, by="stan", key="own")

    async def as_agent(agent: Agent) -> None:
        said = await agent.refused("workflow_approve", run_id=run, step="ask")
        assert said["code"] == "forbidden"

    async def as_starter(agent: Agent) -> None:
        [own] = (await agent.call("workflow_list_runs", flow="open-own"))["items"]
        assert (await agent.refused("workflow_approve", run_id=own["run_id"], step="ask"))[
            "code"
        ] == "forbidden"

    async def as_person(agent: Agent) -> None:
        status = await waits_at(agent, run, "ask")
        assert status["gates"][0]["objection"] is None
        said = await agent.call("workflow_approve", run_id=run, step="ask", comment="right", attempt=1)
        assert (said["decided"], said["approved"]) == (True, True)
        assert (await ended(agent, run))["output"] == 3
        assert (await agent.refused("workflow_deny", run_id=run, step="pay"))["code"] == "not-found"

    served.by_http("stan_agent", as_agent)
    served.by_http("stan", as_starter)
    served.by_http("ann", as_person, mode="legacy")
    [vote] = list(served.system.events(run, "vote_cast"))
    assert (vote["actor"], vote["data"]) == ("ann", {"approve": True, "comment": "right", "via": "mcp"})


def test_without_a_policy_whoever_calls_is_an_agent(served: Agency) -> None:
    served.system.workflows.define(pay("open-free"), by="robo")

    async def play(agent: Agent) -> str:
        run: str = (await agent.call("workflow_start", flow="open-free", input={"amount": 1}))["run_id"]
        status = await waits_at(agent, run, "ask")
        assert status["created_by"] == "stan"
        assert status["gates"][0]["objection"] == "stan is an agent; only a person may decide a gate"
        assert (await agent.refused("workflow_approve", run_id=run, step="ask"))["code"] == "forbidden"
        return run

    run = served.by_stdio(None, play)
    [(_, code, _)] = served.recorded("Decide", "stan", run)
    assert code == "forbidden"


def test_resources_tell_what_it_takes_to_write_a_flow(served: Agency) -> None:
    async def play(agent: Agent) -> None:
        listed = (await agent.client.list_resources()).resources
        assert {each.uri for each in listed} == {"wfcelery://guide", "wfcelery://schema", "wfcelery://tools"}
        assert json.loads(await agent.read("wfcelery://schema"))["$schema"]
        assert "approval" in await agent.read("wfcelery://guide")
        tools = {each["name"]: each for each in json.loads(await agent.read("wfcelery://tools"))["tools"]}
        assert tools["erase"]["requires_approval"]
        assert tools["pay"]["permission"] == "billing.pay"
        seconds = next(each for each in tools["act"]["arguments"] if each["name"] == "seconds")
        assert seconds == {"name": "seconds", "required": False, "schema": {"type": "number"}}
        assert "ctx" not in {each["name"] for each in tools["act"]["arguments"]}

    served.by_http("robo", play)


def test_large_values_are_cut_and_lists_go_by_cursor(served: Agency) -> None:
    flow = {"name": "open-large", "start": "a", "steps": {"a": {"tool": "act", "done": True}}}
    flow["steps"] = {"a": {"tool": "act", "args": {"value": "{{input.text}}"}, "done": True}}
    workflows = served.system.workflows
    begun = [{"flow": flow, "input": {"text": "x" * 50_000}} for _ in range(3)]
    runs = {run.id for run in workflows.start_many(begun, by="stan")}
    served.system.finish(runs)

    async def play(agent: Agent) -> None:
        status = await agent.call("workflow_status", run_id=min(runs))
        assert status["output"] == {"cut": True, "bytes": 50_002, "begins": '"' + "x" * 999}
        assert status["steps"][0]["args"]["cut"]
        assert len(json.dumps(status)) < 20_000
        seen: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = await agent.call("workflow_list_runs", flow="open-large", limit=1, **more)
            seen += [each["run_id"] for each in page["items"]]
            if page["next"] is None:
                break
            more = {"cursor": page["next"]}
        assert (len(seen), set(seen)) == (3, runs)
        said = await agent.refused("workflow_status", run_id=min(runs), cursor=more["cursor"])
        assert said["path"] == "cursor"

    served.by_http("robo", play)


def test_a_secret_stays_a_reference(served: Agency) -> None:
    held: Json = {"tool": "hold", "args": {"value": "{{secret.DOOR}}"}, "done": True}
    system = served.system
    system.ledger.gate.touch()
    try:
        run = system.start({"name": "open-secret", "start": "a", "steps": {"a": held}}, by="stan")
        system.until(lambda: any(line.run == run for line in system.ledger.lines()), "the tool to begin")

        async def play(agent: Agent) -> None:
            status = await agent.call("workflow_status", run_id=run)
            assert status["steps"][0]["args"] == {"value": "{{secret.DOOR}}"}
            told = [status, await agent.call("workflow_events", run_id=run)]
            told.append(await agent.call("workflow_list_definitions", flow="open-secret"))
            assert DOOR not in json.dumps(told)
            for _ in range(2):
                gone = await agent.call("workflow_cancel", run_id=run, reason="enough")
                assert gone["status"] == "cancelled"

        served.by_http("robo", play)
    finally:
        system.ledger.gate.unlink()


def test_who_has_too_many_live_runs_begins_no_more(served: Agency) -> None:
    workflows = served.system.workflows
    for amount in (1, 2):
        workflows.start(pay("open-many"), {"amount": amount}, by="hoarder")
    with workflows.links.reading() as conn:
        check_live(conn, Principal("hoarder"), most=3)
        with pytest.raises(Refused, match="hoarder has 2 runs that have not ended") as refused:
            check_live(conn, Principal("hoarder"), most=2)
    assert refused.value.code == "too-many"


def test_the_door_opens_by_a_token_alone(served: Agency) -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    kinds = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with httpx2.Client(base_url=served.url, headers=kinds) as client:
        for headers in ({}, {"Authorization": "Bearer wfc_nobody"}, {"X-Wfcelery-User": "stan"}):
            answer = client.post("/mcp", json=ask, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        page = client.get("/login")
        csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
        signed = client.post(
            "/login",
            data={"csrf": csrf, "token": TOKENS["stan"]},
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
        assert signed.status_code == 303
        assert client.get("/runs").status_code == 200
        assert client.post("/mcp", json=ask).status_code == 401
        token = {"Authorization": f"Bearer {TOKENS['robo']}"}
        listed = client.post("/mcp", json=ask, headers=token)
        assert len(listed.json()["result"]["tools"]) == len(TOOLS)
        assert listed.headers["x-content-type-options"] == "nosniff"
        for method in ("GET", "DELETE"):
            answer = client.request(method, "/mcp", headers=token)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert client.post("/mcp", json=ask, headers={**token, "Host": "evil.example"}).status_code == 421
