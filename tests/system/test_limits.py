"""How long a step may take and how often it may take its worker with it."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.system.flows import single
from tests.system.oracle import attempts
from tests.system.system import Process, System
from wfcelery.core.values import Json
from wfcelery.shell.publisher import GRACE_S

pytestmark = pytest.mark.timeout(240)

ONCE: dict[str, Json] = {"max_attempts": 1}
ABOUT_A_SECOND = pytest.approx(2.0, abs=1.5)
TIMED_OUT: Json = {"type": "timeout", "message": "the tool ran longer than 1 s"}
NOTICED: Json = {"type": "timeout", "message": "the time limit of 1 s is over"}
KILLED: Json = {"type": "timeout", "message": "the tool ran longer than 1 s and was killed"}


def test_a_step_of_three_leases_with_a_living_worker_is_left_alone(sqlite_system: System) -> None:
    system = sqlite_system
    system.pair(concurrency=1)
    run = system.start(single("act", {"seconds": 3 * system.lease_s, "value": "done"}))
    system.finish([run])
    assert attempts(system, run) == [(1, "done", None)]
    (begin,), (end,) = system.ledger.lines("begin"), system.ledger.lines("end")
    assert end.at - begin.at >= 3 * system.lease_s
    assert system.count_events("step_resent") == 0


def test_a_sleeping_tool_is_interrupted_when_its_time_is_over(system: System) -> None:
    system.pair(concurrency=1)
    run = system.start(single("hang", timeout_s=1, retry=ONCE))
    system.finish([run])
    assert attempts(system, run) == [(1, "failed", TIMED_OUT)]
    assert _failed_after(system, run) == ABOUT_A_SECOND
    assert system.ledger.lines("end") == []


def test_a_tool_that_takes_no_notice_of_its_time_is_killed_and_the_worker_goes_on(
    sqlite_system: System,
) -> None:
    system = sqlite_system
    system.pair(concurrency=1)
    run = system.start(single("deaf", timeout_s=1, retry=ONCE))
    system.finish([run])
    assert attempts(system, run) == [(1, "failed", KILLED)]
    assert _failed_after(system, run) > 1.0 + GRACE_S / 2
    assert [line.what for line in system.ledger.lines()] == ["begin", "heard"]
    after = system.start(single("act", {"value": 1}))
    system.finish([after])
    assert system.workflows.get(after)["output"] == 1


def test_on_threads_the_worker_reports_a_tool_whose_time_is_over(sqlite_system: System) -> None:
    system = sqlite_system
    system.ready(system.executor(ready=None), system.worker(concurrency=3, pool="threads", ready=None))
    runs = [
        system.start(single("hang", timeout_s=1, retry=ONCE)),  # never looks up
        system.start(single("act", {"seconds": 60}, timeout_s=1, retry=ONCE)),  # looks up
    ]
    system.finish(runs)
    assert attempts(system, runs[0]) == [(1, "failed", TIMED_OUT)]
    assert attempts(system, runs[1]) in [[(1, "failed", TIMED_OUT)], [(1, "failed", NOTICED)]]
    assert [_failed_after(system, run) for run in runs] == [ABOUT_A_SECOND] * 2
    after = system.start(single("act", {"value": 1}))
    system.finish([after])
    assert system.workflows.get(after)["output"] == 1


def test_a_step_that_kills_its_pool_child_each_time_fails_after_four_attempts(sqlite_system: System) -> None:
    system = sqlite_system
    system.pair(concurrency=1)
    run = system.start(single("die"))
    system.finish([run], 150.0)
    _assert_lost_four_times(system, run)
    assert system.ledger.repeated() == {}
    assert system.count_events("step_resent") == 0


def test_a_step_that_kills_its_whole_worker_each_time_fails_after_four_attempts(
    sqlite_system: System,
) -> None:
    system = sqlite_system
    system.lease_s = 2.0
    executor, *workers = system.executor(ready=None), *(_worker(system) for _ in range(3))
    system.ready(executor, *workers)
    run = system.start(single("kill_worker"))

    def ended() -> bool:
        """Like a supervisor: what has died is started again."""
        workers[:] = [worker if worker.popen.poll() is None else _worker(system) for worker in workers]
        return system.workflows.status(run) == "failed"

    system.until(ended, "the run to fail", 200.0)
    _assert_lost_four_times(system, run)
    assert system.unexplained() == {}
    # Unless a holding named the first in time nobody knows that it was begun; the others tell it themselves.
    begun = {attempt: times for (_, _, _, attempt), times in system.ledger.begun().items()}
    assert begun in ({1: 1, 2: 1, 3: 1, 4: 1}, {1: 2, 2: 1, 3: 1, 4: 1})


def _worker(system: System) -> Process:
    return system.worker(concurrency=1, ready=None)


def _failed_after(system: System, run: str) -> float:
    """Seconds between the tool's beginning and the end of the attempt in the tables."""
    (begin,) = [line for line in system.ledger.lines("begin") if line.run == run]
    (failed,) = system.events(run, "step_failed")
    return datetime.fromisoformat(str(failed["at"])).timestamp() - begin.at


def _assert_lost_four_times(system: System, run: str) -> None:
    found = attempts(system, run)
    assert [(number, status) for number, status, _ in found] == [(each, "failed") for each in (1, 2, 3, 4)]
    assert {error["type"] for _, _, error in found if isinstance(error, dict)} == {"lost"}
    error = system.workflows.get(run)["error"]
    assert isinstance(error, dict)
    assert error["type"] == "lost"
    assert system.ledger.lines("end") == []
