"""What a worker is given: the broker and its own key; no database, no secret, no code that speaks SQL."""

from __future__ import annotations

from pathlib import Path

from tests.system.flows import single
from tests.system.system import SECRET, System


def test_a_worker_knows_neither_the_database_nor_the_secret(system: System) -> None:
    _, worker = system.pair()
    run = system.start(single("look_around"))
    system.finish([run])
    seen = system.workflows.get(run)["output"]
    assert seen == {
        "sql": [],
        "settings": [
            "WFCELERY_BROKER_URL",
            "WFCELERY_LEASE_S",
            "WFCELERY_TEST_LEDGER",
            "WFCELERY_TOOLS",
            "WFCELERY_WORKER_KEY",
        ],
    }
    children = worker.children()
    assert len(children) == 2
    for pid in (worker.pid, *children):
        environment = Path(f"/proc/{pid}/environ").read_text()
        assert "WFCELERY_BROKER_URL" in environment
        assert "WFCELERY_DATABASE_URL" not in environment
        assert system.database_url not in environment
        assert SECRET not in environment
