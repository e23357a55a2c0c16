"""What somebody tries who means no good: each was possible once, or is one step from what was."""

from __future__ import annotations

import logging
import re
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.web.console import echo_flow, eventually, get, words
from tests.web.server import TOKENS, House, Page, Site, write_policy
from wfcelery.rights.token import hash_of
from wfcelery.web.api.access import run_named
from wfcelery.web.desk import BAD_LOGINS_A_MINUTE, MOST_STREAMS_OF_ONE
from wfcelery.web.identity import SESSION_COOKIE


@pytest.fixture(scope="module")
def open_site(house: House) -> Site:
    """The same system without rights, as before somebody wrote a policy."""
    return house.site(policy=None)


@pytest.fixture
def own_policy(house: House, tmp_path: Path) -> tuple[Path, Site]:
    """A site whose policy a test may change."""
    path = write_policy(tmp_path)
    return path, house.site(policy=str(path))


def test_nothing_is_read_of_what_a_stranger_sends(site: Site) -> None:
    with httpx.Client(base_url=site.url) as stranger:
        kind = {"Content-Type": "application/json"}
        assert stranger.post("/api/v1/runs", content=b"{" * 1_000, headers=kind).status_code == 401
        assert stranger.post("/flows/pay", content=b"{}", headers=kind).status_code == 401


def test_a_name_that_was_taken_while_nobody_signed_in_is_nobody_under_a_policy(
    site: Site, open_site: Site
) -> None:
    with open_site.browser() as mallory:
        form = Page(get(mallory, "/runs").text).hidden
        assert mallory.post("/act-as", data={**form, "user": "stan"}).status_code == 303
        assert mallory.get("/api/v1/me").json()["id"] == "stan"
        cookie = mallory.cookies[SESSION_COOKIE]
    with httpx.Client(base_url=site.url, cookies={SESSION_COOKIE: cookie}) as mallory:
        assert mallory.get("/runs").status_code == 303
        assert mallory.get("/api/v1/me").status_code == 401


def test_the_session_of_a_sign_in_names_nobody_where_nobody_signs_in(site: Site, open_site: Site) -> None:
    with site.browser("robo") as robo:
        cookie = robo.cookies[SESSION_COOKIE]
    with httpx.Client(base_url=open_site.url, cookies={SESSION_COOKIE: cookie}) as there:
        assert there.get("/api/v1/me").json()["id"] == "nobody"


def test_a_session_ends_with_the_token_that_began_it(own_policy: tuple[Path, Site]) -> None:
    path, site = own_policy
    with site.browser("stan") as stan, site.browser("ann") as ann:
        assert stan.get("/runs").status_code == 200
        path.write_text(path.read_text().replace(hash_of(TOKENS["stan"]), hash_of("wfc_another")))
        eventually(lambda: stan.get("/runs").status_code == 303)
        assert stan.get("/api/v1/runs").status_code == 401
        assert ann.get("/runs").status_code == 200


def test_a_session_ends_with_its_user_and_while_the_policy_is_gone(own_policy: tuple[Path, Site]) -> None:
    path, site = own_policy
    with site.browser("stan") as stan, site.browser("ann") as ann:
        text = path.read_text()
        path.write_text(text.replace("[users.stan]", "[users.stanley]"))
        eventually(lambda: stan.get("/runs").status_code == 303)
        path.unlink()
        eventually(lambda: ann.get("/runs").status_code == 303)
        with httpx.Client(base_url=site.url, headers={"X-Wfcelery-User": "ann"}) as mallory:
            assert mallory.get("/runs").status_code == 303
            assert mallory.get("/api/v1/me").status_code == 401
        path.write_text(text)
        eventually(lambda: ann.get("/runs").status_code == 200)


def test_who_administers_some_flows_sees_nothing_of_all_the_others(own_policy: tuple[Path, Site]) -> None:
    path, site = own_policy
    path.write_text(path.read_text().replace('"read:public*"', '"admin:public*"'))
    with site.browser("eve") as eve, site.browser("ann") as ann:
        eventually(lambda: "decide" in eve.get("/api/v1/me").text)
        said = words(eve, "/system")
        assert "Who administers the system sees them here" in said
        assert "Who may read all flows sees them here" in said
        assert "Who may read all flows sees them here" not in words(ann, "/system")


