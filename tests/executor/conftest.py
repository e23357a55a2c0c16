from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.executor.desk import Desk


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    desk = Desk(database_url)
    try:
        yield desk
    finally:
        desk.close()
