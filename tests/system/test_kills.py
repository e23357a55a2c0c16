"""kill -9 of each kind of process while steps run: all runs end, nothing is repeated without a reason."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection

import pytest

from tests.system.flows import QUICK_RETRY, chain, diamond, single
from tests.system.ledger import Line
from tests.system.oracle import assert_all_completed, in_flight
from tests.system.system import System

pytestmark = pytest.mark.timeout(240)


def test_a_pool_child_is_killed(system: System) -> None:
    _, worker = system.pair()
    runs = _load(system)
    (cut_off,) = system.until(lambda: _kill_one(system, worker.children()), "a child to be killed at work")
    runs += _load(system)
    assert_all_completed(system, runs)
    assert _later_attempts(system, cut_off) == {cut_off.attempt + 1}


def test_a_whole_worker_is_killed_and_another_is_started(system: System) -> None:
    _, worker = system.pair()
    runs = _load(system)
    children = system.until(lambda: _all_at_work(system, worker.children()), "all children to be at work")
    worker.kill()
    assert in_flight(system.ledger, children)
    runs += _load(system)
    system.worker()
    assert_all_completed(system, runs)
    assert _recorded(system)


def test_a_whole_worker_is_killed_beside_a_living_one(system: System) -> None:
    processes = system.executor(ready=None), system.worker(ready=None), system.worker(ready=None)
    system.ready(*processes)
    worker = processes[1]
    runs = _load(system)
    children = system.until(lambda: _all_at_work(system, worker.children()), "all children to be at work")
    worker.kill()
    assert in_flight(system.ledger, children)
    runs += _load(system)
    assert_all_completed(system, runs)
    assert _recorded(system)


def test_the_executor_is_killed_and_started_again(system: System) -> None:
    executor, _ = system.pair()
    runs = _load(system) + _load(system)
    system.until(lambda: in_flight(system.ledger), "steps to run")
    executor.kill()
    assert in_flight(system.ledger)
    system.executor()
    runs += _load(system)
    assert_all_completed(system, runs)


def test_beat_is_killed_and_nothing_waits_for_it(system: System) -> None:
    beat = system.beat()
    system.pair()
    with system.redis() as client:
        system.until(lambda: client.hget("wfcelery.pulse", "beat"), "beat to be heard")
    runs = _load(system)
    system.until(lambda: in_flight(system.ledger), "steps to run")
    beat.kill()
    assert in_flight(system.ledger)
    runs += [*_load(system), system.start(single("stumble", retry=QUICK_RETRY))]
    assert_all_completed(system, runs)


def _load(system: System) -> list[str]:
    return system.start_many(diamond(0.1), 8) + system.start_many(chain(3, seconds=0.1), 8)


def _kill_one(system: System, children: Collection[int]) -> list[Line]:
    """Kill a child that seems to be at work; give what it had begun and will not end."""
    for line in in_flight(system.ledger, children):
        os.kill(line.pid, signal.SIGKILL)
        return in_flight(system.ledger, {line.pid})
    return []


def _all_at_work(system: System, children: list[int]) -> list[int]:
    busy = {line.pid for line in in_flight(system.ledger, children)}
    return children if set(children) <= busy else []


def _later_attempts(system: System, line: Line) -> set[int]:
    begun = system.ledger.lines("begin")
    same = [each for each in begun if (each.run, each.step) == (line.run, line.step)]
    return {each.attempt for each in same if each.at > line.at}


def _recorded(system: System) -> int:
    """How often a run was told that a step of it was gone."""
    return system.count_events("step_resent") + system.count_events("step_failed")
