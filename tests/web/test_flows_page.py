"""Flows: the list, one with its picture, and the form that starts a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.web.console import echo_flow, get, links, words
from tests.web.server import House, Page, Site

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["word", "times"],
    "properties": {
        "word": {"type": "string", "title": "The word", "maxLength": 20},
        "times": {"type": "integer", "minimum": 1, "maximum": 9},
        "loud": {"type": "boolean"},
    },
}


@pytest.fixture
def stan(site: Site) -> Iterator[httpx.Client]:
    with site.browser("stan") as client:
        yield client


@pytest.fixture(scope="module")
def flow(house: House) -> str:
    made = echo_flow("shout", input=SCHEMA, description="Says a word")
    house.system.workflows.define(echo_flow("shout", description="Older"), by="stan")
    return house.system.workflows.define(made, by="stan").name


def fill(client: httpx.Client, path: str, **typed: str) -> httpx.Response:
    return client.post(path, data={**Page(get(client, path).text).hidden, **typed})


def test_flows_are_listed_with_who_defined_them(stan: httpx.Client, flow: str) -> None:
    said = words(stan, "/flows")
    assert f"{flow} Says a word" in said
    assert "stan" in said


def test_a_flow_shows_its_picture_its_versions_and_its_document(stan: httpx.Client, flow: str) -> None:
    page = get(stan, f"/flows/{flow}").text
    said = Page(page).words
    assert 'class="wf-graph' in page
    assert "shout @2" in said or "shout@2" in said.replace(" ", "")
    assert "Says a word" in said
    assert f"/flows/{flow}?version=1" in links(page)
    assert "Older" in words(stan, f"/flows/{flow}?version=1")
    assert "maxLength: 20" in said


def test_a_form_made_from_the_schema_starts_a_run(house: House, stan: httpx.Client, flow: str) -> None:
    answer = fill(
        stan, f"/flows/{flow}", **{"f.word": "hey", "f.times": "3", "f.loud": "true"}, key="k1", tags="a, b"
    )
    assert answer.status_code == 303
    run_id = answer.headers["location"].rpartition("/")[2]
    house.system.finish([run_id])
    run = house.system.workflows.get(run_id)
    assert run["input"] == {"word": "hey", "times": 3, "loud": True}
    assert (run["created_by"], run["key"], run["tags"]) == ("stan", "k1", ["a", "b"])


def test_a_double_click_starts_one_run(house: House, stan: httpx.Client, flow: str) -> None:
    form = {**Page(get(stan, f"/flows/{flow}").text).hidden, "f.word": "twice", "f.times": "1"}
    first, second = (stan.post(f"/flows/{flow}", data=form) for _ in range(2))
    assert first.headers["location"] == second.headers["location"]


def test_what_was_typed_stays_and_each_fault_is_said(stan: httpx.Client, flow: str) -> None:
    answer = fill(stan, f"/flows/{flow}", **{"f.word": "kept as typed", "f.times": "many"})
    assert answer.status_code == 422
    assert "kept as typed" in answer.text
    assert "nothing was started" in answer.text
    assert 'aria-invalid="true"' in answer.text


def test_a_flow_without_a_schema_takes_json(house: House, stan: httpx.Client) -> None:
    house.system.workflows.define(echo_flow("free"), by="stan")
    page = get(stan, "/flows/free").text
    [name] = [name for name in Page(page).names if name.startswith("f.")]
    answer = fill(stan, "/flows/free", **{name: '{"word": "json"}'})
    assert answer.status_code == 303
    run_id = answer.headers["location"].rpartition("/")[2]
    house.system.finish([run_id])
    assert house.system.workflows.get(run_id)["output"] == {"said": "json"}
    assert fill(stan, "/flows/free", **{name: "{not json"}).status_code == 422


def test_a_key_that_is_too_long_is_said_and_nothing_starts(stan: httpx.Client, flow: str) -> None:
    answer = fill(stan, f"/flows/{flow}", **{"f.word": "x", "f.times": "1"}, key="k" * 300)
    assert answer.status_code == 422
    assert "at most 200 characters" in answer.text


def test_who_may_not_start_gets_no_form_and_no_run(site: Site, flow: str) -> None:
    with site.browser("cy") as cy:
        page = get(cy, f"/flows/{flow}").text
        assert "Start the run" not in page
        assert cy.post(f"/flows/{flow}", data=Page(page).hidden).status_code == 403


def test_who_may_not_read_a_flow_does_not_see_it(house: House, site: Site, flow: str) -> None:
    house.system.workflows.define(echo_flow("public-flow"), by="stan")
    with site.browser("eve") as eve:
        said = words(eve, "/flows")
        assert "public-flow" in said
        assert flow not in said
        assert eve.get(f"/flows/{flow}").status_code == 404
        assert eve.get("/flows/public-flow").status_code == 200


def test_a_flow_or_version_that_is_not_there_is_not_found(stan: httpx.Client, flow: str) -> None:
    assert stan.get("/flows/never-defined").status_code == 404
    assert stan.get(f"/flows/{flow}?version=99").status_code == 404


def test_many_flows_are_listed_a_page_at_a_time(
    house: House, stan: httpx.Client, flow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("aa-1", "aa-2", "aa-3"):
        house.system.workflows.define(echo_flow(name), by="stan")
    monkeypatch.setattr("wfcelery.web.pages.definitions.PAGE", 2)
    first = get(stan, "/flows").text
    assert "aa-2" in first
    assert "aa-3" not in first
    [following] = [link for link in links(first) if "after=" in link]
    second = get(stan, f"/flows{following}").text
    assert "aa-3" in second
    assert "aa-2" not in Page(second).words
