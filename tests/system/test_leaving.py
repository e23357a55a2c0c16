"""A worker that is stopped in good order, one that vanishes under a step that must not run twice."""

from __future__ import annotations

import signal
import time

import pytest

from tests.system.flows import single
from tests.system.oracle import assert_all_completed, attempts, in_flight
from tests.system.system import System

pytestmark = pytest.mark.timeout(240)


def test_a_worker_that_is_stopped_finishes_what_runs_and_hands_back_the_rest(system: System) -> None:
    _stop_in_good_order(system, "prefork")


def test_a_worker_of_threads_that_is_stopped_does_the_same(sqlite_system: System) -> None:
    _stop_in_good_order(sqlite_system, "threads")


def _stop_in_good_order(system: System, pool: str) -> None:
    """Two steps run, others wait in the worker and in the queue; those that run take longer than a lease."""
    system.ledger.gate.touch()
    worker = system.worker(concurrency=2, pool=pool, ready=None)
    system.ready(system.executor(ready=None), worker)
    runs = system.start_many(single("hold", {"value": 1}), 8)
    system.until(lambda: len(in_flight(system.ledger)) == 2 and _reserved(system), "steps to run and to wait")
    running = {line.run for line in in_flight(system.ledger)}
    worker.popen.send_signal(signal.SIGTERM)
    end = time.monotonic() + 1.5 * system.lease_s
    system.until(lambda: time.monotonic() > end, "a lease to pass")
    system.ledger.gate.unlink()
    assert worker.popen.wait(30) == 0
    assert {line.run for line in system.ledger.lines("end")} == running
    system.finish(running)
    assert system.count_events("step_returned") >= 1
    system.worker(pool=pool)
    assert_all_completed(system, runs)
    assert system.ledger.repeated() == {}
    assert system.count_events("step_failed") == 0


def test_a_step_that_must_not_run_twice_waits_for_a_person_when_its_worker_vanishes(system: System) -> None:
    system.ledger.gate.touch()
    _, worker = system.pair(concurrency=1)
    run = system.start(single("hold", {"value": "paid"}, on_lost="hold"))
    system.until(lambda: system.events(run, "step_started"), "the executor to know that the step has begun")
    worker.kill()
    assert in_flight(system.ledger)
    other = system.worker(concurrency=1, ready=None)
    system.until(lambda: system.events(run, "step_parked"), "the step to be parked")
    system.ready(other)
    assert system.workflows.status(run) == "paused"
    assert [(number, status) for number, status, _ in attempts(system, run)] == [
        (1, "failed"),
        (2, "pending"),
    ]
    assert len(system.ledger.lines("begin")) == 1
    system.ledger.gate.unlink()
    system.workflows.step_ready(run, "only")
    assert_all_completed(system, [run])
    assert system.workflows.get(run)["output"] == "paid"
    assert len(system.ledger.lines("begin")) == 2


def test_a_step_that_must_not_run_twice_is_known_to_have_begun_before_it_does(sqlite_system: System) -> None:
    """It takes its worker with it at once, before any holding could name it."""
    system = sqlite_system
    workers = [system.worker(concurrency=1, ready=None) for _ in range(2)]
    system.ready(system.executor(ready=None), *workers)
    run = system.start(single("kill_worker", on_lost="hold"))
    system.until(lambda: system.events(run, "step_parked"), "the step to be parked")
    assert [(number, status) for number, status, _ in attempts(system, run)] == [
        (1, "failed"),
        (2, "pending"),
    ]
    assert sum(worker.popen.poll() is None for worker in workers) == 1
    assert len(system.ledger.lines("begin")) == 1


def _reserved(system: System) -> int:
    rows = system.query("SELECT holding FROM workers")
    return sum(int('"reserved":0' not in str(row[0])) for row in rows)
