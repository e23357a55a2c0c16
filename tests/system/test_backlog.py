"""A backlog is not a failure: it stands for longer than two leases, with one slow worker before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.system.flows import single
from tests.system.system import System
from wfcelery.broker.names import MARKER_TASK, STEPS_QUEUE, Names
from wfcelery.core.values import Json

RUNS = 2_000
LEASE_S = 3.0
QUICK = single("act")
SLOW = single("act", {"seconds": 0.004})
MOST_MARKERS = 20
DROPPED_WITHIN_S = 1.5


def test_nothing_of_a_backlog_is_failed_or_sent_twice(system: System) -> None:
    runs, accepted = _backlog(system, SLOW)
    markers = _finish_and_count_markers(system, runs)
    begun = system.ledger.lines("begin")
    assert begun[-1].at - accepted > 2 * system.lease_s
    assert system.statuses() == {"completed": RUNS}
    assert len(begun) == RUNS
    assert system.ledger.repeated() == {}
    assert _events_of_trouble(system) == {}
    assert 0 < max(markers) <= MOST_MARKERS


def test_a_backlog_that_is_flushed_away_finishes_all_the_same(system: System) -> None:
    runs, _ = _backlog(system, QUICK)
    system.until(lambda: len(system.ledger.lines("end")) > RUNS / 10, "a part to be done")
    waiting = _queued(system)
    system.flush()
    system.finish(runs, 90)
    assert waiting > RUNS / 2
    assert system.count_events("step_resent") > RUNS / 2
    assert system.statuses() == {"completed": RUNS}
    assert system.unexplained() == {}
    assert system.ledger.repeated() == {}


def test_of_the_cancelled_half_of_a_backlog_nothing_that_waits_runs(system: System) -> None:
    _cancel_half(system, lambda: None)


def test_of_the_cancelled_half_of_a_flushed_backlog_nothing_that_waits_runs(sqlite_system: System) -> None:
    _cancel_half(sqlite_system, sqlite_system.flush)


def _cancel_half(system: System, then: Callable[[], None]) -> None:
    runs, _ = _backlog(system, SLOW)
    cancelled = runs[1::2]
    answered = _cancel(system, cancelled)
    waiting = _queued(system)
    then()
    system.finish(runs, 90)
    begun = {line.run: line.at for line in system.ledger.lines("begin") if line.run in answered}
    assert waiting > RUNS / 4
    assert [run for run, at in begun.items() if at > answered[run] + DROPPED_WITHIN_S] == []
    assert len(begun) < len(cancelled)
    assert system.statuses() == {"completed": RUNS // 2, "cancelled": RUNS // 2}
    assert system.ledger.repeated() == {}


def _backlog(system: System, flow: Json) -> tuple[list[str], float]:
    """Start the runs, then their one worker; give their ids, and when all of them were accepted."""
    system.lease_s = LEASE_S
    system.executor()
    runs = system.start_many(flow, RUNS)
    accepted = time.time()
    system.until(lambda: _queued(system) >= RUNS, "all steps to be queued")
    system.worker(concurrency=1)
    return runs, accepted


def _queued(system: System) -> int:
    with system.redis() as client:
        keys = [Names().queue_key(STEPS_QUEUE, priority) for priority in (0, 3, 6, 9)]
        return sum(int(client.llen(key)) for key in keys)


def _finish_and_count_markers(system: System, runs: Sequence[str]) -> list[int]:
    """Wait for the end of the runs; give how many markers were on their way, at each look."""
    counts = []

    def all_ended() -> bool:
        counts.append(_markers(system))
        return system.statuses() == {"completed": len(runs)}

    system.until(all_ended, "the backlog to be done", 90)
    return counts


def _markers(system: System) -> int:
    with system.redis() as client:
        keys = [Names().queue_key(STEPS_QUEUE, priority) for priority in (0, 3, 6, 9)]
        queued = [message for key in keys for message in client.lrange(key, 0, -1)]
        told = client.lrange(Names().mailbox, 0, -1)
    return sum(MARKER_TASK.encode() in each for each in queued) + sum(b"MarkerSeen" in each for each in told)


def _events_of_trouble(system: System) -> dict[str, int]:
    kinds = (
        "step_resent",
        "step_returned",
        "step_failed",
        "retry_set",
        "report_refused",
        "step_running_again",
    )
    return {kind: count for kind in kinds if (count := system.count_events(kind))}


def _cancel(system: System, runs: Sequence[str]) -> dict[str, float]:
    """Cancel runs; tell when each cancel was answered."""

    def cancel(run: str) -> tuple[str, float]:
        system.workflows.cancel(run)
        return run, time.time()

    with ThreadPoolExecutor(16) as threads:
        return dict(threads.map(cancel, runs))
