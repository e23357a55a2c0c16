"""The hand-made message is one that Celery takes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
import redis

from tests.services.shared import ROOT
from tests.services.shared import stop as stop_process
from wfcelery.broker.client import connect
from wfcelery.broker.names import DOORBELL_TASK, EXECUTOR_QUEUE, Names
from wfcelery.broker.sender import Sender
from wfcelery.broker.task_message import bell


def test_each_message_has_an_id_of_its_own_and_is_the_same_otherwise() -> None:
    first, second = (json.loads(bell("a.task", "a.queue")) for _ in range(2))
    ids = {
        message["headers"].pop("id")
        for message in (first, second)
        if message["headers"].pop("root_id") == message["headers"]["id"]
        and message["properties"].pop("delivery_tag") == message["headers"]["id"]
        and message["properties"].pop("correlation_id") == message["headers"]["id"]
    }
    assert len(ids) == 2
    assert first == second
    assert (first["headers"]["task"], first["properties"]["delivery_info"]) == (
        "a.task",
        {"exchange": "", "routing_key": "a.queue"},
    )


@contextmanager
def worker(url: str, options: dict[str, object]) -> Iterator[None]:
    celery_url = url.replace("unix://", "redis+socket://")
    command = [sys.executable, "-m", "tests.broker.bell_app", celery_url, json.dumps(options)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield
    finally:
        stop_process(process, signal.SIGTERM)


def rung(client: redis.Redis, prefix: str) -> str:
    """Wait for the next trace of the task."""
    for _ in range(10):
        found = client.blpop([f"{prefix}rung"], timeout=3)
        if found is not None:
            return cast("bytes", found[1]).decode()
    raise AssertionError("the worker has not run the task")


@pytest.fixture(scope="module")
def bells(valkey_url: str) -> Iterator[redis.Redis]:
    """A server with two workers: what is under `acks:` is acknowledged, what is under `none:` is not."""
    with connect(valkey_url) as client:
        client.flushall()
        with (
            worker(valkey_url, {"ack_emulation": True, "global_keyprefix": "acks:"}),
            worker(valkey_url, {"ack_emulation": False, "global_keyprefix": "none:"}),
        ):
            yield client


@pytest.mark.parametrize("prefix", ["acks:", "none:"])
def test_a_celery_worker_runs_the_task(bells: redis.Redis, prefix: str) -> None:
    names = Names(prefix)
    sender = Sender(bells, names)
    for _ in range(3):
        sender.push([b"a"])
        bells.delete(names.bell)
    assert len({rung(bells, prefix) for _ in range(3)}) == 3
    assert_nothing_is_left(bells, prefix)


@pytest.mark.parametrize("prefix", ["acks:", "none:"])
def test_a_celery_worker_runs_the_very_same_message_as_often_as_it_comes(
    bells: redis.Redis, prefix: str
) -> None:
    same = bell(DOORBELL_TASK, EXECUTOR_QUEUE)
    bells.lpush(Names(prefix).queue_key(EXECUTOR_QUEUE), *[same] * 20)
    expected = f"{json.loads(same)['headers']['id']} False"
    assert [rung(bells, prefix) for _ in range(20)] == [expected] * 20
    assert_nothing_is_left(bells, prefix)


def assert_nothing_is_left(client: redis.Redis, prefix: str) -> None:
    """Wait until the last one is acknowledged: Celery does that a moment after the task has begun."""
    queue, deadline = Names(prefix).queue_key(EXECUTOR_QUEUE), time.monotonic() + 10
    while client.hlen(f"{prefix}unacked") and time.monotonic() < deadline:
        client.blpop([f"{prefix}nothing"], timeout=0.01)
    assert (client.llen(queue), client.llen(f"{prefix}rung"), client.hlen(f"{prefix}unacked")) == (0, 0, 0)
