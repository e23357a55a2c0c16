"""The same on PostgreSQL: what the tools read and write does not depend on the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp import test_agents
from tests.mcp.agents import Agency, agency
from tests.services import postgres as postgres_service


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, postgres: postgres_service.Server) -> Iterator[Agency]:
    with postgres.database() as url, agency(tmp_path_factory.mktemp("mcp-postgres"), url) as made:
        yield made


def test_an_agent_follows_a_run_to_its_end_on_postgresql(served: Agency) -> None:
    test_agents.test_an_agent_defines_starts_and_follows_a_run_that_a_person_approves(served, "http")


def test_what_an_agent_may_not_do_is_refused_and_recorded_on_postgresql(served: Agency) -> None:
    test_agents.test_an_agent_gets_around_no_gate_and_each_attempt_is_recorded(served, "http")
    test_agents.test_what_is_not_allowed_is_refused_and_recorded(served, "http")
