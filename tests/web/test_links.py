"""Approval links through real HTTP: who may do what with one, and what comes of it."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.web.server import STARTER, TOKENS, House, Page, Site, form_of, gate_flow, path_of, post


@pytest.fixture(params=["house", "postgres_house"])
def any_house(request: pytest.FixtureRequest) -> House:
    """Both databases, one after the other."""
    found: House = request.getfixturevalue(request.param)
    return found


def words(response: httpx.Response) -> str:
    return Page(response.text).words


def test_a_link_shows_what_is_asked_and_a_post_decides(any_house: House) -> None:
    site = any_house.site()
    run = any_house.ask()
    with site.browser() as client:
        page = client.get(path_of(run))
        assert page.status_code == 200
        told = (
            "ask of pay",
            "Is the bill right?",
            "Pays a bill",
            "Asked by stan",
            "calls act",
            "Sends the money",
        )
        for part in (*told, "Begin, take so long, end.", "the baker", "12", "with exactly these arguments"):
            assert part in words(page)
        assert "the run is cancelled, and stan is told" in words(page)
        done = post(client, path_of(run), comment="fine with me")
        assert done.status_code == 200
        assert "You have approved this. The run goes on." in words(done)
        assert "Approved By ann" in words(done)
        assert "fine with me" in words(done)
        again = client.get(path_of(run))
    assert (again.status_code, "decision" in Page(again.text).names) == (200, False)
    any_house.system.finish([run])
    assert any_house.status(run) == "completed"
    [vote] = any_house.system.events(run, "vote_cast")
    assert vote["actor"] == "ann"
    assert vote["data"] == {"approve": True, "comment": "fine with me", "via": "link"}


def test_what_was_shown_is_what_runs(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        post(client, path_of(run))
    house.system.finish([run])
    assert house.steps(run)["pay"]["args"] == {"value": {"amount": 12, "to": "the baker"}}


def test_a_denial_cancels_the_run_and_says_so(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        done = post(client, path_of(run), "deny", comment="too much")
    assert done.status_code == 200
    assert "You have denied this: the run is cancelled, and stan is told." in words(done)
    assert "Denied By ann" in words(done)
    assert house.status(run) == "cancelled"


def test_a_denial_takes_the_way_that_the_flow_has_for_it(house: House, site: Site) -> None:
    flow = gate_flow(approvers=["ann"], on_deny="refuse")
    flow["steps"]["refuse"] = {"tool": "act", "done": True}
    run = house.start(flow)
    with site.browser() as client:
        assert "the run goes on with refuse" in words(client.get(path_of(run)))
        done = post(client, path_of(run), "deny")
    assert "Denied By ann" in words(done)
    house.system.finish([run])
    assert house.status(run) == "completed"


def test_a_second_post_is_a_conflict_and_shows_the_decision(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        form = Page(client.get(path_of(run)).text).hidden
        first = client.post(path_of(run), data={**form, "decision": "approve"})
        second = client.post(path_of(run), data={**form, "decision": "deny"})
    assert (first.status_code, second.status_code) == (200, 409)
    assert "Approved By ann" in words(second)
    assert re.search("ask is not waiting: it is done|the run is already completed", words(second))


def test_after_a_cancel_nothing_can_be_decided(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        form = Page(client.get(path_of(run)).text).hidden
        house.system.workflows.cancel(run, "not needed", by=STARTER)
        late = client.post(path_of(run), data={**form, "decision": "approve"})
        page = client.get(path_of(run))
    assert late.status_code == 409
    assert "Cancelled There is nothing to decide any more: cancelled by stan: not needed" in words(late)
    assert (page.status_code, "decision" in Page(page.text).names) == (200, False)
    assert house.status(run) == "cancelled"


def test_a_link_to_an_earlier_attempt_decides_nothing(house: House, site: Site) -> None:
    flow = {
        "name": "again",
        "start": "begin",
        "steps": {
            "begin": {"parallel": ["broken", "ask"], "join": "end"},
            "broken": {
                "tool": "fail",
                "args": {"message": "no", "times": 9},
                "retry": {"max_attempts": 1},
            },
            "ask": {"approval": {"approvers": ["ann"]}},
            "end": {"done": True},
        },
    }
    run = house.start(flow)
    house.system.until(lambda: house.status(run) == "failed", "the run to fail")
    house.system.workflows.retry(run, by=STARTER)
    with site.browser() as client:
        old = client.get(path_of(run, attempt=1))
        assert old.status_code == 200
        assert "A retry has opened this gate anew (attempt 2)" in words(old)
        own = Page(client.get(path_of(run, attempt=2)).text).hidden
        foreign = client.post(path_of(run, attempt=1), data={**own, "decision": "approve"})
        assert foreign.status_code == 403  # The form was made for another attempt.
        refused = client.post(path_of(run, attempt=1), data=form_of(run, attempt=1))
        assert refused.status_code == 409
        swapped = client.post(path_of(run, attempt=1), data=form_of(run, attempt=1) | {"attempt": "2"})
        assert swapped.status_code == 409  # The attempt is the link's own, whatever the form says.
    assert house.system.events(run, "vote_cast") == []


def test_who_started_the_run_cannot_approve_it_by_link(house: House, site: Site) -> None:
    run = house.ask(approvers=["stan", "ann"])
    with site.browser() as client:
        page = client.get(path_of(run, "stan"))
        assert page.status_code == 200
        assert "stan started this run and may not decide its gate ask" in words(page)
        assert "decision" not in Page(page.text).names
        refused = client.post(path_of(run, "stan"), data=form_of(run, "stan"))
    assert refused.status_code == 403
    assert "stan started this run and may not decide its gate ask" in words(refused)
    assert house.status(run) == "paused"


def test_who_defined_the_flow_cannot_approve_it_by_link(house: House, site: Site) -> None:
    house.system.workflows.define(gate_flow("authored", approvers=["stan", "ann"]), by=STARTER)
    run = house.system.workflows.start("authored", {"amount": 1, "to": "x"}, by="bob").id
    with site.browser() as client:
        refused = client.post(path_of(run, "stan"), data=form_of(run, "stan"))
    assert refused.status_code == 403
    assert "stan defined this flow and may not decide its gate ask" in words(refused)


def test_a_self_approval_that_the_gate_allows_is_taken(house: House, site: Site) -> None:
    run = house.ask(approvers=["stan"], allow_self=True)
    with site.browser() as client:
        assert post(client, path_of(run, "stan")).status_code == 200
    house.system.finish([run])


def test_a_link_for_who_is_no_approver_decides_nothing(house: House, site: Site) -> None:
    run = house.ask(approvers=["ann"])
    with site.browser() as client:
        form = form_of(run, "bob")
        refused = client.post(path_of(run, "bob"), data=form)
    assert refused.status_code == 403
    assert "bob is not an approver of ask; it waits for ann" in words(refused)


def test_a_link_of_somebody_whom_the_policy_no_longer_knows_shows_and_decides_nothing(
    house: House, site: Site
) -> None:
    run = house.ask(approvers=["zoe"])
    with site.browser() as client:
        page = client.get(path_of(run, "zoe"))
        refused = client.post(path_of(run, "zoe"), data=form_of(run, "zoe"))
    assert (page.status_code, refused.status_code) == (403, 403)
    assert "zoe may neither read nor decide this any more" in words(page)
    assert "the baker" not in page.text


def test_a_link_of_somebody_who_may_only_read_decides_nothing(house: House, site: Site) -> None:
    run = house.start(gate_flow("public-pay", approvers=["eve"]))
    with site.browser() as client:
        page = client.get(path_of(run, "eve"))
        refused = client.post(path_of(run, "eve"), data=form_of(run, "eve"))
    assert (page.status_code, refused.status_code) == (200, 403)
    assert "eve may not decide gates of public-pay: the permission `decide` is missing" in words(refused)


def test_a_member_of_a_group_decides_for_it(house: House, site: Site) -> None:
    run = house.ask(approvers=["group:ops"])
    with site.browser() as client:
        form = form_of(run, "bob")
        assert client.post(path_of(run, "bob"), data=form).status_code == 403
        assert post(client, path_of(run, "ann")).status_code == 200
    house.system.finish([run])


def test_an_agent_decides_nothing_by_link(house: House, site: Site) -> None:
    run = house.ask(approvers=["robo", "ann"])
    with site.browser() as client:
        form = form_of(run, "robo")
        refused = client.post(path_of(run, "robo"), data=form)
    assert refused.status_code == 403
    assert house.status(run) == "paused"


def test_an_agent_that_comes_with_the_link_of_its_person_is_refused(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser(authorization=f"Bearer {TOKENS['ann_agent']}") as client:
        page = client.get(path_of(run))
        form = form_of(run, "ann")
        refused = client.post(path_of(run), data=form)
    assert (page.status_code, refused.status_code) == (403, 403)
    assert "this link is for a person; you come as an agent" in words(page)


def test_a_link_that_was_forwarded_to_somebody_who_is_signed_in_is_refused(house: House, site: Site) -> None:
    run = house.ask(approvers=["ann", "bob"])
    with site.browser("bob") as client:
        page = client.get(path_of(run, "ann"))
        form = form_of(run, "ann")
        refused = client.post(path_of(run, "ann"), data=form)
    assert (page.status_code, refused.status_code) == (403, 403)
    assert "this link is for ann; you are signed in as bob" in words(page)
    assert "this link is for ann; you are signed in as bob" in words(refused)
    with site.browser("ann") as client:
        assert post(client, path_of(run, "ann")).status_code == 200
    house.system.finish([run])


def test_where_links_ask_for_a_sign_in_they_do_nothing_without_one(house: House) -> None:
    site = house.site(link_login=True)
    run = house.ask()
    path = path_of(run)
    with site.browser() as client:
        asked = client.get(path)
        assert asked.status_code == 303
        assert asked.headers["location"].startswith("/login?next=%2Fa%2F")
        form = form_of(run, "ann")
        assert client.post(path, data=form).status_code == 401
    with site.browser("bob") as client:
        assert client.get(path).status_code == 403
    with site.browser("ann") as client:
        assert post(client, path).status_code == 200
    house.system.finish([run])


def test_a_quorum_of_two_of_three(house: House, site: Site) -> None:
    run = house.ask(approvers=["ann", "bob", "cy"], quorum=2)
    with site.browser() as client:
        first = post(client, path_of(run, "ann"), comment="one")
        assert first.status_code == 200
        assert "Your approval is counted: 1 of 2 are there." in words(first)
        assert "ann has already voted at ask" in words(first)
        twice = client.post(path_of(run, "ann"), data=form_of(run, "ann"))
        assert twice.status_code == 409
        assert house.status(run) == "paused"
        seen = words(client.get(path_of(run, "bob")))
        assert "It takes 2 approvals; one denial denies." in seen
        assert "ann approved" in seen
        second = post(client, path_of(run, "bob"))
        assert "You have approved this. The run goes on." in words(second)
        third = client.post(path_of(run, "cy"), data=form_of(run, "cy", "deny"))
    assert third.status_code == 409
    house.system.finish([run])
    assert house.status(run) == "completed"


FORM = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "title": "How much?", "description": "In euros", "maximum": 100},
        "urgent": {"type": "boolean"},
    },
    "required": ["amount"],
}


def test_a_form_is_asked_for_checked_and_becomes_the_result(house: House, site: Site) -> None:
    run = house.ask(form=FORM)
    with site.browser() as client:
        page = client.get(path_of(run))
        assert "How much? (required)" in words(page)
        assert "In euros" in words(page)
        missing = post(client, path_of(run), comment="kept words")
        assert missing.status_code == 422
        assert "is missing" in words(missing)
        assert "kept words" in words(missing)
        high = post(client, path_of(run), **{"f.amount": "101"})
        assert high.status_code == 422
        assert 'value="101"' in high.text
        assert "101 is greater than the maximum of 100" in words(high)
        assert house.system.events(run, "vote_cast") == []
        assert post(client, path_of(run), **{"f.amount": "7.5", "f.urgent": "true"}).status_code == 200
    house.system.finish([run])
    assert house.steps(run)["ask"]["result"]["form"] == {"amount": 7.5, "urgent": True}


def test_a_denial_needs_no_form(house: House, site: Site) -> None:
    run = house.ask(form=FORM)
    with site.browser() as client:
        assert post(client, path_of(run), "deny").status_code == 200
    assert house.status(run) == "cancelled"


def test_a_comment_that_is_required_must_be_given(house: House, site: Site) -> None:
    run = house.ask(require_comment=True)
    with site.browser() as client:
        blank = post(client, path_of(run), comment="  \r\n ")
        assert blank.status_code == 422
        assert "ask asks for a comment; give one" in words(blank)
        assert 'aria-invalid="true"' in blank.text
        assert post(client, path_of(run), comment="because").status_code == 200
    house.system.finish([run])


def test_a_post_that_says_neither_yes_nor_no_decides_nothing(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        for said in ("", "yes", "APPROVE"):
            assert post(client, path_of(run), said).status_code == 422
    assert house.status(run) == "paused"


def test_a_form_for_another_action_decides_nothing(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        refused = post(client, path_of(run), action="0" * 64)
    assert refused.status_code == 409
    assert "what would run is not what you were shown; look at it again" in words(refused)
    assert house.status(run) == "paused"


def test_a_gate_that_nobody_answered_in_time_is_denied_and_its_page_says_so(house: House, site: Site) -> None:
    run = house.ask(timeout_s=1)
    with site.browser() as client:
        page = words(client.get(path_of(run)))
        assert "If nobody decides it is denied: the run is cancelled, and stan is told" in page
        house.system.until(lambda: house.status(run) == "cancelled", "the clock to deny")
        assert "Denied Nobody decided in time." in words(client.get(path_of(run)))
        form = form_of(run, "ann")
        assert client.post(path_of(run), data=form).status_code == 409


def test_hostile_words_are_shown_and_obeyed_by_nobody(house: House, site: Site) -> None:
    evil = "<script>alert(1)</script>\u202egnp.exe\u200b\x1b[31m'\"{{7*7}}"
    run = house.start(
        gate_flow(approvers=["ann", "bob"], quorum=2), {"amount": evil, "to": {evil: "x" * 5_000}}
    )
    with site.browser() as client:
        post(client, path_of(run), comment=evil)
        page = client.get(path_of(run, "bob"))
    assert page.status_code == 200
    assert "<script" not in page.text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", page.text)
    assert "<script>alert(1)</script>[U+202E]gnp.exe[U+200B][U+001B][31m'\"{{7*7}}" in words(page)
    assert "5,0" in words(page)  # The long value is folded, with its length.
    assert "<details>" in page.text


def test_secrets_stay_references(house: House, site: Site) -> None:
    flow = gate_flow(approvers=["ann"])
    flow["steps"]["pay"]["args"] = {"value": "Bearer {{secret.BANK}}"}
    run = house.start(flow)
    with site.browser() as client:
        assert "Bearer {{secret.BANK}}" in words(client.get(path_of(run)))


def test_a_page_says_what_differs_from_the_last_approval(house: House, site: Site) -> None:
    flow = gate_flow("compared", approvers=["ann"])
    first = house.start(flow)
    with site.browser() as client:
        assert "Since the last approval" not in words(client.get(path_of(first)))
        post(client, path_of(first))
        same = house.start(flow)
        assert "The same arguments were approved" in words(client.get(path_of(same)))
        other = house.start(flow, {"amount": 9_000, "to": "the baker"})
        page = words(client.get(path_of(other)))
    assert "pay.value.amount 12 9000" in page
    assert "pay.value.to" not in page


def test_arguments_that_nobody_knows_yet_are_not_called_the_same(house: House, site: Site) -> None:
    flow = gate_flow("unknown", approvers=["ann"])
    flow["steps"]["pay"]["args"] = {"value": "{{input.amount}} by {{steps.ask.result.by[0]}}"}
    first = house.start(flow)
    with site.browser() as client:
        post(client, path_of(first))
        other = house.start(flow, {"amount": 9_000, "to": "the baker"})
        page = words(client.get(path_of(other)))
    assert "filled in when its turn comes" in page
    assert "Since the last approval" not in page
    assert "The same arguments" not in page


def test_a_page_tells_the_history(house: House, site: Site) -> None:
    flow = gate_flow("told", approvers=["ann"])
    flow["start"] = "look"
    flow["steps"]["look"] = {"tool": "act", "args": {"value": "found it"}, "next": "first"}
    flow["steps"]["first"] = {"approval": {"approvers": ["bob"]}, "next": "ask"}
    run = house.start(flow)
    house.system.until(lambda: house.status(run) == "paused", "the first gate")
    with site.browser() as client:
        post(client, path_of(run, "bob", step="first"), comment="go on")
        page = words(client.get(path_of(run)))
    assert 'look done "found it"' in page
    assert "first done approved by bob: go on" in page


def test_a_decision_that_is_not_confirmed_is_not_called_one(house: House, valkey_url: str) -> None:
    """What this site says goes to a broker where no executor listens."""
    site = house.site(broker_url=valkey_url.replace("unix://", "redis+socket://"))
    run = house.ask()
    with site.browser() as client:
        sent = post(client, path_of(run), comment="kept")
    assert sent.status_code == 503
    assert "it may still have been decided: load this page again in a while" in words(sent)
    assert "kept" in words(sent)
    assert "You have approved" not in words(sent)


def test_after_an_escalation_others_may_decide_too(house: House, site: Site) -> None:
    run = house.ask(timeout_s=4, on_timeout="escalate", escalate_to=["bob"])
    with site.browser() as client:
        early = client.post(path_of(run, "bob"), data=form_of(run, "bob"))
        assert early.status_code == 403
        assert "bob is asked, too" in words(client.get(path_of(run)))
        house.system.until(lambda: house.system.events(run, "gate_escalated"), "the gate to escalate")
        page = words(client.get(path_of(run, "bob")))
        assert "Nobody decided in time, so others were asked as well." in page
        assert post(client, path_of(run, "bob")).status_code == 200
    house.system.finish([run])
    assert house.status(run) == "completed"


def test_a_comment_that_no_table_can_hold_is_refused(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        sent = post(client, path_of(run), comment="a\x00b")
        long = post(client, path_of(run), comment="x" * 1_100_000)
    assert (sent.status_code, long.status_code) == (422, 422)
    assert house.status(run) == "paused"
