"""One executor, one worker, a chain: the whole way and back."""

from __future__ import annotations

from tests.system.flows import chain, diamond
from tests.system.system import System


def test_a_chain_runs_through_executor_and_worker(system: System) -> None:
    system.executor()
    system.worker()
    run = system.start(chain(10, value=7))
    system.finish([run])
    assert system.workflows.get(run)["output"] == 7
    assert len(system.ledger.lines("end")) == 10


def test_many_chains_and_diamonds_at_once_run_each_step_once(system: System) -> None:
    system.executor()
    system.worker()
    runs = system.start_many(chain(5), 100) + system.start_many(diamond(), 50)
    system.finish(runs)
    assert system.statuses() == {"completed": 150}
    assert len(system.ledger.lines("begin")) == len(system.ledger.lines("end")) == 700
    assert system.ledger.repeated() == {}
