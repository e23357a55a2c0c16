"""The inbox: what waits, for whom, and that news come without a reload."""

from __future__ import annotations

import threading

import httpx
import pytest

from tests.web.server import STARTER, House, Page, Site, gate_flow
from wfcelery.core.messages import Principal
from wfcelery.web.pages import inbox


@pytest.fixture(autouse=True)
def _nothing_waits(house: House) -> None:
    """What other tests have left waiting is cancelled."""
    for status in ("paused", "running"):
        for run in house.system.workflows.list(status=status, limit=500):
            house.system.workflows.cancel(str(run["id"]), by=STARTER)


def sections(response: httpx.Response) -> tuple[str, str]:
    """What waits for the visitor, and what for others."""
    mine, _, others = Page(response.text).words.partition("Waiting for others")
    return mine.partition("Waiting for you")[2], others


def test_what_i_can_decide_comes_first_and_the_rest_says_why_not(house: House, site: Site) -> None:
    house.start(gate_flow("for-bob", approvers=["bob"]))
    house.start(gate_flow("for-ann", approvers=["ann"]))
    house.start(gate_flow("for-all", quorum=2))
    with site.browser("ann") as client:
        page = client.get("/approvals")
    mine, others = sections(page)
    assert page.status_code == 200
    assert "(2)" in mine
    assert mine.index("ask of for-all") < mine.index("ask of for-ann")
    assert "0 of 2 approvals" in mine
    assert "ask of for-bob" in others
    assert "ann is not an approver of ask; it waits for bob" in others


def test_who_started_a_run_sees_it_wait_for_others(house: House, site: Site) -> None:
    house.start(gate_flow("own"))
    with site.browser("stan") as client:
        mine, others = sections(client.get("/approvals"))
    assert "Nothing waits for your decision." in mine
    assert "stan started this run and may not decide its gate ask" in others


def test_only_gates_of_flows_that_one_may_read_are_listed(house: House, site: Site) -> None:
    house.start(gate_flow("private", approvers=["ann"]))
    house.start(gate_flow("public-one", approvers=["ann"]))
    with site.browser("eve") as client:
        page = client.get("/approvals")
    assert "ask of public-one" in Page(page.text).words
    assert "private" not in page.text


def test_a_decided_gate_is_gone(house: House, site: Site) -> None:
    run = house.ask()
    house.system.workflows.decide(run, "ask", approve=True, by=Principal("ann"))
    with site.browser("ann") as client:
        assert "ask of pay" not in Page(client.get("/approvals").text).words


def test_many_gates_are_shown_page_by_page(house: House, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "PAGE", 2)
    for number in range(5):
        house.start(gate_flow(f"many-{number}", approvers=["ann"]))
    seen: list[str] = []
    path: str | None = "/approvals"
    with site.browser("ann") as client:
        while path is not None:
            found = Page(client.get(path).text)
            seen += [f"many-{number}" for number in range(5)[::-1] if f"ask of many-{number}" in found.words]
            links = [told["href"] for tag, told in found.attributes if tag == "a"]
            path = next((each for each in links if "before=" in each), None)
    assert seen == ["many-4", "many-3", "many-2", "many-1", "many-0"]


def test_a_cursor_that_is_none_shows_the_beginning(house: House, site: Site) -> None:
    house.ask()
    with site.browser("ann") as client:
        for before in ("x", "nan~x", "1e999~x", "~", "-5~x"):
            assert "ask of pay" in Page(client.get("/approvals", params={"before": before}).text).words


def test_a_new_gate_is_told_without_a_reload(house: House, site: Site) -> None:
    with site.browser("ann") as client:
        found = Page(client.get("/approvals").text).attributes
        [live] = [told["data-live"] for _, told in found if "data-live" in told]
        assert any("data-live-part" in told and told.get("id") for _, told in found)
        started = threading.Thread(target=house.ask)
        with client.stream("GET", live) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            started.start()
            said = next(line for line in stream.iter_lines() if line.startswith("event:"))
        started.join()
        assert said == "event: changed"
        again = Page(client.get("/approvals").text)
    assert "ask of pay" in again.words
    [now] = [told["data-live"] for _, told in again.attributes if "data-live" in told]
    assert now != live


def test_who_comes_back_hears_at_once_what_was_missed(house: House, site: Site) -> None:
    with site.browser("ann") as client:
        [live] = [
            told["data-live"]
            for _, told in Page(client.get("/approvals").text).attributes
            if "data-live" in told
        ]
        house.ask()
        path, _, query = live.partition("?")
        headers = {"Last-Event-ID": query.removeprefix("seen=")}
        with client.stream("GET", path, headers=headers) as stream:
            assert "event: changed" in [line for line, _ in zip(stream.iter_lines(), range(4), strict=False)]


def test_the_stream_is_for_who_may_read(house: House, site: Site) -> None:
    with site.browser() as client:
        assert client.get("/approvals/stream").status_code == 303
