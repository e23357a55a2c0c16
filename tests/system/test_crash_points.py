"""The executor dies at the worst moments: between its commit, its publishing and letting go of its batch."""

from __future__ import annotations

import signal

import pytest

from tests.system.flows import chain, diamond
from tests.system.sabotage import harm
from tests.system.system import Process, System

RUNS = 6


@pytest.mark.parametrize("place", ["before-send", "after-send", "before-done"])
def test_an_executor_killed_between_commit_and_letting_go_loses_and_repeats_nothing(
    system: System, place: str
) -> None:
    system.worker()
    first = system.executor(**harm(f"{place}:2"))
    # Not waited for: who would answer may be dead before that.
    flows = [diamond()] * RUNS + [chain(5)] * RUNS
    runs = [system.workflows.start(flow, {}, wait=False).id for flow in flows]
    out = [_out_at_death(system, first)]
    second = system.executor(ready=None, **harm(f"{place}:2"))
    out.append(_out_at_death(system, second))
    system.executor()
    system.finish(runs, 90)
    assert min(out) > 0
    assert system.statuses() == {"completed": 2 * RUNS}
    assert system.joins("bottom") == dict.fromkeys(runs[:RUNS], 1)
    assert system.ledger.repeated() == {}
    assert system.count_events("report_refused") == 0


def _out_at_death(system: System, executor: Process) -> int:
    """Wait until it has killed itself; tell how many steps the tables say are out."""
    system.until(lambda: executor.popen.poll() is not None, "the executor to kill itself")
    assert executor.popen.returncode == -signal.SIGKILL, executor.said()
    return system.out()
