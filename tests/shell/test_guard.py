"""What may play a part of ours, and what is refused with a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery, _state
from celery.worker import WorkController

from wfcelery.errors import InvalidSettings
from wfcelery.shell import guard

EXECUTOR = frozenset({"wfcelery.executor"})
NOTIFIER = frozenset({"wfcelery.notify"})


@pytest.fixture(autouse=True)
def _celery_forgets_the_pool() -> Iterator[None]:
    """A worker's pool tells Celery, for the whole process, whether results may be waited for."""
    yield
    _state._set_task_join_will_block(False)


def worker(pool: str, broker: str = "redis://127.0.0.1:1/0", **conf: Any) -> WorkController:  # noqa: ANN401
    """Make a Celery worker, and do not start it."""
    app = Celery("shop", broker=broker, set_as_current=False)
    app.conf.update(conf)
    return WorkController(app=app, pool=pool, concurrency=1, hostname="w@here")


def refusal(worker: WorkController, queues: frozenset[str] | None = None) -> str:
    with pytest.raises(InvalidSettings) as refused:
        guard.check_worker(worker) if queues is None else guard.check_executor(worker, queues)
    return str(refused.value)


@pytest.mark.parametrize("broker", ["redis://h", "rediss://h/1", "redis+socket:///s"])
def test_an_executor_on_the_solo_pool_with_its_queue_alone_is_fine(broker: str) -> None:
    guard.check_executor(worker("solo", broker), EXECUTOR)


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_notifier_on_threads_with_its_queue_alone_is_fine(pool: str) -> None:
    guard.check_notifier(worker(pool), NOTIFIER)


def test_a_notifier_in_several_processes_or_with_other_queues_is_refused() -> None:
    with pytest.raises(InvalidSettings) as refused:
        guard.check_notifier(worker("prefork"), NOTIFIER)
    said = "the notifier runs on threads, not on prefork; start it with `--pool threads`"
    assert str(refused.value) == f"setting worker_pool: {said}"
    with pytest.raises(InvalidSettings) as refused:
        guard.check_notifier(worker("threads"), NOTIFIER | {"mail", "wfcelery.steps"})
    said = "a notifier consumes wfcelery.notify alone; give mail, wfcelery.steps to another worker"
    assert str(refused.value) == f"setting queues: {said}"


@pytest.mark.parametrize("pool", ["solo", "threads", "prefork"])
def test_a_worker_may_have_any_pool_and_each_is_known_by_its_name(pool: str) -> None:
    made = worker(pool)
    guard.check_worker(made)
    assert guard.pool_name(made) == pool


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_an_executor_on_another_pool_is_refused(pool: str) -> None:
    said = f"the executor runs on the solo pool, not on {pool}; start it with `--pool solo`"
    assert refusal(worker(pool), EXECUTOR) == f"setting worker_pool: {said}"


def test_an_executor_that_consumes_other_queues_is_refused() -> None:
    said = "an executor consumes wfcelery.executor alone; give mail, wfcelery.steps to another worker"
    assert refusal(worker("solo"), EXECUTOR | {"wfcelery.steps", "mail"}) == f"setting queues: {said}"


@pytest.mark.parametrize("queues", [EXECUTOR, None])
def test_tasks_that_run_at_once_are_refused(queues: frozenset[str] | None) -> None:
    said = "setting task_always_eager: must be off: a step that runs at once was never handed over"
    assert refusal(worker("solo", task_always_eager=True), queues) == said


@pytest.mark.parametrize("queues", [EXECUTOR, None])
def test_a_worker_that_takes_no_json_is_refused(queues: frozenset[str] | None) -> None:
    said = "setting accept_content: must contain json: our messages are JSON"
    assert refusal(worker("solo", accept_content=["yaml"]), queues) == said


@pytest.mark.parametrize("queues", [EXECUTOR, None])
@pytest.mark.parametrize(("broker", "named"), [("amqp://h", "amqp"), ("memory://", "memory")])
def test_another_broker_than_redis_is_refused(broker: str, named: str, queues: frozenset[str] | None) -> None:
    said = f"wfcelery needs Redis or Valkey, not {named}; give it like redis://localhost:6379/0"
    assert refusal(worker("solo", broker), queues) == f"setting broker_url: {said}"
