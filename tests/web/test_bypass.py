"""The ways in which gates of other systems were walked around, each tried here through real HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.web.gated import bare, content, gated_house, gated_site, idle, made_ready, order, policy_text
from tests.web.moves import Player
from tests.web.server import TOKENS, House, Page, Site, form_of, path_of
from wfcelery.executor.answers import new_run_id

API = "/api/v1"
PEOPLE = ("stan", "mallory", "ann", "dan", "boss", "ivy")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with gated_house(tmp_path_factory.mktemp("bypass")) as made:
        yield made


@pytest.fixture(scope="module")
def site(house: House) -> Site:
    return gated_site(house)


@pytest.fixture(scope="module")
def people(site: Site) -> Iterator[dict[str, Player]]:
    made = {name: Player(site, name) for name in PEOPLE}
    yield made
    for player in made.values():
        player.close()


def start(who: Player, flow: Any, **more: Any) -> str:  # noqa: ANN401 - JSON
    """Start a run over the API."""
    answer = who.ask("/runs", flow=flow, **more)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def waits_at(house: House, run: str, step: str = "review", attempt: int = 1) -> None:
    """Wait until the run waits at this gate, and see that nothing behind it was reached."""

    def is_open() -> bool:
        found = house.steps(run).get(step)
        return found is not None and (found["status"], found["attempt"]) == ("pending", attempt)

    house.system.until(is_open, f"{run} to wait at {step}")
    idle(house.system)
    assert made_ready(house.system, approved(house)) == []


def approved(house: House) -> list[str]:
    """The runs that somebody has approved who may: none but these may reach the tool."""
    rows = house.system.query("SELECT workflow_id FROM votes WHERE approve AND voter IN ('ann', 'dan')")
    return [str(row[0]) for row in rows]


def decide(who: Player, run: str, step: str = "review", **more: Any) -> httpx.Response:  # noqa: ANN401 - JSON
    return who.ask(f"/runs/{run}/gates/{step}", decision="approve", **more)


def by_link(who: Player, run: str, approver: str = "ann", attempt: int = 1) -> httpx.Response:
    """Post behind an approver's link, also where its page shows no form any more."""
    where: dict[str, Any] = {"step": "review", "attempt": attempt}
    return who.console.post(path_of(run, approver, **where), data=form_of(run, approver, **where))


def every_decision(who: Player, run: str, attempt: int = 1) -> list[int]:
    """Approve by every surface of HTTP; give the statuses."""
    console = who.post(f"/runs/{run}/gates/review/decide", decision="approve", attempt=str(attempt))
    link = by_link(who, run, who.name, attempt)
    return [decide(who, run, attempt=attempt).status_code, console.status_code, link.status_code]


# -- CVE-2026-104632: a run was cancelled while it waited, and what was rerun waited for nothing


def test_a_run_that_was_cancelled_at_its_gate_and_is_run_again_waits_at_its_gate_again(
    house: House, people: dict[str, Player]
) -> None:
    stan, flow = people["stan"], order("rerun")
    first = start(stan, flow, key="rerun-1")
    waits_at(house, first)
    assert stan.ask(f"/runs/{first}/cancel").status_code == 200
    assert stan.ask(f"/runs/{first}/retry").status_code == 409
    assert stan.post(f"/runs/{first}/retry").status_code == 409
    again = start(stan, "rerun", key="rerun-1")
    by_form = stan.post("/flows/rerun", **{"f.": "{}", "key": "rerun-2"})
    assert by_form.status_code == 303
    for run in (again, by_form.headers["location"].rpartition("/")[2]):
        waits_at(house, run)
    assert every_decision(people["ann"], first) == [409, 409, 409]
    waits_at(house, again)


def test_a_run_that_failed_beside_its_gate_and_is_retried_waits_at_its_gate_again(
    house: House, people: dict[str, Player]
) -> None:
    stan, ann = people["stan"], people["ann"]
    run = start(stan, order("retried", work={"tool": "stumble"}, quorum=2))
    waits_at(house, run)
    assert decide(ann, run).json() == {"decided": False, "approved": None, "votes": 1, "quorum": 2}
    assert stan.ask(f"/runs/{run}/signals/go").status_code == 200
    house.system.until(lambda: house.status(run) == "failed", "the run to fail")
    assert stan.ask(f"/runs/{run}/retry").status_code == 200
    waits_at(house, run, attempt=2)
    # The vote was for the gate that is gone: it takes two again.
    assert decide(people["dan"], run).json()["votes"] == 1
    idle(house.system)
    assert house.steps(run)["review"]["status"] == "pending"
    assert "guarded" not in house.steps(run)


