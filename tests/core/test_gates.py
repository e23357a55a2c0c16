"""Gates: who decides, when they remind and run out, and who is told of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.driver import RUN_ID, START
from tests.model.flows_strategy import Document, Steps
from tests.model.table import ANN, STARTER, Table
from wfcelery.core import gate_clock
from wfcelery.core.effects import NoticeKind, Notify
from wfcelery.core.flow import Gate, OnTimeout
from wfcelery.core.messages import Answer, Decide, Principal, TimerDue
from wfcelery.core.state import NO_ITEM, Attempt, StepRef
from wfcelery.core.values import Json

TOOL: Document = {"tool": "echo"}
BOB, CAY, EVE = Principal("bob"), Principal("cay"), Principal("eve")
ALLOW = "`allow_self: true` in the gate would allow it"
CAY_AT_TERMINAL = Principal("cay", at_terminal=True)


def gate(approval: Document, defaults: Document | None = None) -> Table:
    steps: Steps = {"g": {"approval": approval, "next": "b"}, "b": {**TOOL, "done": True}}
    return Table(steps, defaults=defaults or {})


def notices(run: Table) -> list[Notify]:
    return [effect for effect in run.last.effects if isinstance(effect, Notify)]


def told(run: Table) -> list[tuple[str, tuple[str, ...]]]:
    return [(notice.kind.value, notice.to) for notice in notices(run)]


def later(run: Table, seconds: float, step: str = "g") -> None:
    """Let time pass, and the clock ring for the gate."""
    run.now = START + seconds
    run.say(TimerDue(RUN_ID, step, NO_ITEM, run.run.attempts[step, NO_ITEM].attempt))


def due(run: Table) -> float | None:
    due_at = run.run.attempts["g", NO_ITEM].due_at
    return None if due_at is None else due_at - START


# -- who may decide


def test_who_defined_the_flow_may_not_decide_its_gates() -> None:
    run = gate({})
    assert run.flow.author == "cay"
    reason = f"cay defined this flow and may not decide its gate g ({ALLOW})"
    assert run.decide("g", CAY) == Answer(ok=False, reason=reason, code="forbidden")
    assert run.last.events == ()


@pytest.mark.parametrize(
    ("approval", "by"), [({"allow_self": True}, CAY), ({}, CAY_AT_TERMINAL), ({"allow_self": True}, STARTER)]
)
def test_unless_the_gate_allows_it_or_they_sit_before_it(approval: Document, by: Principal) -> None:
    answer = gate(approval).decide("g", by)
    assert answer is not None
    assert answer.ok


def test_a_flow_without_an_author_keeps_nobody_away() -> None:
    run = gate({})
    run.flow = replace(run.flow, author="")
    answer = run.decide("g", Principal(""))
    assert answer is not None
    assert answer.ok


def test_a_person_votes_once_also_when_others_are_asked_later() -> None:
    run = gate(
        {
            "approvers": ["ann", "bob"],
            "quorum": 2,
            "timeout_s": 60,
            "on_timeout": "escalate",
            "escalate_to": ["eve"],
        }
    )
    run.decide("g", ANN)
    run.due("g")
    assert run.decide("g", ANN) == Answer(ok=False, reason="ann has already voted at g")
    assert run.decide("g", EVE) == Answer(ok=True, data={"decided": True, "approved": True})


def test_the_way_by_which_somebody_decided_is_on_record() -> None:
    run = gate({"quorum": 2})
    run.say(Decide("c", RUN_ID, "g", approve=True, by=ANN, via="link"))
    assert run.last.events[0].data == {"approve": True, "comment": "", "via": "link"}
    run.decide("g", BOB)
    assert run.last.events[0].data == {"approve": True, "comment": ""}


def test_with_a_quorum_the_result_keeps_what_each_voter_wrote() -> None:
    run = Table({"g": {"approval": {"quorum": 2, "form": {}}, "done": True}})
    run.say(Decide("c1", RUN_ID, "g", approve=True, by=ANN, comment="ok", form={"sum": 1}))
    run.say(Decide("c2", RUN_ID, "g", approve=True, by=BOB, form={"sum": 2}))
    assert run.ended == (
        "completed",
        {
            "approved": True,
            "by": ["ann", "bob"],
            "comment": "",
            "form": {"sum": 2},
            "votes": [
                {"by": "ann", "approved": True, "comment": "ok", "form": {"sum": 1}},
                {"by": "bob", "approved": True, "comment": "", "form": {"sum": 2}},
            ],
        },
    )


def test_a_denial_after_an_approval_keeps_both_words() -> None:
    run = Table(
        {
            "g": {"approval": {"quorum": 2, "on_deny": "no"}, "next": "yes"},
            "yes": {"done": True},
            "no": {"done": True},
        }
    )
    run.decide("g", ANN)
    run.decide("g", BOB, approve=False, comment="never")
    votes = [
        {"by": "ann", "approved": True, "comment": "", "form": None},
        {"by": "bob", "approved": False, "comment": "never", "form": None},
    ]
    assert run.ended == (
        "completed",
        {"approved": False, "by": ["bob"], "comment": "never", "form": None, "votes": votes},
    )


# -- the clock


def test_reminders_come_at_their_times_until_the_deadline_acts_alone() -> None:
    run = gate({"approvers": ["ann"], "timeout_s": 100, "remind_every_s": 40})
    assert due(run) == 40
    later(run, 40)
    assert run.told == ["gate_reminded"]
    assert told(run) == [("gate_reminder", ("ann",))]
    assert due(run) == 80
    later(run, 80)
    assert due(run) == 100
    later(run, 100)
    assert run.ended[0] == "cancelled"
    assert [kind for kind, _ in told(run)] == ["gate_decided"]


def test_a_reminder_at_the_moment_of_the_deadline_is_none() -> None:
    run = gate({"timeout_s": 80, "remind_every_s": 40, "on_timeout": "approve"})
    later(run, 40)
    later(run, 80)
    assert "gate_reminded" not in run.told
    assert run.state == {"g": "done", "b": "ready"}


def test_after_a_long_standstill_there_is_one_reminder() -> None:
    run = gate({"remind_every_s": 60})
    later(run, 3605)
    assert run.told == ["gate_reminded"]
    assert due(run) == 3660
    later(run, 3605)
    assert run.told == []


def test_an_early_ring_reminds_nobody() -> None:
    run = gate({"remind_every_s": 60})
    later(run, 59.999)
    assert run.told == []


def test_a_held_run_reminds_nobody_and_once_when_it_is_let_go() -> None:
    run = gate({"remind_every_s": 60})
    run.hold()
    later(run, 130)
    assert run.told == []
    run.resume()
    assert run.told.count("gate_reminded") == 1
    assert due(run) == 180


def test_escalation_starts_the_time_and_the_reminders_again() -> None:
    run = gate(
        {
            "approvers": ["ann", "bob"],
            "quorum": 2,
            "timeout_s": 100,
            "remind_every_s": 70,
            "on_timeout": "escalate",
            "escalate_to": ["eve"],
        }
    )
    later(run, 70)
    run.decide("g", ANN)
    later(run, 100)
    assert run.told == ["gate_escalated"]
    assert due(run) == 170
    later(run, 170)
    (reminder,) = notices(run)
    assert (reminder.to, reminder.data) == (("bob", "eve"), {"voted": ["ann"]})
    assert due(run) == 200
    later(run, 200)
    assert run.ended[0] == "cancelled"


def test_who_has_voted_is_not_reminded_and_who_was_only_told_neither() -> None:
    run = gate({"approvers": ["ann", "group:ops"], "quorum": 2, "notify": ["channel:x"], "remind_every_s": 5})
    run.decide("g", ANN)
    later(run, 5)
    assert notices(run) == [
        Notify(RUN_ID, NoticeKind.GATE_REMINDER, ("group:ops",), "g", 1, {"voted": ["ann"]})
    ]


def test_where_nobody_is_named_those_are_reminded_who_were_told() -> None:
    run = gate({"notify": ["ann"], "remind_every_s": 5})
    later(run, 5)
    assert told(run) == [("gate_reminder", ("ann",))]
    run = gate({"remind_every_s": 5})
    later(run, 5)
    assert told(run) == [("gate_reminder", ())]


@pytest.mark.parametrize("every", [0.0001, 0.0004, 0.001, 0.3, 1 / 3, 7.7777])
def test_the_next_reminder_always_lies_ahead(every: float) -> None:
    wanted = Gate(remind_every_s=every)
    opened = Attempt("g", ready_at=START)
    now = START
    for _ in range(500):
        coming = gate_clock.due(wanted, opened, now)
        assert coming is not None
        assert now < coming <= now + max(every, 0.001) + 0.001
        now = coming


def test_the_deadline_of_a_gate_is_counted_from_when_it_opened() -> None:
    timed = Gate(timeout_s=5, on_timeout=OnTimeout.DENY, remind_every_s=2)
    assert gate_clock.deadline(timed, Attempt("g", ready_at=START, due_at=START + 2)) == START + 5
    assert gate_clock.deadline(Gate(), Attempt("g", ready_at=START)) is None
    # Rows from before gates had `ready_at` have their deadline as `due_at`.
    assert gate_clock.deadline(timed, Attempt("g", due_at=START + 3)) == START + 3
    assert gate_clock.due(timed, Attempt("g", due_at=START + 3), START) == START + 3


# -- who is told


def test_those_who_decide_and_those_who_want_to_know_are_told_of_an_open_gate() -> None:
    run = gate({"approvers": ["ann", "group:ops"], "notify": ["channel:ops", "ann"]})
    assert notices(run) == [
        Notify(RUN_ID, NoticeKind.GATE_OPENED, ("ann", "group:ops", "channel:ops"), "g", 1)
    ]


def test_a_gate_that_names_nobody_to_tell_tells_those_of_the_flow() -> None:
    run = gate({"approvers": ["ann"]}, defaults={"notify": ["channel:ops", "channel:ops"]})
    assert told(run) == [("gate_opened", ("ann", "channel:ops"))]
    run = gate({"notify": ["bob"]}, defaults={"notify": ["channel:ops"]})
    assert told(run) == [("gate_opened", ("bob",))]


def test_of_an_escalation_those_are_told_who_are_asked_now() -> None:
    approval: Document = {
        "approvers": ["ann"],
        "timeout_s": 5,
        "on_timeout": "escalate",
        "escalate_to": ["eve"],
    }
    run = gate({**approval, "notify": ["channel:ops"]})
    run.due("g")
    assert notices(run) == [Notify(RUN_ID, NoticeKind.GATE_ESCALATED, ("eve", "channel:ops"), "g", 1)]


def test_the_starter_is_told_how_a_gate_was_decided() -> None:
    run = gate({"notify": ["bob", "starter"]})
    run.decide("g", ANN, comment="fine")
    verdict: dict[str, Json] = {"approved": True, "by": ["ann"], "comment": "fine"}
    assert notices(run) == [Notify(RUN_ID, NoticeKind.GATE_DECIDED, ("starter", "bob"), "g", 1, verdict)]
    run = gate({"timeout_s": 5, "on_timeout": "approve"})
    run.due("g")
    assert notices(run)[0].data == {"approved": True, "by": ["timeout"], "comment": ""}


def test_a_denial_that_cancels_the_run_says_so_and_no_failure_is_told() -> None:
    run = gate({}, defaults={"notify": ["channel:ops"]})
    run.decide("g", ANN, approve=False, comment="no")
    verdict: dict[str, Json] = {"approved": False, "by": ["ann"], "comment": "no", "cancelled": True}
    assert notices(run) == [
        Notify(RUN_ID, NoticeKind.GATE_DECIDED, ("starter", "channel:ops"), "g", 1, verdict)
    ]


def test_the_first_of_two_votes_tells_nobody() -> None:
    run = gate({"quorum": 2})
    run.decide("g", ANN)
    assert notices(run) == []


def test_the_end_of_a_run_is_told() -> None:
    steps: Steps = {"a": {**TOOL, "retry": {"max_attempts": 1}, "done": True}}
    run = Table(steps, defaults={"notify": ["channel:ops"]})
    run.failed("a", "Broken")
    error: dict[str, Json] = {"type": "Broken", "message": "step a failed: no"}
    assert notices(run) == [Notify(RUN_ID, NoticeKind.RUN_FAILED, ("starter", "channel:ops"), data=error)]
    run = Table(steps, defaults={"notify": ["channel:ops"]})
    run.done("a")
    assert notices(run) == [Notify(RUN_ID, NoticeKind.RUN_FINISHED, ("channel:ops",))]
    run = Table(steps)
    run.done("a")
    assert told(run) == [("run_finished", ())]


def test_of_a_sub_run_its_parent_tells() -> None:
    run = Table({"a": {**TOOL, "retry": {"max_attempts": 1}, "done": True}})
    run.run = run.run._replace(parent=StepRef(RUN_ID, "x", NO_ITEM, 1, 1))
    run.failed("a")
    assert notices(run) == []


def test_cancelling_by_hand_tells_nobody() -> None:
    run = gate({})
    run.cancel("enough")
    assert notices(run) == []


def test_nobody_is_asked_to_decide_a_gate_that_opened_and_was_cancelled_at_once() -> None:
    run = Table(
        {
            "a": {**TOOL, "parallel": ["g", "b"]},
            "g": {"approval": {}, "join": "c"},
            "b": {**TOOL, "args": {"x": "{{input.nothing}}"}, "join": "c"},
            "c": {"done": True},
        },
        {},
    )
    run.done("a")
    assert "gate_opened" in run.told
    assert run.state["g"] == "cancelled"
    assert [kind for kind, _ in told(run)] == ["run_failed"]


def test_a_retry_asks_again_and_tells_of_it() -> None:
    run = Table(
        {
            "a": {"parallel": ["g", "b"]},
            "g": {"approval": {"approvers": ["ann"]}, "join": "c"},
            "b": {**TOOL, "retry": {"max_attempts": 1}, "join": "c"},
            "c": {"done": True},
        }
    )
    run.failed("b")
    run.retry()
    assert notices(run) == [Notify(RUN_ID, NoticeKind.GATE_OPENED, ("ann",), "g", 2)]


def test_who_has_not_seen_the_form_is_told_what_it_asks_for() -> None:
    run = gate({"form": {"type": "object", "properties": {"why": {}, "limit": {}}, "required": ["why"]}})
    reason = "the form of g is not filled in: it asks for limit, why"
    assert run.decide("g", ANN) == Answer(ok=False, reason=reason, code="invalid-input")
