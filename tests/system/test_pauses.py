"""A worker that is stopped past its lease: its step runs elsewhere, and its late result is refused."""

from __future__ import annotations

import signal

import pytest

from tests.system.flows import single
from tests.system.oracle import attempts
from tests.system.system import Process, System
from wfcelery.core.values import Json

pytestmark = pytest.mark.timeout(240)


def test_a_late_result_is_refused_while_the_next_attempt_runs(system: System) -> None:
    run, stopped = _stop_the_worker_at_work(system)
    system.ledger.gate_of(2).touch()
    system.until(lambda: _begun(system, 2), "attempt 2 to begin")
    system.ledger.gate_of(1).unlink()
    stopped.signal(signal.SIGCONT)
    refused = system.until(lambda: system.events(run, "report_refused"), "the late result to be refused")
    assert system.workflows.status(run) == "running"
    _assert_refused(system, refused)
    system.ledger.gate_of(2).unlink()
    system.finish([run])
    _assert_second_counts(system, run)


def test_a_late_result_is_refused_after_the_run_has_ended(system: System) -> None:
    run, stopped = _stop_the_worker_at_work(system)
    system.finish([run])
    _assert_second_counts(system, run)
    system.ledger.gate_of(1).unlink()
    stopped.signal(signal.SIGCONT)
    refused = system.until(lambda: system.events(run, "report_refused"), "the late result to be refused")
    _assert_refused(system, refused)
    _assert_second_counts(system, run)


def _stop_the_worker_at_work(system: System) -> tuple[str, Process]:
    """Give a run and the worker that is stopped in the middle of its step; another worker is there."""
    system.ledger.gate_of(1).touch()
    workers = [system.worker(concurrency=1, ready=None) for _ in range(2)]
    system.ready(system.executor(ready=None), *workers)
    run = system.start(single("linger"))
    # Before its worker has named it, nobody knows that it has begun, and it would be sent again as attempt 1.
    system.until(lambda: system.events(run, "step_started"), "the executor to know that the step has begun")
    (line,) = system.ledger.lines("begin")
    at_work = next(worker for worker in workers if line.pid in worker.children())
    at_work.signal(signal.SIGSTOP)
    assert system.ledger.lines("end") == []
    return run, at_work


def _begun(system: System, attempt: int) -> bool:
    return any(line.attempt == attempt for line in system.ledger.lines("begin"))


def _assert_refused(system: System, events: list[dict[str, Json]]) -> None:
    fences = {line.attempt: line.fence for line in system.ledger.lines("begin")}
    (event,) = events
    assert (event["step"], event["attempt"]) == ("only", 1)
    reason = f"attempt 2 with fence {fences[2]} is the current one"
    assert event["data"] == {"report": "StepDone", "fence": fences[1], "reason": reason}


def _assert_second_counts(system: System, run: str) -> None:
    first, second = attempts(system, run)
    assert first == (1, "failed", {"type": "lost", "message": _reason(system, run)})
    assert second == (2, "done", None)
    assert system.workflows.get(run)["output"] == 2
    assert system.workflows.status(run) == "completed"
    assert system.unexplained() == {}


def _reason(system: System, run: str) -> str:
    (name,) = system.query(
        f"SELECT worker FROM workflow_steps WHERE workflow_id = '{run}' AND attempt = 1"  # noqa: S608
    )[0]
    return f"worker {name} had it, and no worker has named it for {system.lease_s:g} s"
