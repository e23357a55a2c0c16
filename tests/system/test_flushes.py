"""The broker loses everything it has, again and again, while runs are being started."""

from __future__ import annotations

from tests.system.flows import chain, diamond
from tests.system.load import Load
from tests.system.system import System

FLUSHES = 3
RUNS_BETWEEN = 12


def test_three_flushes_under_load_lose_nothing_and_repeat_nothing_without_a_reason(system: System) -> None:
    system.executor()
    system.worker(concurrency=3)
    in_flight = []
    with Load(system, [diamond(0.1), chain(4, seconds=0.1)]) as load:
        for _ in range(FLUSHES):
            load.more(RUNS_BETWEEN)
            in_flight.append(system.until(system.out, "steps to be out"))
            system.flush()
    runs = load.accepted
    system.finish(runs, 90)
    assert min(in_flight) > 0
    assert len(runs) >= FLUSHES * RUNS_BETWEEN
    assert system.statuses() == {"completed": len(runs)}
    assert system.joins("bottom") == dict.fromkeys(runs[::2], 1)
    assert system.unexplained() == {}
