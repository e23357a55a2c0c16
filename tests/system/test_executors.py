"""Several executors, and one that is stopped for a while: one writes at a time, and nothing is lost."""

from __future__ import annotations

import signal
import time

import pytest

from tests.system.flows import chain, diamond
from tests.system.oracle import assert_all_completed, epoch, in_flight
from tests.system.system import Process, System
from wfcelery.shell.executor_role import OVERTAKEN

pytestmark = pytest.mark.timeout(240)

STANDS_BY = "another executor is at work; standing by"
SOON_S = 30.0


def test_of_two_executors_one_writes_and_the_other_takes_over_when_it_is_killed(system: System) -> None:
    first, second = _two(system)
    runs = _load(system)
    system.until(lambda: in_flight(system.ledger), "steps to run")
    assert epoch(system) == 1
    assert "executor of epoch" not in second.said()
    first.kill()
    assert in_flight(system.ledger)
    system.until(lambda: "executor of epoch 2" in second.said(), "the second to take over", SOON_S)
    runs += _load(system)
    assert_all_completed(system, runs)
    assert epoch(system) == 2


def test_an_executor_that_stops_in_good_order_is_followed_at_once(system: System) -> None:
    first, second = _two(system)
    runs = _load(system)
    system.until(lambda: in_flight(system.ledger), "steps to run")
    assert first.terminate() == 0
    system.until(lambda: "executor of epoch 2" in second.said(), "the second to take over", SOON_S)
    assert_all_completed(system, runs)
    assert system.count_events("step_resent") == system.count_events("step_failed") == 0


def test_an_executor_that_was_stopped_past_its_lease_is_overtaken_and_writes_no_more(
    postgres_system: System,
) -> None:
    system = postgres_system
    first, second = _two(system)
    runs = _load(system)
    system.until(lambda: in_flight(system.ledger), "steps to run")
    first.signal(signal.SIGSTOP)
    assert in_flight(system.ledger)
    system.until(lambda: "executor of epoch 2" in second.said(), "the second to take over", SOON_S)
    runs += _load(system)
    system.until(lambda: in_flight(system.ledger), "steps of the second to run")
    first.signal(signal.SIGCONT)
    assert first.popen.wait(30) == OVERTAKEN
    assert "another executor has taken over since epoch 1; this one stops" in first.said()
    assert_all_completed(system, runs)
    assert epoch(system) == 2


def test_an_executor_on_sqlite_that_was_stopped_keeps_its_lock_and_goes_on(sqlite_system: System) -> None:
    system = sqlite_system
    first, second = _two(system)
    runs = _load(system)
    system.until(lambda: in_flight(system.ledger), "steps to run")
    first.signal(signal.SIGSTOP)
    assert in_flight(system.ledger)
    _pass_by(system, 1.5 * system.lease_s)
    assert "executor of epoch" not in second.said()
    first.signal(signal.SIGCONT)
    runs += _load(system)
    assert_all_completed(system, runs)
    assert epoch(system) == 1
    assert system.ledger.repeated() == {}
    assert system.count_events("step_resent") == system.count_events("step_failed") == 0


def _two(system: System) -> tuple[Process, Process]:
    """Two executors, of which the first is at work, and a worker."""
    worker = system.worker(ready=None)
    first = system.executor()
    second = system.executor(ready=STANDS_BY)
    system.ready(worker)
    return first, second


def _load(system: System) -> list[str]:
    return system.start_many(diamond(0.15), 6) + system.start_many(chain(3, seconds=0.15), 6)


def _pass_by(system: System, seconds: float) -> None:
    """Let time pass: what is waited for here is that nothing happens."""
    end = time.monotonic() + seconds
    system.until(lambda: time.monotonic() > end, "time to pass")


def test_a_broker_that_knows_of_a_later_executor_than_the_tables_is_set_right(sqlite_system: System) -> None:
    """As after a database was restored from a backup, and the broker was not."""
    system = sqlite_system
    executor, _ = system.executor(), system.worker()
    with system.redis() as client:
        client.set("wfcelery.epoch", 999_999)
        run = system.start(chain(3))
        system.finish([run])
        assert client.get("wfcelery.epoch") == b"1"
    assert executor.popen.poll() is None
