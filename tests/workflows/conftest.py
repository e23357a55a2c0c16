from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from tests.workflows.system import SECRET, System, celery_app
from wfcelery.workflows import Workflows


@pytest.fixture
def broker_url(valkey_url: str) -> Iterator[str]:
    """An empty broker, as Celery spells it."""
    client = redis.Redis.from_url(valkey_url)
    client.flushall()
    yield valkey_url.replace("unix://", "redis+socket://", 1)
    client.close()


@pytest.fixture
def system(broker_url: str, database_url: str) -> Iterator[System]:
    """A running executor with workers."""
    with System(broker_url, database_url) as running:
        yield running


@pytest.fixture
def workflows(system: System) -> Iterator[Workflows]:
    """What an application has."""
    app = celery_app(system.broker_url)
    with Workflows(app, system.database_url, secret_key=SECRET, user="ann") as made:
        yield made
