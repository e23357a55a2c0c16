"""Timers are rows: they act in time, whatever the broker has forgotten and whoever was away."""

from __future__ import annotations

import datetime as dt
import re
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.system.flows import single
from tests.system.system import System
from wfcelery.core.values import Json

SOON_S = 2.0
LATER_S = 4.0
IN_TIME_S = 1.0
A_DAY_S = 86_400.0
ETA = re.compile(r"eta\W+\d{4}-\d\d-\d\d")


def test_an_alarm_for_tomorrow_costs_no_message_today_and_one_in_two_seconds_a_single_one(
    sqlite_system: System,
) -> None:
    system = sqlite_system
    system.executor()
    with Tap(system) as tap:
        waiting = [system.start(_delayed(A_DAY_S)), system.start(single("act"), at=_in(A_DAY_S))]
        system.until(lambda: len(tap.find("wfcelery.pulse")) >= 3, "three ticks of the executor")
        assert [_due_at(system, run)() > time.time() for run in waiting] == [True, True]
        assert tap.find(ETA) == []
        system.start(_delayed(SOON_S))
        system.until(lambda: tap.find(ETA), "the wake-up call")
        system.until(lambda: len(tap.find("wfcelery.pulse")) >= 6, "more ticks of the executor")
    assert len(tap.find(ETA)) == 1


def test_timers_act_within_a_second_of_their_time(sqlite_system: System) -> None:
    _are_in_time(sqlite_system, lambda: None)


def test_timers_act_within_a_second_of_their_time_after_a_flush(system: System) -> None:
    _are_in_time(system, system.flush)


def _are_in_time(system: System, meanwhile: Callable[[], None]) -> None:
    system.executor()
    system.worker()
    runs = {
        "delay": system.start(_delayed(LATER_S)),
        "gate": system.start(_gated()),
        "wait": system.start(_signalled()),
        "at": system.start(single("act"), at=_in(LATER_S)),
        "retry": system.start(_stumbling()),
    }
    due = {name: system.until(_due_at(system, run), f"{name} to wait") for name, run in runs.items()}
    meanwhile()
    assert time.time() < min(due.values())
    system.finish(runs.values())
    assert system.statuses() == {"completed": len(runs)}
    begun = {name: _last_begin(system, run) for name, run in runs.items()}
    late = {name: round(begun[name] - due[name], 3) for name in runs}
    assert {name: by for name, by in late.items() if not 0 <= by < IN_TIME_S} == {}


def test_a_timer_that_came_due_while_no_executor_was_there_acts_at_once_with_the_next(system: System) -> None:
    executor = system.executor()
    system.worker()
    run = system.start(_stumbling())
    due = system.until(_due_at(system, run), "the retry to be set")
    executor.kill()
    system.until(lambda: time.time() > due + IN_TIME_S, "the time to be over")
    assert len(system.ledger.lines("begin")) == 1
    system.executor()
    there = time.time()
    system.finish([run])
    assert system.statuses() == {"completed": 1}
    assert _last_begin(system, run) - there < IN_TIME_S


class Tap:
    """Listens to everything that the broker is told."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._said: list[str] = []
        self._listening = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="tap")

    def __enter__(self) -> Self:
        self._thread.start()
        self._system.until(self._listening.is_set, "the tap to listen")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        with self._system.redis() as client:
            client.ping()  # it hears this, and looks up
        self._thread.join()

    def find(self, pattern: str | re.Pattern[str]) -> list[str]:
        return [said for said in list(self._said) if re.search(pattern, said)]

    def _listen(self) -> None:
        with self._system.redis() as client, client.monitor() as monitor:
            self._listening.set()
            for said in monitor.listen():
                self._said.append(str(said["command"]))
                if self._ended.is_set():
                    return


def _in(seconds: float) -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)


def _due_at(system: System, run: str) -> Callable[[], float]:
    """Tell what the tables say of when the open timer of this run is due; 0 without one."""

    def look() -> float:
        steps = system.workflows.get(run)["steps"]
        assert isinstance(steps, list)
        due = [step["due_at"] for step in steps if step["status"] == "pending" and step["due_at"]]
        return dt.datetime.fromisoformat(due[0]).timestamp() if due else 0.0

    return look


def _last_begin(system: System, run: str) -> float:
    return max(line.at for line in system.ledger.lines("begin") if line.run == run)


def _stumbling() -> Json:
    return single("stumble", {"times": 1}, retry={"max_attempts": 2, "backoff": [SOON_S]})


def _delayed(seconds: float) -> Json:
    return _then_act("delayed", {"delay": seconds})


def _gated() -> Json:
    return _then_act(
        "gated", {"approval": {"approvers": ["bob"], "timeout_s": LATER_S, "on_timeout": "approve"}}
    )


def _signalled() -> Json:
    return _then_act("signalled", {"wait": {"signal": "go", "timeout_s": LATER_S, "on_timeout": "late"}})


def _then_act(name: str, waiting: dict[str, Json]) -> Json:
    steps: dict[str, Json] = {"waiting": {**waiting, "next": "after"}, "after": {"tool": "act", "done": True}}
    if name == "signalled":
        steps["late"] = {"tool": "act", "done": True}
    return {"name": name, "start": "waiting", "steps": steps}
