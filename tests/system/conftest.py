"""Systems of real processes, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.system import System


@pytest.fixture
def system(tmp_path: Path, database_url: str) -> Iterator[System]:
    """A broker and a database; the test starts the processes it wants. Once on each database."""
    yield from _systems(tmp_path, database_url)


@pytest.fixture
def sqlite_system(tmp_path: Path, sqlite_url: str) -> Iterator[System]:
    """The same on SQLite only, where the database makes no difference."""
    yield from _systems(tmp_path, sqlite_url)


@pytest.fixture
def postgres_system(tmp_path: Path, postgres_url: str) -> Iterator[System]:
    """The same on PostgreSQL only."""
    yield from _systems(tmp_path, postgres_url)


def _systems(folder: Path, url: str) -> Iterator[System]:
    made = System(folder, url)
    try:
        yield made
    except BaseException:
        print(made.report())  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        made.close()
    made.check()
