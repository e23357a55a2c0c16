"""The example `flask_signup`: somebody signs up, a person approves by a link, the account is made."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.browser import chromium, faults_of, tab
from tests.contrib.flask.signup_place import PASSWORD, SignupPlace, signup_place

pytestmark = pytest.mark.xdist_group("flask-signup")
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignupPlace]:
    with signup_place(tmp_path_factory.mktemp("signup")) as made:
        yield made


def select(place: SignupPlace, statement: str) -> list[tuple[object, ...]]:
    path = place.environment["SIGNUP_DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as conn:
        return conn.execute(statement).fetchall()


def sign_up(place: SignupPlace, name: str) -> str:
    """Send the public form; give the address of the page that says how it stands."""
    answer = httpx.post(place.base, data={"name": name, "email": f"{name}@example.org"})
    assert answer.status_code == 303, answer.text
    return f"{place.base}{answer.headers['location']}"


def by_hand(page: Page, text: str) -> None:
    """Refresh until it is said, as people do."""
    deadline = time.monotonic() + PATIENCE_S
    while text not in page.inner_text("main"):
        assert time.monotonic() < deadline, page.inner_text("main")
        page.reload()


def in_a_browser(story: Callable[[], None]) -> None:
    """In a thread of its own: another browser of this process may be open already."""
    with ThreadPoolExecutor(1) as one:
        one.submit(story).result()


def test_in_a_browser_a_link_approves_and_the_account_is_made(place: SignupPlace) -> None:
    def story() -> None:
        with chromium() as browser, tab(browser, place.base) as zoe, tab(browser, place.base) as letter:
            zoe.goto("/")
            zoe.get_by_label("Name").fill("Zoe")
            zoe.get_by_label("E-mail").fill("zoe@example.org")
            zoe.get_by_role("button", name="Sign up").click()
            expect(zoe.locator("main")).to_contain_text("Somebody looks at it")
            assert faults_of(zoe) == []

            link = place.link("zoe@example.org")
            assert link.startswith(f"{place.base}/flows/a/")
            letter.goto(link)
            expect(letter.get_by_role("heading", level=1)).to_have_text("review of signup")
            assert select(place, "SELECT * FROM accounts WHERE email = 'zoe@example.org'") == []
            letter.get_by_role("button", name="Approve").click()
            expect(letter.get_by_role("heading", name="Approved")).to_be_visible()
            by_hand(zoe, "Welcome: your account is there.")

    in_a_browser(story)
    made = select(place, "SELECT email, count(*) FROM accounts WHERE email = 'zoe@example.org'")
    assert made == [("zoe@example.org", 1)]


def test_the_staff_denies_in_the_console_with_the_sign_in_of_the_application(place: SignupPlace) -> None:
    page = sign_up(place, "max")
    with httpx.Client(base_url=place.base, follow_redirects=True, timeout=20) as ann:
        assert ann.get("/flows/api/v1/runs").status_code == 401
        assert ann.post("/staff", data={"name": "ann", "password": "wrong"}).status_code == 403
        inbox = ann.post("/staff", data={"name": "ann", "password": PASSWORD})
        assert inbox.url.path == "/flows/approvals"
        [(run,)] = select(place, "SELECT run FROM signups WHERE email = 'max@example.org'")
        gate = f"/flows/runs/{run}/gates/review"
        place.system.until(lambda: gate in ann.get("/flows/approvals").text, "the gate in the inbox")
        text = ann.get(gate).text
        action = re.search(r'<form[^>]*method="post"[^>]*action="([^"]+)"', text)
        assert action is not None
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text))
        assert ann.post(action[1], data=fields | {"decision": "deny"}).status_code == 200
        # Who decides may not start or define anything.
        form = {"X-CSRF-Token": fields["csrf"]}
        assert ann.post("/flows/api/v1/runs", json={"flow": "signup"}, headers=form).status_code == 403
    place.system.until(lambda: "We are sorry" in httpx.get(page).text, "the page to say so")
    assert select(place, "SELECT * FROM accounts WHERE email = 'max@example.org'") == []


def test_the_commands_of_the_application_are_ours_with_its_settings(place: SignupPlace) -> None:
    sign_up(place, "kim")
    place.link("kim@example.org")
    assert '"kim@example.org"' in place.flask("wfcelery", "ps", "-o", "json", WFCELERY_USER="ann")
    assert place.flask("wfcelery", "relay", "--once") == "started 0, refused 0, waiting 0\n"


def test_a_form_that_is_not_filled_in_leaves_nothing(place: SignupPlace) -> None:
    before = select(place, "SELECT count(*) FROM signups")
    assert httpx.post(place.base, data={"name": "", "email": "nobody"}).status_code == 400
    assert select(place, "SELECT count(*) FROM signups") == before
    assert select(place, "SELECT count(*) FROM wfcelery_outbox") == [(0,)]
