"""One executor, one worker, a chain: the whole way and back."""

from __future__ import annotations

from celery import Celery

from tests.system.flows import chain, diamond
from tests.system.system import SECRET, System
from wfcelery import Workflows


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


def test_everything_on_the_broker_stands_under_the_prefix_of_the_celery_app(sqlite_system: System) -> None:
    system = sqlite_system
    system.executor(WFCELERY_KEY_PREFIX="shop:")
    system.worker(WFCELERY_KEY_PREFIX="shop:")
    app = Celery("shop", broker=system.broker_url, set_as_current=False)
    app.conf.broker_transport_options = {"global_keyprefix": "shop:"}
    with Workflows(app, system.database_url, secret_key=SECRET, user="ann", timeout_s=20.0) as workflows:
        run = workflows.start(chain(3, value=1), {})
        assert run.wait(timeout_s=60)["output"] == 1
    with system.redis() as client:
        assert [key for key in client.scan_iter() if not key.startswith(b"shop:")] == []