# -- CVE-2026-104626: what was cancelled was revived by an approval that came later


def test_an_approval_of_what_was_cancelled_is_a_conflict_and_revives_nothing(
    house: House, people: dict[str, Player]
) -> None:
    run = start(people["stan"], order("revived"))
    waits_at(house, run)
    assert people["stan"].ask(f"/runs/{run}/cancel").status_code == 200
    before = house.system.workflows.get(run)
    assert every_decision(people["ann"], run) == [409, 409, 409]
    idle(house.system)
    assert house.system.workflows.get(run) == before
    assert (before["status"], house.system.events(run, "vote_cast")) == ("cancelled", [])
    assert "guarded" not in house.steps(run)


# -- CVE-2026-66877: a conflict between runs sent out what was blocked


def test_a_start_that_meets_a_live_run_with_its_key_sends_nothing_out(
    house: House, people: dict[str, Player]
) -> None:
    stan, flow = people["stan"], order("conflict")
    run = start(stan, flow, key="one")
    waits_at(house, run)
    before = house.system.workflows.get(run)
    found = stan.ask("/runs", flow="conflict", key="one")
    assert (found.status_code, found.json()) == (200, {"id": run, "created": False})
    refused = stan.ask("/runs", flow="conflict", key="one", on_conflict="error")
    assert refused.status_code == 409
    same = stan.ask("/runs", flow=flow, id=run)
    assert (same.status_code, same.json()["created"]) == (200, False)
    assert stan.ask("/runs", flow=bare("conflict"), id=run).status_code == 409
    idle(house.system)
    assert house.system.workflows.get(run) == before
    assert stan.ask(f"/runs/{run}/cancel").status_code == 200
    following = start(stan, flow, key="one")
    waits_at(house, following)
    assert house.status(run) == "cancelled"


def test_a_join_that_is_won_beside_a_gate_lets_nothing_through_it(
    house: House, people: dict[str, Player]
) -> None:
    flow = order("race")
    flow["steps"]["end"]["join_mode"] = "any"
    run = start(people["stan"], flow)
    waits_at(house, run)
    assert people["stan"].ask(f"/runs/{run}/signals/go").status_code == 200
    house.system.finish([run])
    assert (house.status(run), house.steps(run)["review"]["status"]) == ("completed", "cancelled")
    assert every_decision(people["ann"], run) == [409, 409, 409]
    idle(house.system)
    assert made_ready(house.system, approved(house)) == []


# -- CVE-2026-94205: it was asked who had triggered it, and not who had written it


def test_neither_who_started_a_run_nor_who_wrote_its_flow_decides_its_gate(
    house: House, people: dict[str, Player]
) -> None:
    stan, mallory = people["stan"], people["mallory"]
    flow = order("both", approvers=["stan", "mallory", "ann"])
    assert stan.ask("/definitions", flow=flow).status_code == 201
    run = start(mallory, "both")
    waits_at(house, run)
    assert every_decision(stan, run) == [403, 403, 403]
    assert every_decision(mallory, run) == [403, 403, 403]
    waits_at(house, run)
    assert decide(people["ann"], run).status_code == 200
    house.system.until(lambda: "guarded" in house.steps(run), "the step behind the gate")


def test_an_author_without_the_right_gains_nothing_when_an_admin_starts_the_flow(
    house: House, people: dict[str, Player]
) -> None:
    boss, ivy, mallory = people["boss"], people["ivy"], people["mallory"]
    flow = {"name": "paid", "start": "only", "steps": {"only": {"tool": "pay", "done": True}}}
    assert mallory.ask("/definitions", flow={**flow, "name": "trap"}).status_code == 403
    assert ivy.ask("/definitions", flow=flow).status_code == 201
    assert mallory.ask("/runs", flow="paid").status_code == 403
    good = start(boss, "paid")
    house.system.finish([good])
    assert house.status(good) == "completed"
    house.policy.write_text(policy_text().replace(', "billing.pay"', ""))
    numbers = iter(range(1_000))

    def demoted() -> bool:
        said = ivy.ask("/definitions", flow={**flow, "name": f"probe-{next(numbers)}"})
        return said.status_code == 403

    try:
        house.system.until(demoted, "the policy to be read again")
        bad = start(boss, "paid")
        house.system.finish([bad])
    finally:
        house.policy.write_text(policy_text())
    assert house.status(bad) == "failed"
    error = house.steps(bad)["only"]["error"]
    assert "ivy may not use the tool pay (permission billing.pay), and defined paid" in str(error)
    assert {line.run for line in house.system.ledger.lines() if line.step == "only"} == {good}


