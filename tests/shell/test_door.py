"""What may come in: everything that Celery and we ourselves write, and nothing that would end the process."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
import redis
from celery import Celery

from wfcelery.broker.task_message import bell, task_message
from wfcelery.settings import Settings
from wfcelery.shell.celery_app import make_app
from wfcelery.shell.door import Transport, fault_of

QUEUE = "door.tests"


@pytest.fixture
def app(valkey_url: str) -> Celery:
    return make_app(Settings(broker_url=valkey_url))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"countdown": 5},
        {"eta": dt.datetime(2030, 1, 1, tzinfo=dt.UTC), "expires": 60.5},
        {"expires": dt.datetime(2030, 1, 1, tzinfo=dt.UTC)},
        {"time_limit": 5, "soft_time_limit": 2.5},
        {"priority": 9},
        {"kwargs": {"of": "any kind"}, "headers": {"more": 1}},
    ],
)
def test_what_celery_writes_comes_in(app: Celery, valkey_url: str, options: dict[str, Any]) -> None:
    with redis.Redis.from_url(valkey_url) as client:
        client.delete(*(keys := [QUEUE, f"{QUEUE}\x06\x169"]))
        app.send_task("a.task", queue=QUEUE, **options)
        written = [json.loads(each) for key in keys for each in client.lrange(key, 0, -1)]
        client.delete(*keys)
    assert [fault_of(message) for message in written] == [None]


def test_what_we_write_comes_in() -> None:
    step = task_message("wfcelery.step", QUEUE, task_id="r:s:1:1", args=("order",), shadow="flow.step")
    assert [fault_of(json.loads(each)) for each in (step, bell("wfcelery.doorbell", QUEUE))] == [None, None]


def test_every_connection_of_our_app_has_the_door(app: Celery) -> None:
    with app.connection_for_read() as reading, app.connection_for_write().clone() as writing:
        assert (type(reading.transport), type(writing.transport)) == (Transport, Transport)


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("", [], "it is not an object"),
        ("headers", None, "headers is not an object"),
        ("properties", "text", "properties is not an object"),
        ("content-type", "application/x-python-serialize", "content-type is not what Celery writes there"),
        ("content-encoding", "binary", "content-encoding is not what Celery writes there"),
        ("body", "!!!", "body is not what Celery writes there"),
        ("body", "", "body is not what Celery writes there"),
        ("headers.task", ["wfcelery.step"], "headers.task is not what Celery writes there"),
        ("headers.id", None, "headers.id is not what Celery writes there"),
        ("headers.eta", "soon", "headers.eta is not what Celery writes there"),
        ("headers.timelimit", [1, "2"], "headers.timelimit is not what Celery writes there"),
        ("headers.retries", -1, "headers.retries is not what Celery writes there"),
        ("headers.compression", "bzip2", "headers.compression is not what Celery writes there"),
        ("properties.delivery_tag", 1, "properties.delivery_tag is not what Celery writes there"),
        ("properties.delivery_info", "text", "properties.delivery_info is not what Celery writes there"),
        ("properties.body_encoding", None, "properties.body_encoding is not what Celery writes there"),
    ],
)
def test_what_would_end_the_process_stays_out(path: str, value: object, fault: str) -> None:
    message: Any = json.loads(bell("wfcelery.doorbell", QUEUE))
    *parts, last = path.split(".")
    owner = message
    for part in parts:
        owner = owner[part]
    if path:
        owner[last] = value
    else:
        message = value
    assert fault_of(message) == fault


@pytest.mark.parametrize("header", ["eta", "expires"])
def test_a_step_neither_waits_for_a_time_nor_expires(header: str) -> None:
    message = json.loads(task_message("wfcelery.step", QUEUE, task_id="r:s:1:1"))
    message["headers"][header] = "2020-01-01T00:00:00+00:00"
    assert fault_of(message) == "it is a step, and these neither wait for a time nor expire"
