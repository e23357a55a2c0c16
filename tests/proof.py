"""`wfcelery check` for tests: whatever a test leaves in a database must be sound."""

from __future__ import annotations

from wfcelery.core.limits import DEFAULT
from wfcelery.executor.definitions import Definitions
from wfcelery.store import migrations
from wfcelery.store.check import Problem, check
from wfcelery.store.database import open_database


def problems(url: str) -> list[Problem]:
    """List what is wrong in a database; nothing if it has no tables of ours."""
    database = open_database(url)
    catalogue = Definitions(None, DEFAULT)
    try:
        with database.reading() as conn:
            if migrations.version(conn) != migrations.HEAD:
                return []
            return check(conn, lambda each: catalogue.get(conn, each).flow)
    finally:
        database.close()
