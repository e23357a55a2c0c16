"""What must be true after any trouble: asked of the ledger, which no engine writes, and of the tables."""

from __future__ import annotations

import json
from collections.abc import Collection

from tests.system.ledger import Ledger, Line
from tests.system.system import System
from wfcelery.core.values import Json


def in_flight(ledger: Ledger, pids: Collection[int] | None = None) -> list[Line]:
    """The tools that were called and have not returned, in any process or in these."""
    ended = {_call(line) for line in ledger.lines("end")}
    return [
        line
        for line in ledger.lines("begin")
        if _call(line) not in ended and (pids is None or line.pid in pids)
    ]


def attempts(system: System, run: str) -> list[tuple[int, str, Json]]:
    """The attempts at the steps of a run: number, status, error."""
    rows = system.query(
        "SELECT attempt, status, error FROM workflow_steps "  # noqa: S608
        f"WHERE workflow_id = '{run}' ORDER BY name, item, attempt"
    )
    return [
        (int(str(number)), str(status), None if error is None else json.loads(str(error)))
        for number, status, error in rows
    ]


def causeless(system: System) -> list[tuple[str, str, int]]:
    """The attempts that follow one that neither failed nor was lost."""
    rows = system.query("SELECT workflow_id, name, item, attempt, error FROM workflow_steps")
    errors = {(str(row[0]), str(row[1]), int(str(row[2])), int(str(row[3]))): row[4] for row in rows}
    return [
        (run, step, attempt)
        for run, step, item, attempt in errors
        if attempt > 1 and errors[run, step, item, attempt - 1] is None
    ]


def epoch(system: System) -> int:
    """The executor's number: each one that takes over has the next."""
    rows = system.query("SELECT epoch FROM executor")
    return int(str(rows[0][0])) if rows else 0


def assert_all_completed(system: System, runs: Collection[str]) -> None:
    """All runs end well, each join acted once, and nothing was repeated without a recorded reason."""
    system.finish(runs, 90.0)
    assert system.statuses() == {"completed": len(runs)}
    assert system.unexplained() == {}
    assert causeless(system) == []
    assert set(system.joins("bottom").values()) <= {1}


def _call(line: Line) -> tuple[str, str, int, int, int]:
    return (line.run, line.step, line.item, line.attempt, line.pid)
