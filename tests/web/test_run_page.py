"""The page of one run, its steps, its history and what can be done to it, through real HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.web.console import confirm, echo_flow, eventually, failing_flow, get, links, loop_flow, words
from tests.web.server import House, Page, Site, gate_flow


@pytest.fixture
def stan(site: Site) -> Iterator[httpx.Client]:
    with site.browser("stan") as client:
        yield client


def test_a_run_that_waits_says_for_whom_and_shows_its_steps(house: House, stan: httpx.Client) -> None:
    run = house.ask(approvers=["ann"])
    page = get(stan, f"/runs/{run}").text
    said = Page(page).words
    assert "Waits for the approval of ann at ask" in said
    assert "Started by stan" in said
    assert "the baker" in said
    assert 'class="wf-graph' in page
    assert "status-waiting" in page
    assert f"/runs/{run}/steps/ask" in links(page)
    assert f"/runs/{run}/gates/ask" in links(page)


def test_a_completed_run_shows_input_output_and_every_event_with_its_actor(
    house: House, stan: httpx.Client
) -> None:
    run = house.start(echo_flow("whole"), {"word": "hello"})
    house.system.finish([run])
    said = words(stan, f"/runs/{run}")
    assert "It is completed" in said
    assert '"said": "hello"' in said
    assert "run started" in said
    assert "run completed" in said
    assert "stan" in said


def test_a_failed_run_shows_its_error_and_each_attempt(house: House, stan: httpx.Client) -> None:
    flow = failing_flow("twice")
    flow["steps"]["break"] |= {
        "retry": {"max_attempts": 2, "backoff": [0.1]},
        "args": {"message": "no fuel", "times": 9},
    }
    run = house.start(flow)
    house.system.finish([run])
    said = words(stan, f"/runs/{run}")
    assert "attempt 2" in said
    assert "It has failed" in said
    step = words(stan, f"/runs/{run}/steps/break")
    assert "no fuel" in step
    assert step.count("failed") >= 2


def test_a_run_that_is_not_there_is_not_found(stan: httpx.Client) -> None:
    for path in ("/runs/01k9z3n5m8q0r2t4v6x8y0a1b2", "/runs/..%2f..", "/runs/x/steps/y", "/runs/x/cancel"):
        assert stan.get(path).status_code == 404, path


def test_numbers_that_are_none_are_refused_in_words(house: House, stan: httpx.Client) -> None:
    run = house.ask()
    for path in ("?from=-1", "?from=x", f"?from={'9' * 40}", "/events?before=x", "/steps/ask?item=x"):
        assert "must be a number" in words(stan, f"/runs/{run}{path}", 422), path
    assert stan.get(f"/runs/{run}/steps/ask?item=7").status_code == 404
    assert stan.get(f"/runs/{run}/steps/nothing").status_code == 404


def test_a_large_foreach_is_shown_a_page_at_a_time(house: House, stan: httpx.Client) -> None:
    run = house.start(loop_flow("large", 250))
    eventually(lambda: house.status(run) == "paused")
    whole = get(stan, f"/runs/{run}").text
    assert "250/250" in whole
    assert f"/runs/{run}/steps/each?item=249" not in links(whole.split('id="events"')[0])
    shown: list[str] = []
    address = f"/runs/{run}/steps/each"
    for _ in range(3):
        page = get(stan, address).text
        found = [link for link in links(page) if "?item=" in link]
        assert len(found) <= 100
        shown += found
        following = [link for link in links(page) if "after=" in link]
        if following:
            address = f"/runs/{run}/steps/each{following[0]}"
    assert shown == [f"/runs/{run}/steps/each?item={item}" for item in range(250)]
    item = words(stan, f"/runs/{run}/steps/each?item=249")
    assert "249" in item
    assert "echo" in item


def test_history_is_paged_from_the_newest_to_the_first(
    house: House, stan: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfcelery.web.pages.run.EVENTS_OF_A_PAGE", 5)
    run = house.start(loop_flow("history", 4))
    eventually(lambda: house.status(run) == "paused")
    numbers: list[int] = []
    address = f"/runs/{run}/events"
    while True:
        page = get(stan, address).text
        numbers += [int(each) for each in re.findall(r'data-label="No." class="num">(\d+)<', page)]
        older = [link for link in links(page) if "before=" in link]
        if not older:
            break
        address = f"/runs/{run}/events{older[0]}"
    assert numbers == list(range(len(numbers), 0, -1))
    assert len(numbers) > 10


def test_the_cost_of_a_page_does_not_grow_with_the_items(house: House, stan: httpx.Client) -> None:
    run = house.start(loop_flow("bounded", 1_500))
    eventually(lambda: house.status(run) == "paused", 60)
    assert len(get(stan, f"/runs/{run}").content) < 60_000
    assert len(get(stan, f"/runs/{run}/steps/each").content) < 140_000


def test_a_sub_run_and_its_parent_lead_to_one_another(house: House, stan: httpx.Client) -> None:
    house.system.workflows.define(echo_flow("child-flow"), by="stan")
    parent = {
        "name": "parent-flow",
        "start": "call",
        "steps": {"call": {"flow": {"name": "child-flow", "input": {"word": "x"}}, "done": True}},
    }
    run = house.start(parent)
    house.system.finish([run])
    page = get(stan, f"/runs/{run}").text
    [child] = {link.rpartition("/")[2] for link in links(page) if re.fullmatch(r"/runs/\w{26}", link)} - {run}
    assert f"/runs/{run}" in links(get(stan, f"/runs/{child}").text)


def test_cancelling_asks_first_then_acts_and_is_recorded(house: House, stan: httpx.Client) -> None:
    run = house.ask()
    house.quiet()
    before = house.content()
    asked = words(stan, f"/runs/{run}/cancel")
    assert "Cancel this run for good?" in asked
    assert house.content() == before
    answer = confirm(stan, f"/runs/{run}/cancel", reason="ordered twice")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run}")
    assert house.status(run) == "cancelled"
    events = house.system.workflows.events(run)
    [cancelled] = [each for each in events if each["type"] == "run_cancelled"]
    assert cancelled["actor"] == "stan"
    assert "ordered twice" in words(stan, f"/runs/{run}")


def test_a_confirmation_that_is_sent_twice_acts_once(house: House, stan: httpx.Client) -> None:
    run = house.ask()
    form = Page(get(stan, f"/runs/{run}/pause").text).hidden
    for _ in range(2):
        assert stan.post(f"/runs/{run}/pause", data=form).status_code == 303
    assert [each["type"] for each in house.system.workflows.events(run)].count("run_held") == 1


def test_a_run_is_paused_and_goes_on(house: House, stan: httpx.Client) -> None:
    run = house.ask()
    assert confirm(stan, f"/runs/{run}/pause").status_code == 303
    page = get(stan, f"/runs/{run}").text
    assert "held by an operator" in Page(page).words.lower()
    assert f"/runs/{run}/resume" in links(page)
    assert f"/runs/{run}/pause" not in links(page)
    assert confirm(stan, f"/runs/{run}/resume").status_code == 303
    assert f"/runs/{run}/pause" in links(get(stan, f"/runs/{run}").text)


def test_a_failed_run_is_retried_and_completes(house: House, stan: httpx.Client) -> None:
    run = house.start(failing_flow("again"))
    house.system.finish([run])
    assert confirm(stan, f"/runs/{run}/retry").status_code == 303
    eventually(lambda: house.status(run) == "completed")


def test_a_refusal_shows_its_reason(house: House, stan: httpx.Client) -> None:
    run = house.start(failing_flow("refused"))
    house.system.finish([run])
    form = Page(get(stan, f"/runs/{run}/retry").text).hidden
    house.system.workflows.retry(run, by="stan")
    eventually(lambda: house.status(run) == "completed")
    answer = stan.post(f"/runs/{run}/retry", data=form)
    assert answer.status_code == 409
    assert "It was refused" in Page(answer.text).words
    assert "This is not possible: the run is completed" in words(stan, f"/runs/{run}/cancel")


def test_who_may_only_read_is_offered_nothing_and_refused_everything(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser("ann") as ann:
        found = links(get(ann, f"/runs/{run}").text)
        for act in ("cancel", "pause", "resume", "retry"):
            assert f"/runs/{run}/{act}" not in found
            assert ann.get(f"/runs/{run}/{act}").status_code == 403
            form = Page(get(ann, "/runs").text).hidden
            assert ann.post(f"/runs/{run}/{act}", data=form).status_code == 403
    assert house.status(run) == "paused"


def test_who_may_not_decide_is_not_asked_to(house: House, site: Site, stan: httpx.Client) -> None:
    run = house.start(gate_flow("public-gate", approvers=["ann"]))
    with site.browser("eve") as eve:
        for path in (f"/runs/{run}", f"/runs/{run}/steps/ask"):
            assert "Decide" not in words(eve, path)
            assert "Decide" in words(stan, path)


def test_nobody_sees_a_run_of_a_flow_that_they_may_not_read(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser("eve") as eve:
        for path in ("", "/events", "/steps/ask", "/stream"):
            assert eve.get(f"/runs/{run}{path}").status_code == 404, path


def test_secrets_are_shown_as_names_only(house: House, stan: httpx.Client) -> None:
    flow = gate_flow("secretive", approvers=["ann"])
    flow["steps"]["pay"]["args"] = {"value": "{{secret.BANK}}"}
    run = house.start(flow)
    said = words(stan, f"/runs/{run}/steps/ask")
    assert "secret.BANK" in said or "BANK" in said
