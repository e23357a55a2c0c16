"""One system for all tests of agents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp.agents import Agency, agency


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agency]:
    """An executor, a worker and a console, under a policy."""
    with agency(tmp_path_factory.mktemp("mcp")) as made:
        yield made
