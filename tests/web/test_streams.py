"""Streams: what they say, where they go on, when they end, and that there are not too many."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest

from tests.web.console import echo_flow, eventually
from tests.web.server import House, Page, Site


@pytest.fixture
def stan(site: Site) -> Iterator[httpx.Client]:
    with site.browser("stan") as client:
        yield client


def events(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """The events of a stream; comments and `retry` are left out."""
    found: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            found[name] = value
        elif "event" in found:
            yield found
            found = {}
        else:
            found = {}


def seq(house: House, run: str) -> str:
    return str(house.system.workflows.events(run)[-1]["seq"])


def test_a_run_that_changes_is_told_with_its_number(house: House, stan: httpx.Client) -> None:
    run = house.ask()
    before = seq(house, run)
    with stan.stream("GET", f"/runs/{run}/stream?seen={before}") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        told = events(answer.iter_lines())
        house.system.workflows.pause(run, by="stan")
        first = next(told)
        assert first["event"] == "changed"
        assert int(first["id"]) > int(before)


def test_who_comes_back_hears_at_once_what_was_missed(house: House, stan: httpx.Client) -> None:
    run = house.ask()
    with stan.stream("GET", f"/runs/{run}/stream", headers={"Last-Event-ID": "1"}) as answer:
        assert next(events(answer.iter_lines())) == {
            "id": seq(house, run),
            "event": "changed",
            "data": seq(house, run),
        }


def test_a_stream_ends_with_its_run_and_is_not_opened_again(house: House, stan: httpx.Client) -> None:
    run = house.ask()
    with stan.stream("GET", f"/runs/{run}/stream?seen={seq(house, run)}") as answer:
        told = events(answer.iter_lines())
        house.system.workflows.cancel(run, by="stan")
        kinds = [each["event"] for each in told]
    assert kinds[-1] == "ended"
    assert "changed" in kinds
    assert stan.get(f"/runs/{run}/stream?seen={seq(house, run)}").status_code == 204


def test_a_new_run_is_told_to_the_list_that_shows_it(house: House, stan: httpx.Client) -> None:
    house.start(echo_flow("streamed"), {"word": "x"})
    page = stan.get("/runs?flow=streamed").text
    [address] = [told["data-live"] for _, told in Page(page).attributes if "data-live" in told]
    with stan.stream("GET", address) as answer:
        told = events(answer.iter_lines())
        house.start(echo_flow("streamed"), {"word": "y"})
        assert next(told)["event"] == "changed"


def test_a_page_that_is_not_the_first_has_no_stream(house: House, stan: httpx.Client) -> None:
    run = house.start(echo_flow("streamed"), {"word": "x"})
    page = stan.get(f"/runs?flow=streamed&before={run}").text
    assert not [told for _, told in Page(page).attributes if "data-live" in told]


def test_a_head_request_ends_at_once(house: House, stan: httpx.Client) -> None:
    assert stan.head(f"/runs/{house.ask()}/stream").status_code == 200
    assert stan.head("/runs/stream").status_code == 200


def test_too_many_streams_are_refused_and_places_come_free_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfcelery.web.desk.MOST_STREAMS", 2)
    small = house.site()
    run = house.ask()
    with small.browser("stan") as stan:
        with stan.stream("GET", f"/runs/{run}/stream"), stan.stream("GET", "/runs/stream") as second:
            told = events(second.iter_lines())
            next(told)
            refused = stan.get(f"/runs/{run}/stream")
            assert refused.status_code == 503
            assert "refresh the page by hand" in refused.text
            assert stan.get(f"/runs/{run}").status_code == 200

        def is_free() -> bool:
            with stan.stream("GET", f"/runs/{run}/stream") as answer:
                return answer.status_code == 200

        eventually(is_free)


def test_streams_of_one_run_share_one_look(house: House, site: Site) -> None:
    run = house.ask()
    before = seq(house, run)
    heard: list[str] = []

    def listen() -> None:
        with (
            site.browser("stan") as client,
            client.stream("GET", f"/runs/{run}/stream?seen={before}") as answer,
        ):
            heard.append(next(events(answer.iter_lines()))["event"])

    listeners = [threading.Thread(target=listen) for _ in range(8)]
    for each in listeners:
        each.start()
    house.system.workflows.pause(run, by="stan")
    for each in listeners:
        each.join(20)
    assert heard == ["changed"] * 8


def test_streams_end_when_the_server_does(house: House) -> None:
    own = house.site()
    run = house.ask()
    with own.browser("stan") as stan, stan.stream("GET", f"/runs/{run}/stream") as answer:
        told = answer.iter_lines()
        next(told)
        own.close()
        list(told)
    house.sites.remove(own)
