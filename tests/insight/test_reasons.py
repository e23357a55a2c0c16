"""Why a run is not moving: a sentence for each thing that it may wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wfcelery.core import ids
from wfcelery.core.document import compile_flow
from wfcelery.core.state import Attempt, Error, Run, RunStatus, StepRef, StepStatus, Vote, WaitsFor
from wfcelery.insight.reasons import BrokerSeen, Reason, about, reasons
from wfcelery.store.explain import Facts, OpenStep
from wfcelery.store.health import ExecutorSeen
from wfcelery.store.workers import WorkerRow

NOW = 1_700_000_000.0
RUN = Run(ids.run_id(NOW, b"0123456789"), "d", "f", {}, "ann", NOW - 9_000, root_id="")
FLOW = compile_flow(
    {
        "start": "a",
        "steps": {
            "a": {"tool": "echo", "retry": {"max_attempts": 5}, "next": "review"},
            "b": {"tool": "echo", "queue": "gpu", "done": True},
            "review": {"approval": {"approvers": ["ann", "bob", "cy"], "quorum": 2}, "next": "late"},
            "late": {
                "approval": {"timeout_s": 60, "on_timeout": "escalate", "escalate_to": ["boss"]},
                "next": "paid",
            },
            "paid": {"wait": {"signal": "paid", "key": "{{input.k}}"}, "next": "b"},
        },
    },
    name="f",
)
ALIVE = ExecutorSeen("e1", 3, NOW - 1, NOW + 14)
WORKER = WorkerRow("w1@host", "boot", NOW - 2, ("wfcelery.steps",), "prefork", NOW - 2, 0, (), ())


def facts(*steps: OpenStep, run: Run = RUN) -> Facts:
    return Facts(run, steps, ALIVE, (WORKER,))


def a_step(name: str, *, run: Run = RUN, **fields: object) -> OpenStep:
    of_open = {key: fields.pop(key) for key in ("opened_at", "shown", "votes", "before") if key in fields}
    attempt = Attempt(name, **fields)  # type: ignore[arg-type]
    return OpenStep(run, FLOW.steps[name], attempt, **of_open)  # type: ignore[arg-type]


def said(found: Facts, broker: BrokerSeen | None = None) -> list[str]:
    return [each.message for each in reasons(found, NOW, broker, lease_s=30.0)]


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            a_step("review", waits_for=WaitsFor.APPROVAL, opened_at=NOW - 7_300),
            "waits for the approval of ann, bob or cy at `review` (0 of 2 given) since 2 h",
        ),
        (
            a_step("review", waits_for=WaitsFor.APPROVAL, votes=(Vote("review", 1, "bob", approve=True),)),
            "waits for the approval of ann or cy at `review` (1 of 2 given)",
        ),
        (
            a_step("late", waits_for=WaitsFor.APPROVAL, opened_at=NOW - 20, due_at=NOW + 40),
            "waits for the approval of a person at `late` since 20 s, escalated by itself in 40 s",
        ),
        (
            a_step("paid", waits_for=WaitsFor.SIGNAL, opened_at=NOW - 90, shown={"key": "17"}),
            "waits for signal `paid` with key 17 at `paid` since 1 min 30 s",
        ),
        (
            a_step(
                "a",
                waits_for=WaitsFor.RETRY,
                attempt=2,
                tries=1,
                due_at=NOW + 40,
                before=Error("ConnectionError", "refused"),
            ),
            "retry 2/5 of `a` in 40 s: ConnectionError: refused",
        ),
        (
            a_step("a", waits_for=WaitsFor.TIME, due_at=NOW + 10_800),
            "`a` goes on at 2023-11-15 01:13:20 UTC, in 3 h",
        ),
        (
            a_step("a", waits_for=WaitsFor.TIME, due_at=NOW + 10_800, missing=1),
            "starts at 2023-11-15 01:13:20 UTC, in 3 h",
        ),
        (
            a_step("a", waits_for=WaitsFor.REPORT, opened_at=NOW - 180),
            "`a` waits for its result to be reported from outside since 3 min",
        ),
        (
            a_step("a", waits_for=WaitsFor.PERSON),
            f"`a` lost its worker and waits for a person; `wfcelery approve {RUN.id} a` lets it run again",
        ),
        (
            a_step("a", status=StepStatus.RUNNING, started_at=NOW - 200, worker="w1@host"),
            "step `a` runs on worker w1@host since 3 min",
        ),
        (
            a_step("a", status=StepStatus.RUNNING, sent_at=NOW - 300),
            "`a` waits in queue `wfcelery.steps` since 5 min",
        ),
        (
            a_step("a", status=StepStatus.READY, ready_at=NOW - 3),
            "`a` is about to be handed to queue `wfcelery.steps` since 3 s",
        ),
        (
            a_step("b", status=StepStatus.RUNNING, sent_at=NOW - 300),
            "no worker consumes queue `gpu`: `b` waits since 5 min; start `wfcelery worker --queues gpu`",
        ),
    ],
)
def test_an_open_step_says_what_it_waits_for(step: OpenStep, sentence: str) -> None:
    assert said(facts(step)) == [sentence]


def test_a_queue_tells_about_how_many_are_before() -> None:
    step = a_step("a", status=StepStatus.RUNNING, sent_at=NOW - 300)
    broker = BrokerSeen({"wfcelery.steps": 1_901})
    assert said(facts(step), broker) == [
        "`a` waits in queue `wfcelery.steps` behind about 1,900 others since 5 min"
    ]


def test_a_step_that_a_worker_holds_is_not_said_to_wait_in_a_queue() -> None:
    step = a_step("a", status=StepStatus.RUNNING, sent_at=NOW - 300)
    holding = replace(WORKER, active=(f"{RUN.id}:a:1",))
    assert said(replace(facts(step), workers=(holding,))) == ["step `a` runs on worker w1@host"]


def test_a_worker_that_is_silent_for_longer_than_a_lease_is_not_counted_on() -> None:
    silent = replace(WORKER, seen_at=NOW - 100)
    queued = a_step("a", status=StepStatus.RUNNING, sent_at=NOW - 300)
    begun = a_step("a", status=StepStatus.RUNNING, started_at=NOW - 300, worker="w1@host")
    assert said(replace(facts(queued, begun), workers=(silent,))) == [
        (
            "no worker consumes queue `wfcelery.steps`: `a` waits since 5 min; "
            "start `wfcelery worker --queues wfcelery.steps`"
        ),
        "step `a` runs on worker w1@host since 5 min, which was last heard of 1 min 40 s ago",
    ]


def test_without_an_executor_nobody_knows_of_the_workers() -> None:
    gone = replace(ALIVE, renewed_at=NOW - 120, expires_at=NOW - 105)
    step = a_step("b", status=StepStatus.READY, ready_at=NOW - 90)
    assert said(replace(facts(step), executor=gone, workers=())) == [
        (
            "no executor is running since 2 min; start `wfcelery executor`, "
            f"or go on here with `wfcelery run --resume {RUN.id}`"
        ),
        "`b` is about to be handed to queue `gpu` since 1 min 30 s",
    ]


def test_a_run_that_is_held_says_so_first() -> None:
    held = RUN._replace(held=True, status=RunStatus.PAUSED, updated_at=NOW - 5)
    gate = a_step("review", waits_for=WaitsFor.APPROVAL)
    assert said(facts(gate, run=held)) == [
        f"held by an operator; `wfcelery resume {RUN.id}` lets it go on",
        "waits for the approval of ann, bob or cy at `review` (0 of 2 given)",
    ]


def test_a_broker_that_is_away_is_told() -> None:
    broker = BrokerSeen(trouble="the broker is out of reach: refused")
    step = a_step("a", status=StepStatus.RUNNING, sent_at=NOW - 300)
    assert said(facts(step), broker) == [
        "the broker is out of reach: refused",
        "`a` waits in queue `wfcelery.steps` since 5 min",
    ]


def test_items_that_wait_for_the_same_are_told_once() -> None:
    items = [a_step("a", item=n, status=StepStatus.RUNNING, sent_at=NOW - 60) for n in range(40)]
    found = replace(facts(*items), others=1_960)
    assert said(found) == [
        "`a[0]` waits in queue `wfcelery.steps` since 1 min (and 39 more items)",
        "1,960 more steps are open",
    ]


def test_a_step_of_a_sub_run_says_where_it_is() -> None:
    child = RUN._replace(id="c" * 26, parent=StepRef(RUN.id, "sub", -1, 1, 1))
    gate = a_step("late", run=child, waits_for=WaitsFor.APPROVAL)
    assert said(facts(gate)) == [f"waits for the approval of a person at `late` of sub-run {child.id}"]


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (RunStatus.COMPLETED, "it is completed"),
        (RunStatus.CANCELLED, "it was cancelled: X: no"),
        (RunStatus.FAILED, f"it has failed: X: no; `wfcelery retry {RUN.id}` tries again what failed"),
    ],
)
def test_a_run_that_has_ended_says_how(status: RunStatus, sentence: str) -> None:
    error = None if status is RunStatus.COMPLETED else Error("X", "no")
    assert said(facts(run=RUN._replace(status=status, error=error))) == [sentence]


def test_a_run_that_nothing_holds_up_goes_on() -> None:
    assert said(facts()) == ["nothing holds it up: it goes on right now"]


def test_a_reason_is_an_object_for_programs() -> None:
    gate = a_step("late", waits_for=WaitsFor.APPROVAL, opened_at=NOW, due_at=NOW + 60)
    [reason] = reasons(facts(gate), NOW)
    assert reason.as_json() == {
        "code": "approval",
        "message": "waits for the approval of a person at `late` since 0 s, escalated by itself in 1 min",
        "step": "late",
        "item": None,
        "since": "2023-11-14T22:13:20.000Z",
        "until": "2023-11-14T22:14:20.000Z",
    }
    assert Reason("moving", "it goes on").as_json()["step"] is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1.0, "0 s"),
        (59.4, "59 s"),
        (60.0, "1 min"),
        (90.0, "1 min 30 s"),
        (130.0, "2 min"),
        (3_660.0, "1 h 1 min"),
        (7_300.0, "2 h"),
        (90_000.0, "1 d 1 h"),
        (200_000.0, "2 d"),
    ],
)
def test_lengths_of_time_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert about(seconds) == text
