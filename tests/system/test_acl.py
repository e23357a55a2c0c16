"""The rights that docs/operations.md gives the broker's user are enough for everything, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.system.flower import start_flower
from tests.system.flows import chain, single
from tests.system.system import ROOT, System
from wfcelery.broker.names import Names
from wfcelery.broker.pulse import Pulse

PAGE = (ROOT / "docs" / "operations.md").read_text()
PASSWORD = "opens-the-broker"  # noqa: S105 - for tests
FORBIDDEN = ("FLUSHALL", "CONFIG GET *", "KEYS *", "GET shop.secret", "LPUSH celery x", "ACL LIST")


class Guarded(System):
    """A system whose processes come to the broker as the user of the documentation."""

    @property
    def broker_url(self) -> str:
        return super().broker_url.replace("redis+socket://", f"redis+socket://wfcelery:{PASSWORD}@")


@pytest.fixture
def guarded(tmp_path: Path, sqlite_url: str) -> Iterator[Guarded]:
    made = Guarded(tmp_path, sqlite_url)
    try:
        with made.redis() as client:
            rule = re.findall(r"```acl\n(.*?)```", PAGE, re.DOTALL)[0]
            client.execute_command(*rule.replace("PASSWORD", PASSWORD).split())
        yield made
    finally:
        made.close()
    made.check()


def test_a_whole_system_works_with_the_rights_of_the_documentation(guarded: Guarded) -> None:
    system = guarded
    system.ready(system.executor(ready=None, WFCELERY_NOTIFY="nowhere://here"), system.worker(ready=None))
    system.beat()
    run = system.start(chain(3, value=7))
    system.finish([run])
    assert system.workflows.get(run)["output"] == 7

    stopped = system.start(single("act", {"seconds": 60}))
    system.until(lambda: len(system.ledger.lines("begin")) == 4, "the step to begin")
    system.workflows.cancel(stopped)
    system.finish([stopped])

    flower = start_flower(system)
    system.until(lambda: list(flower.workers().values()) == [True], "Flower to list the worker")

    system.spawn("notifier")
    failed = system.start(single("stumble", {"times": 9}, retry={"max_attempts": 1}))
    system.finish([failed])
    system.until(
        lambda: system.query("SELECT 1 FROM notices WHERE status = 'failed'"), "a notice to be tried"
    )
    with system.redis() as client:
        system.until(lambda: "notifier" in Pulse(client, Names()).pulses(), "the notifier to be heard")
        system.until(lambda: "beat" in Pulse(client, Names()).pulses(), "beat to be heard")
        assert client.acl_log() == []


@pytest.mark.parametrize("command", FORBIDDEN)
def test_the_user_of_the_documentation_may_not(guarded: Guarded, command: str) -> None:
    url = guarded.broker.url.replace("unix://", f"unix://wfcelery:{PASSWORD}@")
    with redis.Redis.from_url(url) as client:
        assert client.ping() is True
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*command.split())
