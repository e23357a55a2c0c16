"""Gates in the console: the same page as behind a link, for who has signed in."""

from __future__ import annotations

import httpx
import pytest

from tests.web.server import STARTER, TOKENS, House, Page, Site, gate_flow
from wfcelery.core.limits import DEFAULT
from wfcelery.core.messages import Principal
from wfcelery.executor.definitions import Definitions
from wfcelery.insight import gates
from wfcelery.insight.gates import GateView, objection_of
from wfcelery.store.database import open_database


def page_of(run: str, step: str = "ask") -> str:
    return f"/runs/{run}/gates/{step}"


def decide(client: httpx.Client, run: str, decision: str = "approve", **fields: str) -> httpx.Response:
    found = Page(client.get(page_of(run)).text)
    [form] = [told for tag, told in found.attributes if tag == "form" and told["action"].endswith("/decide")]
    return client.post(form["action"], data={**found.hidden, "decision": decision, **fields})


def words(response: httpx.Response) -> str:
    return Page(response.text).words


def test_a_gate_is_decided_in_the_console_and_the_record_says_so(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser("ann") as client:
        page = client.get(page_of(run))
        assert page.status_code == 200
        assert "Is the bill right?" in words(page)
        done = decide(client, run, comment="yes")
    assert done.status_code == 200
    assert "You have approved this. The run goes on." in words(done)
    house.system.finish([run])
    [vote] = house.system.events(run, "vote_cast")
    assert (vote["actor"], vote["data"]) == ("ann", {"approve": True, "comment": "yes", "via": "console"})


def test_without_the_form_s_own_token_nothing_is_decided(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser("ann") as client:
        for csrf in ({}, {"csrf": "x"}):
            sent = client.post(f"{page_of(run)}/decide", data={"decision": "approve", "attempt": "1", **csrf})
            assert sent.status_code == 403
    assert house.status(run) == "paused"


def test_who_has_not_signed_in_is_led_to_the_sign_in(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        page = client.get(page_of(run))
        sent = client.post(f"{page_of(run)}/decide", data={"decision": "approve"})
    assert (page.status_code, sent.status_code) == (303, 401)


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("stan", "stan started this run and may not decide its gate ask"),
        ("bob", "bob is not an approver of ask; it waits for ann, stan"),
    ],
)
def test_who_may_not_decide_is_told_why_and_refused(house: House, site: Site, who: str, reason: str) -> None:
    run = house.ask(approvers=["ann", "stan"])
    with site.browser(who) as client:
        page = client.get(page_of(run))
        assert reason in words(page)
        assert "decision" not in Page(page.text).names
        form = {**Page(page.text).hidden, "decision": "approve", "attempt": "1"}
        sent = client.post(f"{page_of(run)}/decide", data=form)
    assert sent.status_code == 403
    assert reason in words(sent)


def test_an_agent_decides_nothing_whatever_its_rights(house: House, site: Site) -> None:
    run = house.ask(approvers=["robo", "ann"])
    for name in ("robo", "ann_agent"):
        with site.browser(authorization=f"Bearer {TOKENS[name]}") as client:
            sent = client.post(f"{page_of(run)}/decide", data={"decision": "approve", "attempt": "1"})
        assert sent.status_code == 403
    assert house.status(run) == "paused"


def test_a_gate_that_may_not_be_read_is_not_there(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser("eve") as client:
        hidden = client.get(page_of(run))
        missing = client.get(page_of("0" * 26))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    public = house.start(gate_flow("public-bill", approvers=["ann"]))
    with site.browser("eve") as client:
        assert client.get(page_of(public)).status_code == 200
        sent = client.post(f"{page_of(public)}/decide", data={"decision": "approve"})
    assert sent.status_code == 403


@pytest.mark.parametrize("path", ["runs/x/gates/ask", "runs/{run}/gates/pay", "runs/{run}/gates/none"])
def test_what_is_no_gate_is_not_found(house: House, site: Site, path: str) -> None:
    run = house.ask()
    with site.browser("ann") as client:
        assert client.get("/" + path.format(run=run)).status_code == 404


def test_a_gate_that_was_decided_meanwhile_is_a_conflict(house: House, site: Site) -> None:
    run = house.ask(approvers=["ann", "bob"])
    with site.browser("ann") as client:
        form = Page(client.get(page_of(run)).text).hidden
        house.system.workflows.decide(run, "ask", approve=False, by=Principal("bob"))
        sent = client.post(f"{page_of(run)}/decide", data={**form, "decision": "approve"})
    assert sent.status_code == 409
    assert "Denied By bob" in words(sent)


# -- the reading behind it


def read(house: House, run: str, step: str = "ask") -> GateView:
    database = open_database(house.system.database_url)
    try:
        with database.reading() as conn:
            found = gates.gate(conn, Definitions(None, DEFAULT), run, step)
    finally:
        database.close()
    assert found is not None
    return found


def test_a_gate_as_json_tells_everything_but_no_link(house: House) -> None:
    run = house.ask(timeout_s=3_600, on_timeout="escalate", escalate_to=["bob"])
    told = read(house, run).as_json()
    assert {
        name: told[name] for name in ("run_id", "flow", "step", "attempt", "state", "created_by", "author")
    } == {
        "run_id": run,
        "flow": "pay",
        "step": "ask",
        "attempt": 1,
        "state": "open",
        "created_by": STARTER,
        "author": STARTER,
    }
    assert told["runs_next"] == [
        {
            "step": "pay",
            "kind": "tool",
            "what": "act",
            "description": "Sends the money",
            "args": {"value": {"amount": 12, "to": "the baker"}},
            "frozen": True,
            "when": None,
        }
    ]
    again = "after another 1 h it is denied: the run is cancelled, and stan is told"
    assert told["on_timeout"] == f"bob is asked, too; {again}"
    assert told["deadline"] is not None


def test_the_hash_of_an_action_names_exactly_what_runs(house: House) -> None:
    flow = gate_flow("hashed", approvers=["ann"])
    given = {"amount": 1, "to": "x"}
    first, same = read(house, house.start(flow, given)), read(house, house.start(flow, given))
    other = read(house, house.start(flow, {"amount": 2, "to": "x"}))
    renamed = read(house, house.start({**flow, "description": "changed"}, given))
    assert first.digest == same.digest
    assert len({first.digest, other.digest, renamed.digest}) == 3


def test_what_depends_on_the_decision_is_not_shown_as_certain(house: House) -> None:
    flow = gate_flow("open-ended", approvers=["ann"])
    flow["steps"]["pay"]["args"] = {"value": "{{result.comment}}"}
    [coming] = read(house, house.start(flow)).coming
    assert (coming.is_frozen, coming.args) == (False, None)


def test_who_cannot_decide_now_is_told_why(house: House) -> None:
    run = house.ask(approvers=["ann", "group:ops"])
    view = read(house, run)
    assert objection_of(view, Principal("ann"), True) is None
    assert objection_of(view, Principal("zed", groups=("ops",)), True) is None
    lacking = "ann may not decide gates of pay: the permission `decide` is missing"
    assert objection_of(view, Principal("ann"), False) == lacking
    waits = "bob is not an approver of ask; it waits for ann, group:ops"
    assert objection_of(view, Principal("bob"), True) == waits
    house.system.workflows.cancel(run, by=STARTER)
    assert objection_of(read(house, run), Principal("ann"), True) == "ask was cancelled"


def test_gates_that_wait_are_read_page_by_page_on_postgresql(postgres_house: House) -> None:
    runs = [postgres_house.start(gate_flow(f"page-{number}", approvers=["ann"])) for number in range(3)]
    database = open_database(postgres_house.system.database_url)
    definitions = Definitions(None, DEFAULT)
    seen: list[str] = []
    before = None
    try:
        with database.reading() as conn:
            while found := gates.open_gates(conn, definitions, 1, before):
                seen.append(found[0].run.id)
                before = found[0].cursor
    finally:
        database.close()
    assert [run for run in seen if run in runs] == runs[::-1]
    assert len(seen) == len(set(seen))
