"""The list of runs through real HTTP: filters, pages, what runs wait for, who sees which."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.web.console import echo_flow, failing_flow, get, links, words
from tests.web.server import House, Site, gate_flow

RUN = re.compile(r'href="/runs/([0-9a-hj-km-np-tv-z]{26})"')


@pytest.fixture
def stan(site: Site) -> Iterator[httpx.Client]:
    with site.browser("stan") as client:
        yield client


def listed(client: httpx.Client, query: str) -> list[str]:
    """The runs of a page, from top to bottom."""
    return RUN.findall(get(client, f"/runs?{query}").text)


def test_the_root_leads_to_the_runs(stan: httpx.Client) -> None:
    answer = stan.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")


def test_runs_are_found_by_status_flow_key_tag_and_user(house: House, stan: httpx.Client) -> None:
    one = house.system.start(echo_flow("found"), {"word": "x"}, key="k-1", tags=["red", "big"], by="stan")
    two = house.start(gate_flow("found-gate", approvers=["ann"]), by="stan")
    house.system.finish([one])
    assert listed(stan, "flow=found") == [one]
    assert listed(stan, "key=k-1") == [one]
    assert listed(stan, "tag=red&flow=found") == [one]
    assert listed(stan, "tag=re") == []
    assert listed(stan, "flow=found&status=completed") == [one]
    assert listed(stan, "flow=found&status=failed") == []
    assert listed(stan, "user=stan&flow=found-gate&status=paused") == [two]
    assert listed(stan, "user=nobody") == []


def test_runs_are_found_by_time_in_utc(house: House, stan: httpx.Client) -> None:
    run = house.system.start(echo_flow("timed"), {"word": "x"}, by="stan")
    assert listed(stan, "flow=timed&since=2020-01-01T00:00") == [run]
    assert listed(stan, "flow=timed&until=2020-01-01T00:00") == []
    assert listed(stan, "flow=timed&since=2020-01-01T00:00&until=2999-01-01T00:00:00Z") == [run]


@pytest.mark.parametrize("query", ["since=yesterday", "until=0", "status=sleeping"])
def test_what_cannot_be_read_is_said_beside_the_form(stan: httpx.Client, query: str) -> None:
    said = words(stan, f"/runs?{query}", 422)
    assert "must be" in said
    assert "Filter" in said


def test_pages_lead_down_and_up_again_without_a_gap(
    house: House, stan: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfcelery.web.pages.runs.PAGE", 3)
    runs = [house.system.start(echo_flow("paged"), {"word": "x"}, by="stan") for _ in range(8)][::-1]
    first = get(stan, "/runs?flow=paged").text
    assert RUN.findall(first) == runs[:3]
    second = _follow(stan, first, "before=")
    assert RUN.findall(second) == runs[3:6]
    third = _follow(stan, second, "before=")
    assert RUN.findall(third) == runs[6:]
    assert not [link for link in links(third) if "before=" in link]
    up = _follow(stan, third, "after=")
    assert RUN.findall(up) == runs[3:6]
    top = _follow(stan, up, "after=")
    assert RUN.findall(top) == runs[:3]
    assert not [link for link in links(top) if "after=" in link]


def _follow(client: httpx.Client, page: str, kind: str) -> str:
    [address] = [link for link in links(page) if kind in link]
    return get(client, address).text


def test_a_paused_run_says_what_it_waits_for(house: House, stan: httpx.Client) -> None:
    house.start(gate_flow("waiting-gate", approvers=["ann", "bob"]))
    assert "approval by ann or bob at ask" in words(stan, "/runs?flow=waiting-gate")
    signal = {
        "name": "waiting-signal",
        "start": "w",
        "steps": {"w": {"wait": {"signal": "go"}, "done": True}},
    }
    house.start(signal)
    assert "signal go at w" in words(stan, "/runs?flow=waiting-signal")


def test_a_failed_run_says_its_error(house: House, stan: httpx.Client) -> None:
    house.system.finish([house.start(failing_flow("listed-failure"))])
    assert "the lorry has no fuel" in words(stan, "/runs?flow=listed-failure")


def test_nobody_sees_runs_of_flows_that_they_may_not_read(house: House, site: Site) -> None:
    public = house.start(echo_flow("public-list"), {"word": "x"})
    house.start(echo_flow("private-list"), {"word": "x"})
    with site.browser("eve") as eve:
        assert listed(eve, "flow=public-list") == [public]
        assert listed(eve, "flow=private-list") == []
        assert "private-list" not in words(eve, "/runs")


def test_an_empty_list_says_how_to_begin(stan: httpx.Client) -> None:
    assert "No run is like that" in words(stan, "/runs?flow=never-defined")
