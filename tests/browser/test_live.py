"""The script of live pages: what somebody has focused, opened, scrolled or typed stays when news come."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.browser import DESK, PHONE, tab
from tests.browser.office import Office
from tests.browser.signing_in import sign_in
from wfcelery.core.values import Json

pytestmark = pytest.mark.xdist_group("browser")

FOCUSED = "document.activeElement.getAttribute('href')"


def waiting(place: Office, order: str) -> str:
    """A run that waits at its gate."""
    given: Json = {"order": order, "amount": 5, "reason": "late"}
    run = place.system.start("refund", given, by="stan")
    place.system.until(lambda: place.system.workflows.status(run) == "paused", "the gate")
    return run


def is_live(page: Page) -> None:
    expect(page.locator("[data-live-mark]")).to_have_attribute("data-state", "live")


def test_what_is_focused_and_opened_stays_when_the_page_changes(browser: Browser, place: Office) -> None:
    run = waiting(place, "L-1")
    with tab(browser, place.base, size=DESK) as page:
        sign_in(page, "stan", f"/runs/{run}")
        is_live(page)
        details = page.locator("#events details").first
        key = details.get_attribute("data-key")
        details.locator("summary").click()
        link = page.locator("#steps a").first
        link.focus()
        before = page.evaluate(FOCUSED)
        place.system.workflows.pause(run, by="stan")
        expect(page.locator("#run-head")).to_contain_text("held")
        assert page.locator(f"#events details[data-key={key}]").evaluate("each => each.open")
        assert page.evaluate(FOCUSED) == before
        assert before is not None


def test_the_place_to_which_a_wide_picture_was_scrolled_stays(browser: Browser, place: Office) -> None:
    run = waiting(place, "L-2")
    with tab(browser, place.base, size=PHONE) as page:
        sign_in(page, "stan", f"/runs/{run}")
        is_live(page)
        page.locator("#graph").evaluate("each => each.scrollTo(40, 0)")
        before = page.locator("#graph").evaluate("each => each.scrollLeft")
        place.system.workflows.pause(run, by="stan")
        expect(page.locator("#run-head")).to_contain_text("held")
        assert page.locator("#graph").evaluate("each => each.scrollLeft") == before


def test_a_stream_that_breaks_is_opened_again_and_misses_nothing(browser: Browser, place: Office) -> None:
    run = waiting(place, "L-3")
    with tab(browser, place.base, size=DESK) as page:
        sign_in(page, "stan", f"/runs/{run}")
        is_live(page)
        # A page that is put away has no stream; what happens meanwhile is there when it is looked at again.
        page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
        place.system.workflows.pause(run, by="stan")
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        expect(page.locator("#run-head")).to_contain_text("held")


def test_the_mark_goes_when_the_run_has_ended(browser: Browser, place: Office) -> None:
    run = waiting(place, "L-4")
    with tab(browser, place.base, size=DESK) as page:
        sign_in(page, "stan", f"/runs/{run}")
        is_live(page)
        place.system.workflows.cancel(run, by="stan")
        expect(page.locator("#run-head")).to_contain_text("cancelled")
        expect(page.locator("[data-live-mark]")).to_be_hidden()
        expect(page.locator("#run-head a", has_text="Cancel")).to_have_count(0)


def test_a_new_run_appears_in_the_list_without_a_reload(browser: Browser, place: Office) -> None:
    with tab(browser, place.base, size=DESK) as page:
        sign_in(page, "stan", "/runs")
        is_live(page)
        page.locator("summary", has_text="Filter").click()
        page.get_by_label("Flow", exact=True).fill("half a wo")
        run = waiting(place, "L-5")
        expect(page.locator(f"a[href='/runs/{run}']")).to_be_visible()
        expect(page.get_by_label("Flow", exact=True)).to_have_value("half a wo")
