"""Runs and approvals in Django's admin: real HTTP, a real system, and once a real browser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browser import tab
from tests.contrib.django.shop import PASSWORD, Shop, post, visitor
from wfcelery.core.values import Json

pytestmark = pytest.mark.xdist_group("django")

FAILS: Json = {
    "name": "fails",
    "start": "a",
    "steps": {"a": {"tool": "fail", "args": {"message": "no"}, "retry": {"max_attempts": 1}, "done": True}},
}


@pytest.fixture
def base(wsgi: str) -> str:
    return wsgi


def waits(shop: Shop) -> str:
    """A run that waits for a manager."""
    run = shop.start("order", {"order": 0, "customer": "ann", "amount": 900}, by="app:django")
    shop.until(lambda: shop.workflows.status(run) == "paused", "the gate")
    return run


def test_a_manager_approves_in_the_admin_with_a_browser(shop: Shop, browser: Browser, base: str) -> None:
    with tab(browser, base) as page:
        page.goto("/")
        page.get_by_label("Customer").fill("Ann")
        page.get_by_label("Amount").fill("900")
        page.get_by_role("button", name="Order").click()
        expect(page.locator("table tr").nth(1)).to_contain_text("Ann")
        [(order, run)] = shop.query("SELECT id, run FROM orders_order ORDER BY id DESC LIMIT 1")
        shop.until(lambda: shop.workflows.status(str(run)) == "paused", "the gate")
        page.goto("/admin/")
        page.get_by_label("Username").fill("mia")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="Approvals", exact=True).first.click()
        page.get_by_role("link", name=str(run)).click()
        expect(page.locator("#gate-review")).to_contain_text("May the goods of this order go out?")
        page.get_by_label("Comment").fill("fine with me")
        page.get_by_role("button", name="Approve").click()
        expect(page.locator(".messagelist")).to_contain_text("The gate review is approved")
        shop.workflows.wait(str(run), 20.0)
        page.goto("/")
        expect(page.locator(f"#order-{order}")).to_contain_text("shipped")
    found: Any = shop.workflows.get(str(run))["steps"]
    steps = {each["name"]: each for each in found}
    assert steps["review"]["result"]["by"] == ["mia"]
    [vote] = shop.events(str(run), "vote_cast")
    assert (vote["actor"], vote["data"]["via"]) == ("mia", "django")  # type: ignore[index,call-overload]


def test_gates_are_denied_from_the_list_with_a_comment(shop: Shop, base: str) -> None:
    run = waits(shop)
    with visitor(base, "mia") as client:
        path = "/admin/wfcelery/approval/"
        assert run in client.get(path).text
        page = post(client, path, gate=f"{run}:review:1", act="deny", comment="too much")
        assert "The gate review is denied" in page.text
    done = shop.workflows.wait(run, 20.0)
    assert "turned down" in json.dumps(done["output"])


def test_a_refusal_is_a_message_and_nothing_changes(shop: Shop, base: str) -> None:
    run = waits(shop)
    with visitor(base, "rita") as client:
        page = post(client, f"/admin/wfcelery/run/{run}/change/", gate=f"{run}:review:1", act="approve")
        assert "Not done: rita may not do this, the permission decide is missing" in page.text
        page = post(client, f"/admin/wfcelery/run/{run}/change/", act="cancel")
        assert "Not done: rita may not do this, the permission cancel is missing" in page.text
    assert shop.workflows.status(run) == "paused"
    with visitor(base, "mia") as client:
        page = post(client, f"/admin/wfcelery/run/{run}/change/", gate=f"{run}:review:7", act="approve")
        assert "Not done: " in page.text
        assert shop.workflows.status(run) == "paused"
        page = post(client, f"/admin/wfcelery/run/{run}/change/", act="cancel", reason="not wanted")
        assert f"Run {run} is cancelled" in page.text
        assert "not wanted" in page.text
    assert shop.workflows.status(run) == "cancelled"


def test_runs_are_found_by_filters_and_retried(shop: Shop, base: str) -> None:
    run = shop.start(FAILS, by="app:django")
    shop.until(lambda: shop.workflows.status(run) == "failed", "the failure")
    with visitor(base, "max") as client:
        path = "/admin/wfcelery/run/"
        assert run in client.get(path, params={"status": "failed", "flow": "fails"}).text
        assert run not in client.get(path, params={"status": "completed"}).text
        assert "No runs." in client.get(path, params={"flow": "nothing"}).text
        page = post(client, path, run=run, act="retry")
        assert f"Run {run} goes on from where it failed" in page.text
        assert client.get("/admin/wfcelery/run/nothing/change/").status_code == 404


def test_who_may_not_read_runs_sees_none_in_the_admin(shop: Shop, base: str) -> None:
    with visitor(base, "carl") as client:
        assert "Approvals" not in client.get("/admin/").text
        assert client.get("/admin/wfcelery/run/").status_code == 403
        assert client.get("/admin/wfcelery/approval/").status_code == 403
    with visitor(base) as client:
        assert client.get("/admin/wfcelery/run/").status_code == 302
