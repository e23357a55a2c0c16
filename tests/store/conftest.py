"""A database with tables, of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.book import Book
from wfcelery.store import migrations, open_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wfcelery.store import Database


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    with opened.transaction() as conn:
        migrations.upgrade(conn)
    yield opened
    opened.close()


@pytest.fixture
def book(database: Database) -> Book:
    return Book(database)
