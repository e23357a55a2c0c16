"""One system for all tests of the web, with an executor and a worker; sites are quick to open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proof import problems
from tests.services import postgres as postgres_service
from tests.system.system import System
from tests.web.server import House, Site, write_policy


def _house(folder: Path, url: str) -> Iterator[House]:
    system = System(folder, url)
    house = House(system, folder)
    write_policy(folder)
    try:
        both = system.executor(ready=None, WFCELERY_POLICY=str(house.policy)), system.worker(ready=None)
        system.ready(*both)
        yield house
    finally:
        house.close()
    assert problems(url) == []


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A system on SQLite."""
    folder = tmp_path_factory.mktemp("web")
    yield from _house(folder, f"sqlite:///{folder}/wfcelery.db")


@pytest.fixture(scope="session")
def postgres_house(
    tmp_path_factory: pytest.TempPathFactory, postgres: postgres_service.Server
) -> Iterator[House]:
    """The same on PostgreSQL."""
    with postgres.database() as url:
        yield from _house(tmp_path_factory.mktemp("web-postgres"), url)


@pytest.fixture
def quiet_house(tmp_path: Path, sqlite_url: str) -> Iterator[House]:
    """A system that no other test has touched, for who compares all that it holds."""
    yield from _house(tmp_path, sqlite_url)


@pytest.fixture(scope="session")
def site(house: House) -> Site:
    """The app with rights."""
    return house.site()
