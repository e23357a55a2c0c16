"""Every page: nothing that people cannot read or reach, no sideways scrolling on a phone, a strict policy.

Looked at by axe-core, in light and dark. `make screenshots` keeps the pictures, for the documentation.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.browser import DESK, PHONE, faults_of, is_too_wide, tab
from tests.browser.office import TOKENS, Office
from tests.browser.signing_in import sign_in
from tests.system.flower import start_flower
from wfcelery.core.values import Json
from wfcelery.web.headers import POLICY

pytestmark = pytest.mark.xdist_group("browser")

KEPT = "WFCELERY_TEST_SCREENSHOTS"
PICTURES = (
    "approval",
    "approval-phone",
    "flow",
    "flower",
    "inbox",
    "run",
    "run-completed",
    "run-dark",
    "run-phone",
    "runs",
    "system",
)
"""Those of the documentation."""

FOR_ANN = ("gate", "inbox", "approval", "decided")
INLINE = re.compile(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:")
ORDERS = {"A-1041": 120, "A-1042": 79.5, "A-1043": 1450}


@pytest.fixture(scope="module")
def runs(place: Office) -> dict[str, str]:
    """Runs in every state, for the pictures."""
    start, system = place.system.start, place.system
    made = {
        order: start("refund", {"order": order, "amount": amount, "reason": "damaged"}, by="stan")
        for order, amount in ORDERS.items()
    }
    system.until(lambda: {system.workflows.status(run) for run in made.values()} == {"paused"}, "the gates")
    form = {"account": "main"}
    system.workflows.decide(made["A-1041"], "review", approve=True, form=form, comment="as agreed", by="ann")
    system.until(lambda: system.workflows.status(made["A-1041"]) == "completed", "the end")
    load: Json = {
        "tool": "fail",
        "args": {"message": "the file is not there"},
        "retry": {"max_attempts": 1},
        "done": True,
    }
    made["failed"] = start({"name": "import", "start": "load", "steps": {"load": load}}, by="stan")
    system.until(lambda: system.workflows.status(made["failed"]) == "failed", "the failure")
    return made


@pytest.fixture(scope="module")
def pages(place: Office, runs: dict[str, str]) -> dict[str, str]:
    """Every page of the console, by the name of its picture."""
    done, waits = runs["A-1041"], runs["A-1043"]
    return {
        "runs": "/runs",
        "run": f"/runs/{waits}",
        "run-completed": f"/runs/{done}",
        "run-failed": f"/runs/{runs['failed']}",
        "step": f"/runs/{done}/steps/review",
        "events": f"/runs/{done}/events",
        "gate": f"/runs/{waits}/gates/review",
        "cancel": f"/runs/{waits}/cancel",
        "inbox": "/approvals",
        "flows": "/flows",
        "flow": "/flows/refund",
        "system": "/system",
        "approval": place.link(waits).removeprefix(place.base),
        "decided": place.link(done).removeprefix(place.base),
        "no-link": "/a/nothing",
        "not-found": "/nothing",
    }


def visited(page: Page, pages: dict[str, str]) -> Iterator[str]:
    """Go to every page, as the one for whom it is; give its name."""
    for user, is_theirs in (("stan", False), ("ann", True)):
        page.context.clear_cookies()
        sign_in(page, user)
        for name, path in pages.items():
            if (name in FOR_ANN) is is_theirs:
                page.goto(path)
                yield name


def keep(page: Page, name: str, folder: Path) -> None:
    """Take a picture; it is kept where the documentation has its own, if that is wanted."""
    where = Path(os.environ[KEPT]) if KEPT in os.environ and name in PICTURES else folder
    page.screenshot(path=where / f"{name}.png", animations="disabled")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_fault_on_any_page(
    browser: Browser, place: Office, pages: dict[str, str], dark: bool, tmp_path: Path
) -> None:
    found = {}
    with tab(browser, place.base, size=DESK, dark=dark) as page:
        page.goto("/login")
        found["login"] = faults_of(page)
        for name in visited(page, pages):
            found[name] = faults_of(page)
            keep(page, f"{name}-dark" if dark else name, tmp_path)
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_no_page_is_wider_than_a_phone(
    browser: Browser, place: Office, pages: dict[str, str], tmp_path: Path
) -> None:
    wide = []
    with tab(browser, place.base, size=PHONE) as page:
        for name in visited(page, pages):
            if is_too_wide(page):
                wide.append(name)
            keep(page, f"{name}-phone", tmp_path)
    assert wide == []


def test_every_page_has_the_strict_policy_and_no_styles_or_scripts_of_its_own(
    place: Office, pages: dict[str, str]
) -> None:
    with httpx.Client(base_url=place.base) as client:
        page = client.get("/login")
        csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert csrf is not None
        client.post("/login", data={"csrf": csrf[1], "token": TOKENS["stan"]})
        for path in ("/login", *pages.values()):
            answer = client.get(path)
            assert answer.headers["content-security-policy"] == POLICY, path
            assert answer.headers["cache-control"] == "no-store", path
            assert not re.search(
                r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:", answer.text
            ), path


def test_flower_shows_our_steps(browser: Browser, place: Office, tmp_path: Path) -> None:
    flower = start_flower(place.system)
    system, numbers = place.system, itertools.count(1)

    def is_shown() -> bool:
        """Flower tells of what happens after it has asked for events."""
        given: Json = {"order": f"F-{next(numbers)}", "amount": 5, "reason": "late"}
        run = system.start("refund", given, by="stan")
        system.until(lambda: system.workflows.status(run) == "paused", "the gate")
        return any(each["name"] == "refund.look_up" for each in flower.tasks().values())

    system.until(is_shown, "Flower to show a step")
    who = {"username": flower.credentials.user, "password": flower.credentials.password}
    context = browser.new_context(http_credentials=who, viewport=DESK)  # type: ignore[arg-type] # a typed dict
    page = context.new_page()
    page.goto(f"{flower.base}/tasks")
    page.get_by_text("refund.look_up").first.wait_for()
    keep(page, "flower", tmp_path)
    context.close()