# -- CVE-2026-71184: what came without its context was not held back


def test_who_comes_without_a_name_starts_nothing_and_decides_nothing(
    house: House, site: Site, people: dict[str, Player]
) -> None:
    run = start(people["stan"], order("nameless"))
    waits_at(house, run)
    before = content(house.system)
    wrong: list[dict[str, str]] = [
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wfc_of-nobody"},
        {"authorization": f"Basic {TOKENS['stan']}"},
        {"x-wfcelery-user": "stan"},
        {"cookie": "wfcelery_session=stan"},
    ]
    for headers in wrong:
        with httpx.Client(base_url=site.url, headers=headers, timeout=30.0) as client:
            fresh = new_run_id(time.time())
            started = client.post(f"{API}/runs", json={"flow": "nameless", "id": fresh})
            retried = client.post(f"{API}/runs/{run}/retry", json={})
            decided = client.post(f"{API}/runs/{run}/gates/review", json={"decision": "approve"})
            assert [each.status_code for each in (started, retried, decided)] == [401, 401, 401], headers
            form = {**Page(client.get("/login").text).hidden, "decision": "approve"}
            by_form = client.post("/flows/nameless", data={**form, "f.": "{}"})
            at_gate = client.post(f"/runs/{run}/gates/review/decide", data=form)
            assert {by_form.status_code, at_gate.status_code} <= {401, 403}, headers
    idle(house.system)
    assert content(house.system) == before


def test_who_says_to_be_somebody_else_is_still_themselves(house: House, people: dict[str, Player]) -> None:
    run = start(people["stan"], order("borrowed"))
    waits_at(house, run)
    headers = {"x-wfcelery-user": "ann", "x-forwarded-user": "ann", "remote-user": "ann"}
    sent = people["stan"].api.post(f"/runs/{run}/gates/review", json={"decision": "approve"}, headers=headers)
    assert sent.status_code == 403
    also = people["stan"].ask(f"/runs/{run}/gates/review", decision="approve", by="ann")
    assert also.status_code == 422
    waits_at(house, run)


# -- CVE-2026-66874: a check that was skipped counted as passed

GATE: dict[str, Any] = {"approval": {"approvers": ["ann"]}, "next": "guarded"}
LAST: dict[str, Any] = {"tool": "erase", "done": True}
AROUND: dict[str, dict[str, Any]] = {
    "a branch around the gate": {
        "first": {"branch": [{"if": "input.small", "then": "guarded"}, {"else": "review"}]},
        "review": GATE,
        "guarded": LAST,
    },
    "a join with a gate that was not taken": {
        "first": {"branch": [{"if": "input.small", "then": "quick"}, {"else": "review"}]},
        "quick": {"tool": "act", "join": "guarded"},
        "review": {**GATE, "join": "guarded", "next": None},
        "guarded": LAST,
    },
    "a join for which any of two is enough": {
        "first": {"parallel": ["quick", "review"]},
        "quick": {"tool": "act", "join": "guarded"},
        "review": {**GATE, "join": "guarded", "next": None},
        "guarded": {**LAST, "join_mode": "any"},
    },
    "a gate that stands one step too early": {
        "first": {"branch": [{"if": "input.small", "then": "quick"}, {"else": "review"}]},
        "review": {**GATE, "next": "quick"},
        "quick": {"tool": "act", "next": "guarded"},
        "guarded": LAST,
    },
    "the way of an error": {
        "first": {"tool": "stumble", "retry": {"max_attempts": 1}, "on_error": "guarded", "next": "review"},
        "review": {**GATE, "next": "last"},
        "guarded": LAST,
        "last": {"done": True},
    },
    "the way of a time that is over": {
        "first": {"wait": {"signal": "go", "timeout_s": 0.05, "on_timeout": "guarded"}, "next": "last"},
        "guarded": LAST,
        "last": {"done": True},
    },
    "one call for each item": {
        "first": {"tool": "act", "next": "guarded"},
        "guarded": {"foreach": {"items": [1, 2], "tool": "erase"}, "done": True},
    },
    "no gate at all": {"first": {"tool": "act", "next": "guarded"}, "guarded": LAST},
}


