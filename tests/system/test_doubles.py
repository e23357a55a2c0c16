"""Every message comes twice: steps, reports, signs, requests."""

from __future__ import annotations

from collections import Counter

from tests.system.flows import chain, diamond
from tests.system.sabotage import harm
from tests.system.system import SECRET, System
from wfcelery.core.messages import Principal
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal
from wfcelery.workflows.starts import Wish, start

RUNS = 10


def test_with_every_message_doubled_one_worker_begins_each_attempt_once(system: System) -> None:
    system.executor(**harm("double"))
    system.worker(**harm("double"))
    runs = _start_twice(system)
    system.finish(runs)
    assert system.statuses() == {"completed": 2 * RUNS}
    assert system.joins("bottom") == dict.fromkeys(runs[:RUNS], 1)
    assert system.ledger.repeated() == {}
    assert len(system.ledger.lines("begin")) == RUNS * (4 + 5)
    assert system.count_events("report_refused") == 0
    assert system.count_events("step_resent") == 0


def test_with_every_message_doubled_two_workers_may_both_run_a_step_and_one_report_counts(
    sqlite_system: System,
) -> None:
    system = sqlite_system
    system.executor(**harm("double"))
    for _ in range(2):
        system.worker(concurrency=1, **harm("double"))
    runs = _start_twice(system)
    system.finish(runs)
    assert system.statuses() == {"completed": 2 * RUNS}
    assert system.joins("bottom") == dict.fromkeys(runs[:RUNS], 1)
    # The broker's doubles: the same order at both workers, never twice at one.
    begun = system.ledger.lines("begin")
    at_one = Counter((line.run, line.step, line.fence, line.pid) for line in begun)
    assert max(at_one.values()) == 1
    assert len({(line.run, line.step, line.attempt, line.fence) for line in begun}) == RUNS * (4 + 5)
    assert len(begun) > RUNS * (4 + 5)
    assert system.count_events("step_done") == RUNS * (4 + 5)


def _start_twice(system: System) -> list[str]:
    """Start runs by requests of which each arrives twice: the same request, not a repeat of it."""
    wishes = [Wish(flow=flow) for flow in (diamond(), chain(5)) for _ in range(RUNS)]
    requests = [start(wish, Principal("ann")) for wish in wishes]
    seal = Seal(keyring((SECRET,)))
    system.push(*(seal.write(request) for request in requests for _ in range(2)))
    return [request.run_id for request in requests]
