"""Signing in, as a browser does it."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.office import TOKENS


def sign_in(page: Page, user: str, path: str = "/runs") -> None:
    page.goto(path)
    page.get_by_label("Your token").fill(TOKENS[user])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**{path}")
