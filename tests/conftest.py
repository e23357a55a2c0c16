"""What every test may ask for: real databases and brokers, started when first wanted, never skipped."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

# Imported here, and not first by its plugin at the end of the session: on CPython 3.11 a connection that is
# finalised during that late import ends the whole session with a SystemError.
from hypothesis import settings

from tests.proof import problems
from tests.services import postgres as postgres_service
from tests.services import shared
from tests.services import valkey as valkey_service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Whoever starts us in the background has us ignore Ctrl-C, and what we start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres_service.Server]:
    """One PostgreSQL for the whole run. It is not durable: a test about crashes starts its own."""
    own = tmp_path_factory.getbasetemp()
    among_others = "PYTEST_XDIST_WORKER" in os.environ
    directory = (own.parent if among_others else own) / "services" / "postgres"
    with postgres_service.server(directory) as server:
        yield server
    if not among_others:
        shared.wait_until_stopped(directory)


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, postgres: postgres_service.Server) -> Iterator[str]:
    """A new, empty database on PostgreSQL. Whoever makes an engine on it disposes of it."""
    with postgres.database() as url:
        yield url
        if not _corrupts(request):
            assert problems(url) == []


@pytest.fixture(autouse=True)
def _every_database_that_a_test_leaves_is_sound(request: pytest.FixtureRequest) -> Iterator[None]:
    if "tmp_path" not in request.fixturenames:
        yield
        return
    folder: Path = request.getfixturevalue("tmp_path")
    yield
    if not _corrupts(request):
        left = {path: problems(f"sqlite:///{path}") for path in folder.rglob("*.db") if _is_sqlite(path)}
        assert {path: found for path, found in left.items() if found} == {}


def _is_sqlite(path: Path) -> bool:
    """Whether it is a database of ours; beat's memory may have a name like one."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _corrupts(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("corrupts") is not None


@pytest.fixture
def sqlite_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new, empty database in a file."""
    path = tmp_path / "wfcelery.db"
    yield f"sqlite:///{path}"
    if path.exists() and not _corrupts(request):
        assert problems(f"sqlite:///{path}") == []


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A new, empty database: the test runs once on each kind."""
    url: str = request.getfixturevalue({"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param])
    return url


@pytest.fixture(scope="session")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Valkey of this test process alone, as a URL for redis-py; tests may flush it."""
    directory = tmp_path_factory.getbasetemp() / "services" / "valkey"
    with valkey_service.server(directory) as url:
        yield url
    shared.wait_until_stopped(directory)
