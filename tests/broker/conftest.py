from __future__ import annotations

from collections.abc import Iterator

import fakeredis
import pytest
import redis

from wfcelery.broker.client import connect


@pytest.fixture
def valkey(valkey_url: str) -> Iterator[redis.Redis]:
    """A client of an empty, real server."""
    with connect(valkey_url) as client:
        client.flushall()
        yield client


@pytest.fixture(params=["fakeredis", "valkey"])
def client(request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    """A client of an empty server: the test runs once on each kind."""
    if request.param == "fakeredis":
        with fakeredis.FakeRedis() as fake:
            yield fake
    else:
        yield request.getfixturevalue("valkey")
