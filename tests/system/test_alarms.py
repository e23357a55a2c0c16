"""The queries and the backup of docs/operations.md, on real databases."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from tests.proof import problems
from tests.system.flows import chain, single
from tests.system.system import ROOT, System

PAGE = (ROOT / "docs" / "operations.md").read_text()


def queries() -> dict[str, str]:
    """The queries by the beginning of what is said about them."""
    block = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)[0]
    found = re.findall(r"-- (.*?)\n([^;]*;)", block)
    return {re.split(r"[:.]", words)[0]: query for words, query in found}


def test_every_query_is_answered_and_says_that_a_system_is_well(postgres_system: System) -> None:
    system = postgres_system
    system.pair()
    runs = [system.start(chain(2)), system.start(single("stumble", {"times": 9}, retry={"max_attempts": 1}))]
    system.finish(runs)
    answers = {words: system.query(query) for words, query in queries().items()}
    (lease,) = answers.pop("Nobody holds the lease")
    assert (str(lease[0]).partition("-")[0], lease[1]) == ("executor", 1)
    assert answers == {
        "Steps that should be on their way and are not, for a minute": [(0,)],
        "Timers that should have acted a minute ago": [(0,)],
        "The oldest step that waits for a worker": [(None,)],
        "Workers that were not heard for a minute": [],
        "Failures of the last hour, by flow and kind": [("one-stumble", "ToolError", 1)],
        "Steps that lost their worker and wait for a person (`on_lost": [],
        "Notices that nobody will get any more, and why": [],
        "Notices that wait for longer than they should": [(0,)],
        "Messages that could not be handled": [(0,)],
    }


def test_a_backup_of_a_running_system_is_whole_and_a_restore_goes_on_with_it(sqlite_system: System) -> None:
    system = sqlite_system
    executor, worker = system.pair()
    system.ledger.gate.touch()
    run = system.start(single("hold", {"value": 7}))
    system.until(lambda: system.ledger.lines("begin"), "the step to begin")
    backup = system.folder / "backup.db"
    with closing(sqlite3.connect(system.folder / "wfcelery.db")) as conn:
        conn.execute("VACUUM INTO ?", (str(backup),))
    assert problems(f"sqlite:///{backup}") == []

    system.ledger.gate.unlink()
    system.finish([run])
    later = system.start(chain(2))
    system.finish([later])
    executor.terminate()
    worker.terminate()
    _restore(system)
    system.flush()
    system.pair()
    system.finish([run])
    assert system.workflows.get(run)["output"] == 7
    assert len(system.ledger.lines("begin")) == 4  # hold, two of the chain, and hold again
    assert [found["id"] for found in system.workflows.list()] == [run]


def _restore(system: System) -> None:
    system.workflows.close()
    system._engine.dispose()
    for ending in ("", "-wal", "-shm"):
        (system.folder / f"wfcelery.db{ending}").unlink(missing_ok=True)
    (system.folder / "backup.db").rename(system.folder / "wfcelery.db")
