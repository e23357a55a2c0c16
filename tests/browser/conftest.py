"""A browser for each module, and one office for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.browser import chromium
from tests.browser.office import Office, office


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for longer than a module: its event loop stands in the way of other tests in this process."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("office")) as made:
        yield made