def test_a_list_says_nothing_of_runs_that_may_not_be_read_not_even_that_they_are(
    house: House, site: Site
) -> None:
    def position(who: httpx.Client, flow: str) -> str:
        found = re.search(r"seen=([0-9a-f]+)", get(who, f"/runs?flow={flow}").text)
        assert found is not None
        return found[1]

    house.system.start(echo_flow("hushed"), {"word": "hush"}, by="stan")
    with site.browser("eve") as eve, site.browser("ann") as ann:
        assert position(eve, "hushed") == position(eve, "there-is-none")
        assert position(ann, "hushed") != position(ann, "there-is-none")


def test_a_run_or_flow_that_may_not_be_read_is_not_there(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser("eve") as eve:
        assert "pay" not in words(eve, f"/runs/{run}", 404)
        unknown = words(eve, "/flows/there-is-none", 404)
        assert words(eve, "/flows/pay", 404) == unknown.replace("there-is-none", "pay")


def test_a_page_that_asks_cannot_take_the_place_of_what_somebody_else_will_ask(
    house: House, site: Site
) -> None:
    chosen = "0123456789abcdef" * 2
    run = house.ask()
    with site.browser("stan") as stan:
        form = Page(get(stan, f"/runs/{run}/pause").text).hidden
        for _ in range(2):
            assert stan.post(f"/runs/{run}/pause", data={**form, "command": chosen}).status_code == 303
    asked = [row[0] for row in house.system.query("SELECT id FROM commands WHERE kind = 'Hold'")]
    assert len(asked) == 1
    assert chosen not in asked


@pytest.mark.parametrize("there", ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil"])
def test_a_sign_in_leads_nowhere_else(site: Site, there: str) -> None:
    with site.browser() as ann:
        form = Page(get(ann, "/login").text).hidden
        sent = ann.post("/login", data={**form, "token": TOKENS["ann"], "next": there})
        assert (sent.status_code, sent.headers["location"]) == (303, "/runs")


def test_nobody_takes_another_name_under_a_policy(site: Site) -> None:
    with site.browser("ann", **{"X-Wfcelery-User": "stan"}) as ann:
        form = Page(get(ann, "/runs").text).hidden
        assert ann.post("/act-as", data={**form, "user": "stan"}).status_code == 404
        assert ann.get("/api/v1/me").json()["id"] == "ann"


def test_an_agent_that_has_signed_in_stays_an_agent(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser("ann_agent") as agent:
        assert agent.get("/api/v1/me").json()["kind"] == "agent"
        form = Page(get(agent, "/runs").text).hidden
        answer = agent.post(f"/runs/{run}/gates/ask/decide", data={**form, "decision": "approve"})
        assert answer.status_code == 403
    assert house.status(run) == "paused"


def test_nobody_takes_the_streams_of_all_others(house: House) -> None:
    site = house.site()
    with ExitStack() as held, site.browser("eve") as eve, site.browser("ann") as ann:
        answers = [
            held.enter_context(eve.stream("GET", f"/runs/stream?tag={number}", timeout=30.0))
            for number in range(MOST_STREAMS_OF_ONE + 1)
        ]
        assert [each.status_code for each in answers] == [200] * MOST_STREAMS_OF_ONE + [503]
        with ann.stream("GET", "/approvals/stream") as other:
            assert other.status_code == 200


def test_who_hangs_up_leaves_nothing_in_the_log(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
    there = urlsplit(site.url)
    head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\ntoken="
    for _ in range(3):
        with socket.create_connection((there.hostname, there.port)) as caller:
            caller.sendall(head)
    with site.browser() as after:
        for _ in range(3):
            assert after.get("/login").status_code == 200
    assert "ClientDisconnect" not in caplog.text


def test_the_keys_of_one_user_name_no_runs_of_another() -> None:
    assert run_named("ann", "x:y") != run_named("ann:x", "y")
    assert run_named("ann", "x") == run_named("ann", "x")


def test_behind_a_proxy_each_visitor_fails_for_themselves(house: House) -> None:
    site = house.site()

    def guess(address: str) -> int:
        with site.browser(**{"X-Forwarded-For": f"203.0.113.9, {address}"}) as stranger:
            form = Page(get(stranger, "/login").text).hidden
            return stranger.post("/login", data={**form, "token": "wfc_guessed"}).status_code

    assert [guess("198.51.100.1") for _ in range(BAD_LOGINS_A_MINUTE)] == [401] * BAD_LOGINS_A_MINUTE
    # What a visitor writes into the header stands before what the proxy adds, and counts for nothing.
    assert guess("198.51.100.1") == 429
    assert guess("198.51.100.2") == 401
