"""A real Chromium. A page that logs an error, breaks its own policy or asks others for anything fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
TIMEOUT_MS = 20_000.0


def find_chromium() -> str:
    """Where the browser is; without one these tests fail, and say what to do."""
    named = os.environ.get("WFCELERY_TEST_CHROMIUM")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail("there is no Chromium on PATH; `apt install chromium`, or set WFCELERY_TEST_CHROMIUM")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class Tab:
    """One page, and what it complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def check(self, base: str) -> None:
        """Nothing went wrong, and nothing came from elsewhere."""
        assert self.complaints == []
        foreign = [url for url in self.loaded if urlsplit(url).netloc != urlsplit(base).netloc]
        assert foreign == []


@contextmanager
def tab(
    browser: Browser,
    base: str,
    *,
    size: Mapping[str, int] | None = None,
    javascript: bool = True,
    dark: bool = False,
) -> Iterator[Page]:
    """Open a page as one visitor: with cookies of its own."""
    context: BrowserContext = browser.new_context(
        base_url=base,
        viewport=dict(size or DESK),  # type: ignore[arg-type] # a typed dict of the same two
        java_script_enabled=javascript,
        color_scheme="dark" if dark else "light",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(TIMEOUT_MS)
    opened = Tab(context.new_page())
    opened.page.on("console", lambda said: _note(opened, said))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("request", lambda asked: _load(opened, asked))
    try:
        yield opened.page
        opened.check(base)
    finally:
        context.close()


def faults_of(page: Page) -> list[str]:
    """What axe-core finds: missing labels, poor contrast, wrong roles and the like."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {node['html'][:200]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def is_too_wide(page: Page) -> bool:
    """Whether one would have to scroll sideways."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return wide


def _note(opened: Tab, said: ConsoleMessage) -> None:
    # A page that is refused is an answer; the browser logs it all the same.
    if said.type == "error" and "Failed to load resource" not in said.text:
        opened.complaints.append(said.text)


def _load(opened: Tab, asked: Request) -> None:
    if not asked.url.startswith("data:"):
        opened.loaded.append(asked.url)
