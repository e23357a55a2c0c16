"""The broker is away for longer than a lease, or comes back empty, or drops every connection."""

from __future__ import annotations

import time

from tests.system.flows import after_hold, chain, diamond
from tests.system.load import Load
from tests.system.system import System

AWAY_S = 30.0


def test_steps_that_end_while_the_broker_is_away_are_neither_lost_nor_repeated(system: System) -> None:
    system.executor()
    system.worker(concurrency=3)
    system.ledger.gate.touch()
    held = system.start_many(after_hold(), 3)
    system.until(lambda: len(system.ledger.lines("begin")) == 3, "three steps to run")
    queued = system.start_many(chain(3), 20)
    system.stop_broker()
    gone = time.monotonic()
    system.ledger.gate.unlink()
    system.until(lambda: len(system.ledger.lines("end")) >= 3, "the steps to end without a broker")
    system.until(lambda: time.monotonic() - gone > AWAY_S, "the lease to be long over")
    assert 2 * system.lease_s < AWAY_S
    system.start_broker()
    system.finish(held + queued, 90)
    assert system.statuses() == {"completed": 23}
    assert system.ledger.repeated() == {}
    assert system.query("SELECT id FROM workflow_steps WHERE attempt > 1") == []


def test_a_broker_that_is_killed_and_comes_back_empty_under_load_loses_nothing(system: System) -> None:
    system.executor()
    system.worker(concurrency=3)
    with Load(system, [diamond(0.1), chain(4, seconds=0.1)]) as load:
        load.more(10)
        assert system.until(system.out, "steps to be out") > 0
        system.stop_broker()
        system.start_broker()
        load.more(10)
    runs = load.accepted
    system.finish(runs, 90)
    assert system.statuses() == {"completed": len(runs)}
    assert system.joins("bottom") == dict.fromkeys(runs[::2], 1)
    assert system.unexplained() == {}


def test_a_storm_of_cut_connections_stops_nothing(sqlite_system: System) -> None:
    system = sqlite_system
    system.executor()
    system.worker(concurrency=3)
    cut = 0
    with Load(system, [diamond(0.1), chain(4, seconds=0.1)]) as load:
        for _ in range(10):
            load.more(2)
            cut += system.cut_connections()
    runs = load.accepted
    system.finish(runs, 90)
    assert cut >= 20
    assert system.statuses() == {"completed": len(runs)}
    assert system.joins("bottom") == dict.fromkeys(runs[::2], 1)
    assert system.unexplained() == {}
