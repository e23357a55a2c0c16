"""The bench: from the orders of a message to its reports, in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest
import redis
from billiard.exceptions import SoftTimeLimitExceeded
from celery.app.task import Context as Request

from wfcelery.broker.client import connect
from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import Names
from wfcelery.broker.sender import Sender
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import Report, StepDone, StepFailed, Trace
from wfcelery.core.state import Error, Prepared, StepRef
from wfcelery.executor.answers import new_run_id
from wfcelery.shell.bench import STOPPED, Bench, OrderRefused, StepFailure
from wfcelery.shell.outbox import Outbox
from wfcelery.tools.registry import Registry
from wfcelery.wire.keys import keyring
from wfcelery.wire.orders import ref_text, write_order
from wfcelery.wire.seal import Seal

NAMES = Names()
RING = keyring(("a secret of thirty-two characters",))
SEAL = Seal(RING)
RUN = new_run_id(1.0)
DEADLINE_S = 10.0


class Desk:
    """A bench, its broker, and tools that say or do what a test tells them."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.called: list[str] = []
        self.when_called: Callable[[str], object] = lambda step: step
        tools = Registry()
        tools.add(self._act)
        sender = Sender(client, NAMES)
        self.outbox = Outbox(sender, SEAL, keep_s=60.0)
        self.bench = Bench(tools, RING, self.outbox, sender, worker="w", now=lambda: 1.0)

    def _act(self, step: str) -> object:
        self.called.append(step)
        return self.when_called(step)

    def work(self, *orders: Dispatch, limits: object = None) -> None:
        task_id = "+".join(ref_text(order.ref) for order in orders)
        self.bench.work([write_order(order, RING) for order in orders], Request(id=task_id, timelimit=limits))

    def reports(self) -> list[tuple[str, object]]:
        """What the mailbox holds: the step, and its result or the error."""
        payloads = cast("list[bytes]", self.client.lrange(NAMES.mailbox, 0, -1))
        messages = [cast("Report | Trace", SEAL.read(payload)) for payload in payloads]
        return [(message.ref.step, _outcome(message)) for message in messages]

    def reported(self, step: str) -> bool:
        """Wait until a step is reported; tell whether it was in time."""
        deadline = time.monotonic() + DEADLINE_S
        while step not in dict(self.reports()) and time.monotonic() < deadline:
            time.sleep(0.005)
        return step in dict(self.reports())


def _outcome(message: Report | Trace) -> object:
    if isinstance(message, StepDone):
        return message.result
    return message.error if isinstance(message, StepFailed) else type(message).__name__


def order(step: str, **options: object) -> Dispatch:
    ref = StepRef(RUN, step, -1, 1, 2)
    given: dict[str, object] = {"queue": None, "priority": None, "timeout_s": None, **options}
    return Dispatch(ref, "flow", "_act", Prepared({"step": step}), "ann", **given)  # type: ignore[arg-type]


@pytest.fixture
def desk(valkey_url: str) -> Iterator[Desk]:
    with connect(valkey_url) as client:
        client.flushall()
        made = Desk(client)
        yield made
        made.bench.close()


def test_the_report_of_a_step_does_not_wait_for_the_next_one_of_its_message(desk: Desk) -> None:
    seen: list[bool] = []
    desk.when_called = lambda step: seen.append(desk.reported("quick")) if step == "slow" else step
    desk.work(order("quick"), order("slow"), order("last"))
    assert seen == [True]
    assert desk.reports() == [("quick", "quick"), ("slow", None), ("last", "last")]


def test_all_is_reported_when_a_message_is_done(desk: Desk) -> None:
    steps = [f"s{number}" for number in range(10)]
    desk.work(*map(order, steps))
    assert desk.reports() == [(step, step) for step in steps]


def test_a_stop_that_is_asked_for_while_a_message_is_worked_on_keeps_its_later_steps_from_beginning(
    desk: Desk,
) -> None:
    last = order("last")
    mailbox = RedisMailbox(desk.client, NAMES, 1, SEAL.read, SEAL.write)

    def take_a_second(step: str) -> str:
        mailbox.add_stops([ref_text(last.ref)])
        time.sleep(1.05)
        return step

    desk.when_called = take_a_second
    desk.work(order("slow"), last)
    assert desk.called == ["slow"]
    assert desk.reports() == [("slow", "slow"), ("last", STOPPED)]


def test_a_limit_that_strikes_before_the_tool_is_called_is_a_timeout(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    push, pushes = desk.outbox.push, iter([True])

    def struck(*reports: Report | Trace) -> None:
        if next(pushes, False):
            raise SoftTimeLimitExceeded
        push(*reports)

    monkeypatch.setattr(desk.outbox, "push", struck)
    with pytest.raises(StepFailure, match="timeout: the tool ran longer than 2 s"):
        desk.work(order("only", again=True, timeout_s=2.0), limits=[7.0, 2.0])
    assert desk.called == []
    assert desk.reports() == [("only", Error("timeout", "the tool ran longer than 2 s"))]


@pytest.mark.parametrize("limits", [[0.001, 2.0], [7.0, 0.001], [None, None], None, [7.0, None], "ab"])
def test_an_order_that_came_with_other_limits_than_its_own_is_refused(desk: Desk, limits: object) -> None:
    with pytest.raises(OrderRefused):
        desk.work(order("only", timeout_s=2.0), limits=limits)
    assert (desk.called, desk.reports()) == ([], [])


def test_a_duty_that_fails_stops_neither_the_others_nor_itself(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[str] = []

    def fail(names: object) -> set[str]:
        looks.append("look")
        raise UnicodeError("of any kind")

    monkeypatch.setattr(desk.bench, "_stopped", fail)

    def wait(step: str) -> str:
        deadline = time.monotonic() + DEADLINE_S
        while len(looks) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        return step

    desk.when_called = wait
    desk.work(order("only"))
    assert len(looks) >= 2
    assert desk.reports() == [("only", "only")]
    assert [record.getMessage() for record in caplog.records] == [
        "a duty failed, and is tried again: UnicodeError: of any kind"
    ]
