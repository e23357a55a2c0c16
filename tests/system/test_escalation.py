"""Escalation in real time: who is asked too late is joined by others, once, and then time decides."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.system.system import System
from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.errors import Refused

TIMEOUT_S = 2.0
IN_TIME_S = 2.0
"""How late a timer may act on a machine that has other things to do."""
LONGEST_S = 30.0
MOMENTS = ("gate_opened", "gate_escalated", "step_failed")


def escalating(timeout_s: float = TIMEOUT_S, **gate: Json) -> Json:
    """A gate that asks eve when ann and dan have not answered, in front of a tool."""
    rules: dict[str, Json] = {
        "approvers": ["ann", "dan"],
        "timeout_s": timeout_s,
        "on_timeout": "escalate",
        "escalate_to": ["eve"],
        **gate,
    }
    return {
        "name": "escalating",
        "start": "ask",
        "steps": {"ask": {"approval": rules, "next": "act"}, "act": {"tool": "act", "done": True}},
    }


def start(system: System, flow: Json) -> str:
    return system.start(flow, by="stan")


def escalated(system: System, run: str) -> None:
    """Wait until others are asked, too."""
    asked = f"SELECT name FROM workflow_steps WHERE workflow_id = '{run}' AND escalated"  # noqa: S608
    system.until(lambda: system.query(asked), "the escalation", LONGEST_S)


def moment(system: System, run: str, kind: str) -> float:
    """When something happened, in seconds."""
    [event] = system.events(run, kind)
    return dt.datetime.fromisoformat(str(event["at"])).timestamp()


def gate_events(system: System, run: str) -> list[tuple[str, str]]:
    """What happened at the gate, and by whom."""
    wanted = ("gate_opened", "gate_escalated", "vote_cast", "step_done", "step_failed", "run_cancelled")
    return [
        (str(event["type"]), str(event["actor"] or ""))
        for event in system.events(run)
        if event["type"] in wanted and event["step"] in ("ask", None)
    ]


def test_the_second_timeout_denies_and_the_run_is_cancelled(system: System) -> None:
    system.ready(
        system.executor(ready=None, WFCELERY_NOTIFY="json://127.0.0.1:9/"), system.worker(ready=None)
    )
    run = start(system, escalating())
    escalated(system, run)
    assert system.workflows.status(run) == "paused"
    system.finish([run], LONGEST_S)
    opened, asked_others, denied = (moment(system, run, kind) for kind in MOMENTS)
    assert TIMEOUT_S <= asked_others - opened < TIMEOUT_S + IN_TIME_S
    assert TIMEOUT_S <= denied - asked_others < TIMEOUT_S + IN_TIME_S
    found = system.workflows.get(run)
    assert found["status"] == "cancelled"
    assert "ask was denied by timeout: nobody decided in time" in str(found["error"])
    assert gate_events(system, run) == [
        ("gate_opened", ""),
        ("gate_escalated", "timeout"),
        ("step_failed", "timeout"),
        ("run_cancelled", "timeout"),
    ]
    assert system.ledger.lines() == []
    notices = system.query(f"SELECT kind FROM notices WHERE run_id = '{run}' ORDER BY id")  # noqa: S608
    assert {str(kind) for (kind,) in notices} >= {"gate_opened", "gate_escalated", "gate_decided"}


def test_who_is_asked_by_the_escalation_may_decide_from_then_on(sqlite_system: System) -> None:
    system = sqlite_system
    system.pair()
    run = start(system, escalating())
    eve = Principal("eve")
    with pytest.raises(Refused, match="eve is not an approver of ask; it waits for ann, dan"):
        system.workflows.decide(run, "ask", approve=True, by=eve)
    escalated(system, run)
    assert system.workflows.decide(run, "ask", approve=True, by=eve) == {"decided": True, "approved": True}
    system.finish([run], LONGEST_S)
    assert system.workflows.status(run) == "completed"
    assert [line.step for line in system.ledger.lines("end")] == ["act"]


def test_who_was_asked_first_may_still_decide_after_the_escalation(sqlite_system: System) -> None:
    system = sqlite_system
    system.pair()
    run = start(system, escalating())
    escalated(system, run)
    assert system.workflows.decide(run, "ask", approve=True, by="ann")["decided"] is True
    system.finish([run], LONGEST_S)
    assert system.workflows.status(run) == "completed"


def test_votes_are_kept_over_an_escalation(sqlite_system: System) -> None:
    system = sqlite_system
    system.pair()
    run = start(system, escalating(quorum=2))
    half = {"decided": False, "votes": 1, "quorum": 2}
    assert system.workflows.decide(run, "ask", approve=True, comment="early", by="ann") == half
    escalated(system, run)
    with pytest.raises(Refused, match="ann has already voted at ask"):
        system.workflows.decide(run, "ask", approve=True, by="ann")
    assert system.ledger.lines() == []
    assert system.workflows.decide(run, "ask", approve=True, by="eve") == {"decided": True, "approved": True}
    system.finish([run], LONGEST_S)
    assert system.workflows.status(run) == "completed"
    assert gate_events(system, run) == [
        ("gate_opened", ""),
        ("vote_cast", "ann"),
        ("gate_escalated", "timeout"),
        ("vote_cast", "eve"),
        ("step_done", "eve"),
    ]
