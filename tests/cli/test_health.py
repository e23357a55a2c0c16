"""`wfcelery health`: by what a process has done lately. Workers are asked in tests/system/test_compose.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.cli.calling import Said, call
from wfcelery.broker.names import Names
from wfcelery.broker.pulse import Pulse


@pytest.fixture
def pulse(here: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pulse]:
    monkeypatch.setenv("WFCELERY_BROKER_URL", valkey_url)
    with redis.Redis.from_url(valkey_url) as client:
        client.flushall()
        yield Pulse(client, Names())
        client.flushall()


@pytest.mark.parametrize(
    ("role", "who"), [("executor", "the executor"), ("beat", "beat"), ("notifier", "the notifier")]
)
def test_it_goes_by_the_last_sign_of_life(
    pulse: Pulse, role: str, who: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, "health", role) == Said(1, f"{who} was never heard on this broker\n", "")
    pulse.beat(role, time.time())
    assert call(capsys, "health", role) == Said(0, f"{who} was heard 0 s ago\n", "")
    pulse.beat(role, time.time() - 40)
    assert call(capsys, "health", role) == Said(1, f"{who} was heard 40 s ago\n", "")


@pytest.mark.parametrize("role", ["executor", "worker", "beat", "notifier"])
def test_a_broker_out_of_reach_is_not_healthy(
    role: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WFCELERY_BROKER_URL", f"redis+socket://{here}/nobody.sock")
    said = call(capsys, "health", role)
    assert (said.code, said.out) == (5, "")
    assert said.err.startswith("wfcelery: the broker is out of reach: ")


def test_without_a_broker_there_is_nothing_to_look_at(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "wfcelery: the broker is out of reach: WFCELERY_BROKER_URL is not set\n"
    assert call(capsys, "health", "executor") == Said(5, "", said)