@pytest.mark.parametrize("way", AROUND)
def test_a_gate_that_is_skipped_satisfies_no_step_that_requires_an_approval(
    house: House, people: dict[str, Player], way: str
) -> None:
    steps = {
        name: {part: value for part, value in step.items() if value is not None}
        for name, step in AROUND[way].items()
    }
    flow = {"name": "skipping", "start": "first", "steps": steps}
    run = start(people["stan"], flow, input={"small": True})
    waits_at(house, run, "approve-guarded")
    assert house.status(run) == "paused"
    assert decide(people["stan"], run, "approve-guarded").status_code == 403


def test_a_gate_that_was_denied_satisfies_no_step_that_requires_an_approval(
    house: House, people: dict[str, Player]
) -> None:
    gate = {"approval": {"approvers": ["ann"], "on_deny": "guarded"}, "next": "last"}
    steps = {"review": gate, "guarded": LAST, "last": {"done": True}}
    run = start(people["stan"], {"name": "denied", "start": "review", "steps": steps})
    waits_at(house, run)
    assert people["ann"].ask(f"/runs/{run}/gates/review", decision="deny").status_code == 200
    waits_at(house, run, "approve-guarded")


@pytest.mark.parametrize("gate", [{"allow_self": True}, {"timeout_s": 1, "on_timeout": "approve"}])
def test_a_gate_that_opens_without_others_is_no_gate_for_what_requires_an_approval(
    people: dict[str, Player], gate: dict[str, Any]
) -> None:
    steps = {"review": {"approval": gate, "next": "guarded"}, "guarded": LAST}
    said = people["stan"].ask("/runs", flow={"name": "alone", "start": "review", "steps": steps})
    assert said.status_code == 422
    assert [fault["code"] for fault in said.json()["faults"]] == ["approval-required"]


# -- GO-2026-6080: an approval was kept although its subject had changed


def test_an_approval_counts_for_no_other_version_of_the_flow(house: House, people: dict[str, Player]) -> None:
    stan, ann = people["stan"], people["ann"]
    old = start(stan, order("versions"))
    waits_at(house, old)
    page = Page(ann.console.get(f"/runs/{old}/gates/review").text)
    assert stan.ask("/definitions", flow=order("versions", quorum=2)).json()["version"] == 2
    new = start(stan, "versions")
    waits_at(house, new)
    # The run that waited keeps the version which its approvers were shown; the new one has a gate of its own.
    assert decide(ann, old).json()["decided"] is True
    house.system.until(lambda: "guarded" in house.steps(old), "the step behind the gate")
    waits_at(house, new)
    assert "guarded" not in house.steps(new)
    stale = ann.post(f"/runs/{new}/gates/review/decide", decision="approve", action=page.hidden["action"])
    assert stale.status_code == 409
    assert house.system.events(new, "vote_cast") == []
    assert by_link(ann, old).status_code == 409


def test_an_approval_counts_for_no_other_attempt(house: House, people: dict[str, Player]) -> None:
    stan, ann = people["stan"], people["ann"]
    run = start(stan, order("attempts", work={"tool": "stumble"}))
    waits_at(house, run)
    assert by_link(ann, run, attempt=2).status_code == 404
    assert stan.ask(f"/runs/{run}/signals/go").status_code == 200
    house.system.until(lambda: house.status(run) == "failed", "the run to fail")
    assert every_decision(ann, run) == [409, 409, 409]
    assert stan.ask(f"/runs/{run}/retry").status_code == 200
    waits_at(house, run, attempt=2)
    assert every_decision(ann, run) == [409, 409, 409]
    waits_at(house, run, attempt=2)
    assert house.system.events(run, "vote_cast") == []
    assert by_link(ann, run, attempt=2).status_code == 200
    house.system.until(lambda: "guarded" in house.steps(run), "the step behind the gate")
