"""What people do with it, in a real browser: start a run, watch it, decide by a link, see the end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.browser import DESK, PHONE, is_too_wide, tab
from tests.browser.office import Office
from tests.browser.signing_in import sign_in

pytestmark = pytest.mark.xdist_group("browser")

orders = itertools.count(1)
PATIENCE_S = 20.0
MARK = "window.wasHereBefore = true"
IS_SAME_PAGE = "window.wasHereBefore === true"


def start(page: Page) -> str:
    """Start a refund with the form that was made from its schema; give the run's id."""
    page.goto("/flows/refund")
    page.get_by_label("Order").fill(f"A-{next(orders)}")
    page.get_by_label("Amount").fill("120")
    page.get_by_label("Reason").select_option("damaged")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/runs/*")
    return page.url.rpartition("/")[2]


def by_hand(page: Page, is_there: Callable[[], bool]) -> None:
    """Refresh until something is there, as one does without JavaScript."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < deadline, page.inner_text("body")
        page.reload()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_run_is_started_watched_approved_by_a_link_and_seen_to_complete(
    browser: Browser, place: Office, size: dict[str, int]
) -> None:
    with tab(browser, place.base, size=size) as page, tab(browser, place.base, size=size) as letter:
        sign_in(page, "stan")
        run = start(page)
        page.evaluate(MARK)
        expect(page.locator("[data-step=review].status-waiting")).to_be_visible()
        assert not is_too_wide(page)

        letter.goto(place.link(run))
        expect(letter.get_by_role("heading", level=1)).to_have_text("review of refund")
        expect(letter.locator("body")).to_contain_text("C. Customer")
        assert not is_too_wide(letter)
        letter.get_by_label("Account").select_option("main")
        letter.get_by_label("Comment").fill("as agreed")
        letter.get_by_role("button", name="Approve").click()
        expect(letter.get_by_role("heading", name="Approved")).to_be_visible()

        expect(page.locator("[data-step=pay].status-done")).to_be_visible()
        expect(page.locator("#run-head")).to_contain_text("completed")
        assert page.evaluate(IS_SAME_PAGE)
    assert place.system.workflows.get(run)["output"] == "paid 120"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_same_without_javascript(browser: Browser, place: Office, size: dict[str, int]) -> None:
    with (
        tab(browser, place.base, size=size, javascript=False) as page,
        tab(browser, place.base, size=size, javascript=False) as letter,
    ):
        sign_in(page, "stan")
        run = start(page)
        by_hand(page, page.locator("[data-step=review].status-waiting").is_visible)

        letter.goto(place.link(run))
        letter.get_by_label("Account").select_option("goodwill")
        letter.get_by_role("button", name="Approve").click()
        expect(letter.get_by_role("heading", name="Approved")).to_be_visible()

        by_hand(page, page.locator("[data-step=tell].status-done").is_visible)
        expect(page.locator("#run-head")).to_contain_text("completed")


def test_a_new_gate_appears_in_the_inbox_without_a_reload_and_goes_when_it_is_decided(
    browser: Browser, place: Office
) -> None:
    with tab(browser, place.base) as inbox, tab(browser, place.base) as page:
        sign_in(inbox, "ann", "/approvals")
        inbox.evaluate(MARK)
        sign_in(page, "stan")
        run = start(page)
        entry = inbox.locator(f"a[href$='/runs/{run}/gates/review']")
        expect(entry).to_be_visible()
        with tab(browser, place.base) as desk:
            sign_in(desk, "finn", f"/runs/{run}/gates/review")
            desk.get_by_role("button", name="Deny").click()
            expect(desk.get_by_role("heading", name="Denied")).to_be_visible()
        expect(entry).to_have_count(0)
        assert inbox.evaluate(IS_SAME_PAGE)


def test_who_cancels_is_asked_first_and_is_written_down(browser: Browser, place: Office) -> None:
    with tab(browser, place.base) as page:
        sign_in(page, "stan")
        run = start(page)
        page.get_by_role("link", name="Cancel").click()
        assert place.system.workflows.status(run) == "paused"
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#run-head")).to_contain_text("cancelled")
    last = [event for event in place.system.workflows.events(run) if event["type"] == "run_cancelled"]
    assert [event["actor"] for event in last] == ["stan"]


def test_everything_on_the_way_to_a_decision_is_reached_by_the_keyboard(
    browser: Browser, place: Office
) -> None:
    run = place.system.start(
        "refund", {"order": f"K-{next(orders)}", "amount": 3, "reason": "late"}, by="stan"
    )
    with tab(browser, place.base) as letter:
        letter.goto(place.link(run))
        focused = []
        for _ in range(40):
            letter.keyboard.press("Tab")
            name = letter.evaluate("document.activeElement.name || document.activeElement.localName")
            focused.append(name)
            outline = letter.evaluate(
                "(style => style.outlineStyle !== 'none' || style.boxShadow !== 'none')"
                "(getComputedStyle(document.activeElement))"
            )
            assert outline or name == "body", f"one does not see that {name} has the focus"
            if focused.count("decision") == 2:
                break
        assert {"f.account", "comment"} <= set(focused), focused
        assert focused.count("decision") == 2
