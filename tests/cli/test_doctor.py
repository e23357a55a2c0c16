"""`doctor` on a real broker and a real database, and `keys`."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from tests.cli.calling import Said, call
from tests.workflows.system import SECRET, System, eventually
from wfcelery.broker.client import connect
from wfcelery.broker.names import Names
from wfcelery.broker.pulse import Pulse
from wfcelery.executor.messages import Holding
from wfcelery.insight.queues import lengths
from wfcelery.store import notices, open_database, workers
from wfcelery.store.notices import Notice, NoticeStatus
from wfcelery.wire.keys import worker_keys


@pytest.fixture
def broker_url(here: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with closing(redis.Redis.from_url(valkey_url)) as client:
        client.flushall()
    url = valkey_url.replace("unix://", "redis+socket://", 1)
    monkeypatch.setenv("WFCELERY_BROKER_URL", url)
    monkeypatch.setenv("WFCELERY_SECRET_KEY", SECRET)
    monkeypatch.setenv("WFCELERY_DATABASE_URL", f"sqlite:///{here}/wfcelery.db")
    return url


def levels(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What doctor found, by check; the worst of each."""
    found = json.loads(call(capsys, "doctor", "-o", "json").out)
    assert all(list(each) == ["check", "level", "message", "advice"] for each in found)
    order = ["ok", "warn", "fail"]
    worst: dict[str, str] = {}
    for each in found:
        known = worst.get(each["check"], "ok")
        worst[each["check"]] = max(known, each["level"], key=order.index)
    return worst


def test_a_system_that_is_well_is_found_well(
    broker_url: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with System(broker_url, os.environ["WFCELERY_DATABASE_URL"]):
        eventually(lambda: levels(capsys).get("executor") == "ok")
        now = time.time()
        with closing(connect(broker_url)) as client:
            pulse = Pulse(client, Names())
            pulse.beat("executor", now)
            pulse.beat("beat", now)
        with (
            closing(open_database(os.environ["WFCELERY_DATABASE_URL"])) as database,
            database.transaction() as conn,
        ):
            workers.put(conn, [Holding("w1", "b1", now, ("wfcelery.steps",), "prefork")], now)
        said = call(capsys, "doctor")
        assert (said.code, said.err) == (0, "")
        assert {line.split()[0] for line in said.out.splitlines()} == {"✓"}
        assert "✓ ok    1 worker consumes wfcelery.steps" in said.out.splitlines()


def test_a_system_that_is_down_is_told_part_by_part(
    broker_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFCELERY_BROKER_URL", "redis+socket:///nowhere/valkey.sock")
    monkeypatch.setenv("WFCELERY_SECRET_KEY", "short")
    said = call(capsys, "doctor")
    assert said.code == 1
    assert [line[:8] for line in said.out.splitlines()] == ["✗ fail  "] * 3
    assert levels(capsys) == {"secret-key": "fail", "broker": "fail", "database": "fail"}


def test_steps_that_nobody_runs_and_tools_that_are_not_there_are_found(
    broker_url: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "shop.py").write_text("from wfcelery import tool\n\n@tool\ndef pay() -> int:\n    return 1\n")
    (here / "f.yaml").write_text(
        "start: g\nsteps: {g: {approval: {}, next: a}, a: {tool: pay, queue: gpu, done: true}}\n"
    )
    monkeypatch.delenv("WFCELERY_BROKER_URL")
    assert call(capsys, "run", "f.yaml", "--tools", "shop", "--no-wait-gates").code == 6
    run = call(capsys, "ps", "-o", "ids").out.strip()
    assert call(capsys, "approve", run, "--user", "bob").code == 0
    lines = call(capsys, "doctor").out.splitlines()
    assert any("1 step waits in gpu" in line and "no worker consumes it" in line for line in lines)
    assert (
        "⏸ warn  flows call tools that are not there: pay; "
        "WFCELERY_TOOLS is not set; workers need the modules that have them"
    ) in lines
    assert levels(capsys)["tools"] == "warn"
    assert "✓ ok    every tool that flows call is there" in call(capsys, "doctor", "--tools", "shop").out


def test_a_gate_of_which_people_do_not_know_is_found_as_long_as_it_is_open(
    broker_url: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "ask.yaml").write_text(
        "name: ask\nstart: a\nsteps:\n"
        "  a: {approval: {approvers: [bob, eve]}, next: b}\n  b: {tool: echo, done: true}\n"
    )
    with System(broker_url, os.environ["WFCELERY_DATABASE_URL"]):
        eventually(lambda: levels(capsys).get("executor") == "ok")
        run = call(capsys, "start", "ask.yaml", "-q").out.strip()
        eventually(lambda: call(capsys, "explain", run).out.startswith("waits for the approval"))
        assert "notices" not in levels(capsys)
        with (
            closing(open_database(os.environ["WFCELERY_DATABASE_URL"])) as database,
            database.transaction() as conn,
        ):
            now = time.time()
            old = Notice("n1", run, "a", 1, "gate_opened", "bob", now - 61, now - 61)
            failed = replace(old, id="n2", recipient="eve", status=NoticeStatus.FAILED, error="no address")
            fresh = replace(old, id="n3", next_at=now)
            notices.put_many(conn, [old, failed, fresh])
        said = call(capsys, "doctor").out
        assert "1 notice of an open gate reached nobody" in said
        assert "1 notice of an open gate not sent for a minute" in said
        assert call(capsys, "approve", run, "--user", "bob").code == 0
        assert "notices" not in levels(capsys)


def test_the_worker_key_is_printed_and_a_new_secret_is_a_good_one(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(capsys, "keys") == Said(
        2, "", "wfcelery: setting secret_key: is not set; `wfcelery keys --new` prints a good one\n"
    )
    new = call(capsys, "keys", "--new").out.strip()
    monkeypatch.setenv("WFCELERY_SECRET_KEY", new)
    assert call(capsys, "keys") == Said(0, f"{worker_keys((new,))[0]}\n", "")
    assert json.loads(call(capsys, "keys", "-o", "json").out) == {"worker_key": list(worker_keys((new,)))}
    assert json.loads(call(capsys, "keys", "--new", "-o", "json").out)["secret_key"] != new


def test_the_length_of_a_queue_counts_every_priority(broker_url: str) -> None:
    names = Names()
    with closing(connect(broker_url)) as client:
        for priority, count in ((0, 2), (3, 1), (9, 4)):
            client.rpush(names.queue_key("gpu", priority), *range(count))
        assert lengths(client, names, {"gpu", "wfcelery.steps"}) == {"gpu": 7, "wfcelery.steps": 0}
