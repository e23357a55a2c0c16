"""Reports that get lost, steps that a worker has had before, and what others write beside our messages."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from tests.system.flows import single
from tests.system.oracle import attempts
from tests.system.system import System
from wfcelery.broker.names import STEP_TASK, STEPS_QUEUE, Names
from wfcelery.broker.task_message import task_message

NAMES = Names()
LINE = NAMES.queue_key(STEPS_QUEUE, 5)


def test_a_step_whose_report_was_lost_while_its_worker_lives_is_tried_again(sqlite_system: System) -> None:
    system = sqlite_system
    executor, _ = system.pair(concurrency=1)
    run = system.start(single("act", {"seconds": 0.3}))
    system.until(lambda: system.ledger.lines("begin"), "the step to begin")
    os.kill(executor.pid, signal.SIGSTOP)
    with system.redis() as client:
        mailbox = NAMES.mailbox
        system.until(lambda: any(b"StepDone" in each for each in client.lrange(mailbox, 0, -1)), "a report")
        client.delete(mailbox)
    os.kill(executor.pid, signal.SIGCONT)
    system.finish([run])
    assert system.statuses() == {"completed": 1}
    assert [(number, status) for number, status, _ in attempts(system, run)] == [(1, "failed"), (2, "done")]
    assert len(system.ledger.lines("begin")) == 2


def test_a_worker_goes_on_to_speak_whatever_stands_in_the_stops(sqlite_system: System) -> None:
    system = sqlite_system
    with system.redis() as client:
        client.zadd(NAMES.stops, {b"\xff": 1, b"for ever": float("inf")})
        client.zadd(NAMES.stops, {f"half {number}": 0.5 for number in range(1_000)})
    system.pair(concurrency=1)
    run = system.start(single("act", {"seconds": 2.5 * system.lease_s}))
    system.finish([run])
    assert attempts(system, run) == [(1, "done", None)]
    assert len(system.ledger.lines("begin")) == 1


def test_nothing_is_reported_on_the_word_of_a_message_that_the_executor_has_not_sealed(
    sqlite_system: System,
) -> None:
    system = sqlite_system
    system.executor()
    run = system.start(single("act", {"value": "good"}))
    with system.redis() as client:
        true = json.loads(system.until(lambda: client.lindex(LINE, 0), "the order to be in its queue"))
        name = true["headers"]["id"]
        expired, returned, hurried, captured, old = (_forged(name) for _ in range(5))
        expired["headers"]["expires"] = "2020-01-01T00:00:00+00:00"
        returned["properties"]["delivery_info"]["redelivered"] = True
        hurried["headers"]["timelimit"] = [0.001, 0.001]
        captured["body"], captured["headers"]["timelimit"] = true["body"], [0.001, 0.001]
        old["body"] = (
            "eyJhcmdzIjogW10sICJleHBpcmVzIjogIjIwMjAtMDEtMDFUMDA6MDA6MDArMDA6MDAifQ=="  # {"args": [], ...}
        )
        for forged in (expired, returned, hurried, captured, old):
            client.rpush(LINE, json.dumps(forged))  # taken before the true one
    system.worker(concurrency=1)
    system.finish([run])
    assert system.workflows.get(run)["output"] == "good"
    assert attempts(system, run) == [(1, "done", None)]
    assert system.count_events("step_returned") == 0
    assert len(system.ledger.lines("begin")) == 1


def test_what_waits_in_a_worker_that_is_stopped_does_not_wait_for_what_runs_there(
    sqlite_system: System,
) -> None:
    system = sqlite_system
    system.ledger.gate.touch()
    _, worker = system.pair(concurrency=1)
    held = system.start(single("hold"))
    system.until(lambda: system.ledger.lines("begin"), "the step to begin")
    waiting = system.start_many(single("act"), 3)
    with system.redis() as client:
        system.until(lambda: system.out() == 4 and client.llen(LINE) < 3, "a step to wait in the worker")
    worker.popen.send_signal(signal.SIGTERM)
    system.worker(concurrency=1)
    system.finish(waiting)
    assert worker.popen.poll() is None
    assert system.count_events("step_returned") >= 1
    system.ledger.gate.unlink()
    system.finish([held])
    assert worker.popen.wait(30) == 0
    assert system.ledger.repeated() == {}


def _forged(name: str) -> dict[str, Any]:
    message = task_message(STEP_TASK, STEPS_QUEUE, task_id=name, priority=3, args=("nonsense",))
    forged: dict[str, Any] = json.loads(message)
    return forged
