from __future__ import annotations

import dataclasses
import logging
import threading

import pytest

from wfcelery.errors import NoRetry
from wfcelery.tools import Context, Later, Outcome, Stopped
from wfcelery.tools.context import RealPace, idempotency_key


class VirtualPace:
    """Time that passes when somebody waits; asks for a stop at `stop_at`."""

    def __init__(self, stop_at: float = float("inf")) -> None:
        self.time = 100.0
        self.stop_at = stop_at
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def stop_requested(self) -> bool:
        return self.time >= self.stop_at

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time = min(self.time + seconds, max(self.time, self.stop_at))


def test_the_idempotency_key_is_the_same_for_all_attempts() -> None:
    first = Context(run_id="r1", step="pay", attempt=1, fence=7)
    second = Context(run_id="r1", step="pay", attempt=2, fence=8)
    assert first.idempotency_key == second.idempotency_key == idempotency_key("r1", "pay", -1)
    assert len(first.idempotency_key) == 64


def test_the_idempotency_key_differs_between_runs_steps_and_items() -> None:
    works = [("r1", "pay", -1), ("r2", "pay", -1), ("r1", "pay", 0), ("r1", "pay", 1), ("r1p", "ay", -1)]
    assert len({idempotency_key(*work) for work in works}) == len(works)


def test_a_context_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Context().attempt = 2  # type: ignore[misc]


def test_time_left_counts_from_the_start_of_the_tool_and_stops_at_zero() -> None:
    pace = VirtualPace()
    ctx = Context(timeout_s=10, pace=pace)
    pace.time += 4
    assert (ctx.time_left(), ctx.cancelled) == (6.0, False)
    pace.time += 60
    assert (ctx.time_left(), ctx.cancelled) == (0.0, True)


def test_without_a_limit_there_is_no_time_left_to_tell() -> None:
    ctx = Context(pace=VirtualPace())
    assert (ctx.time_left(), ctx.cancelled) == (None, False)


def test_a_step_asked_to_stop_is_cancelled() -> None:
    stop = threading.Event()
    ctx = Context(pace=RealPace(stop))
    assert not ctx.cancelled
    stop.set()
    assert ctx.cancelled


def test_sleep_lets_the_time_pass() -> None:
    pace = VirtualPace()
    Context(pace=pace, timeout_s=90_000).sleep(86_400)
    assert (pace.time, pace.waits) == (86_500.0, [86_400.0])


def test_sleep_ends_with_the_time_limit() -> None:
    pace = VirtualPace()
    with pytest.raises(Stopped) as caught:
        Context(pace=pace, timeout_s=2.5).sleep(60)
    assert (str(caught.value), pace.time) == ("the time limit of 2.5 s is over", 102.5)


def test_sleep_ends_when_the_step_is_asked_to_stop() -> None:
    pace = VirtualPace(stop_at=103)
    with pytest.raises(Stopped) as caught:
        Context(pace=pace).sleep(60)
    assert (str(caught.value), pace.time) == ("the step was asked to stop", 103.0)


def test_sleep_in_real_time_ends_at_once_when_stopped_and_takes_any_length() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        Context(pace=RealPace(stop)).sleep(1e300)
    RealPace(stop).wait(1e300)


def test_sleep_for_no_time_returns() -> None:
    Context().sleep(0)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_sleep_refuses_what_is_no_length_of_time(seconds: float) -> None:
    with pytest.raises(NoRetry) as caught:
        Context().sleep(seconds)
    assert str(caught.value) == f"cannot sleep for {seconds} seconds; give a number from 0"


def test_later_and_outcome_are_plain_values() -> None:
    assert Context().later() == Later()
    assert Context().outcome("found", 3) == Outcome("found", 3)


def test_log_records_carry_the_step_and_the_tools_own_fields(caplog: pytest.LogCaptureFixture) -> None:
    ctx = Context(run_id="r1", flow="billing", step="pay", item=2, attempt=3)
    with caplog.at_level(logging.INFO, "wfcelery.tool"):
        ctx.logger.info("charged %s", "EUR", extra={"amount": 5, "step": "forged"})
    (record,) = caplog.records
    fields = {name: getattr(record, name) for name in ("run_id", "flow", "step", "item", "attempt", "amount")}
    expected = {"run_id": "r1", "flow": "billing", "step": "pay", "item": 2, "attempt": 3, "amount": 5}
    assert (record.getMessage(), fields) == ("charged EUR", expected)
