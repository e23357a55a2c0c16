from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.notify.parts import OPENED, RUN, facts, notice, vote
from wfcelery.core.effects import NoticeKind
from wfcelery.core.values import Json
from wfcelery.notify.texts import Text, Ways, text_of

LINK = Ways("https://flows.example/a/TOKEN", OPENED + 86_400, f"https://flows.example/runs/{RUN}")
CONSOLE = Ways(console=f"https://flows.example/runs/{RUN}")
HEAD = f"""\
Flow: ship, version 3
Run: {RUN}, started by ann at 2027-01-15 07:59 UTC
Console: https://flows.example/runs/{RUN}
"""


def test_who_may_decide_is_told_who_asks_what_will_run_until_when_and_where_to_decide() -> None:
    gate: dict[str, Json] = {"approvers": ["bob", "group:ops"], "quorum": 2, "timeout_s": 3600}
    shown: Json = {"pay": {"args": {"amount": 1200, "token": "{{secret.KEY}}"}}}
    text = text_of(notice(), facts(gate, shown, run_votes=(vote("cleo"),)), LINK)
    assert text == Text(
        "Please decide: gate of ship",
        f"""\
ann asks for an approval.

Look at it and decide here:
https://flows.example/a/TOKEN
This link is for you alone: whoever has it can decide in your name. It is good until 2027-01-16 08:00 UTC.

{HEAD}\
Step: gate (Is the sum right?)
It waits for: bob, group:ops
It takes 2 approvals; so far: cleo
Without a decision until 2027-01-15 09:00 UTC, it is denied.

What runs once it is approved:
  pay: calls echo
    amount = 1200
    token = "{{{{secret.KEY}}}}"
""",
    )


def test_everybody_else_gets_the_console_and_no_link() -> None:
    text = text_of(notice("channel:ops"), facts(), CONSOLE)
    assert "decide here" not in text.body
    assert HEAD in text.body


def test_without_a_base_url_the_commands_are_told() -> None:
    text = text_of(notice(), facts(), Ways())
    assert f"`wfcelery approve {RUN} gate` approves it, `wfcelery deny {RUN} gate` denies it.\n" in text.body
    assert "Console" not in text.body


@pytest.mark.parametrize(
    ("gate", "escalated", "words"),
    [
        ({"timeout_s": 60}, False, "it is denied."),
        ({"timeout_s": 60, "on_timeout": "approve"}, False, "it is approved."),
        (
            {"timeout_s": 60, "on_timeout": "escalate", "escalate_to": ["eve", "group:heads"]},
            False,
            "eve, group:heads will be asked, too.",
        ),
        ({"timeout_s": 60, "on_timeout": "escalate", "escalate_to": ["eve"]}, True, "it is denied."),
    ],
)
def test_it_says_what_happens_when_nobody_decides(gate: dict[str, Json], escalated: bool, words: str) -> None:
    body = text_of(notice(), facts(gate, escalated=escalated), CONSOLE).body
    assert f"Without a decision until 2027-01-15 08:01 UTC, {words}\n" in body


def test_a_reminder_and_an_escalation_say_so() -> None:
    reminder = text_of(notice(kind=NoticeKind.GATE_REMINDER), facts(), LINK)
    escalated = text_of(notice(kind=NoticeKind.GATE_ESCALATED), facts(escalated=True), LINK)
    assert reminder.title == "Still to be decided: gate of ship"
    assert reminder.body.startswith("ann still waits for an approval.\n\nLook at it and decide here:\n")
    assert escalated.title == "Nobody decided yet: gate of ship"
    assert escalated.body.startswith("ann asks you, too, for an approval: nobody has decided in time.\n")


def test_a_decision_tells_who_decided_what_and_what_became_of_the_run() -> None:
    data: dict[str, Json] = {"approved": False, "by": ["bob"], "comment": "too\nmuch", "cancelled": True}
    text = text_of(notice("ann", NoticeKind.GATE_DECIDED, **data), facts(), CONSOLE)
    said = "gate was denied by bob.\nComment: too\\nmuch\nWith that, the run is cancelled.\n"
    assert text == Text("Denied: gate of ship", f"{said}\n{HEAD}")
    both: dict[str, Json] = {"approved": True, "by": ["bob", "cleo"], "comment": ""}
    text = text_of(notice("ann", NoticeKind.GATE_DECIDED, **both), facts(), CONSOLE)
    assert text == Text("Approved: gate of ship", f"gate was approved by bob, cleo.\n\n{HEAD}")
    clock: dict[str, Json] = {"approved": False, "by": ["timeout"], "comment": "nobody decided in time"}
    text = text_of(notice("ann", NoticeKind.GATE_DECIDED, **clock), facts(), CONSOLE)
    assert text.body.startswith("gate was denied, for nobody decided in time.\n\n")


def test_the_end_of_a_run_is_told() -> None:
    error: dict[str, Json] = {"type": "ValueError", "message": "no\nway"}
    failed = text_of(notice("ann", NoticeKind.RUN_FAILED, **error), facts(), CONSOLE)
    assert failed == Text("Failed: ship", f"The run has failed.\nError: ValueError: no\\nway\n\n{HEAD}")
    finished = text_of(notice("ann", NoticeKind.RUN_FINISHED), facts(), CONSOLE)
    assert finished == Text("Finished: ship", f"The run is completed.\n\n{HEAD}")


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_foreign_word_writes_a_line_of_its_own(starter: str, value: str) -> None:
    shown: Json = {"pay": {"args": {value: value}}}
    told = text_of(notice(), facts({}, shown, run_created_by=starter, run_key=value), LINK)
    assert told.title.isprintable()
    assert len(told.body.splitlines()) == 15
    assert told.body.splitlines()[2:4] == ["Look at it and decide here:", "https://flows.example/a/TOKEN"]


def test_what_is_long_is_cut_and_counted() -> None:
    args: dict[str, Json] = {f"a{number:03}": "x" * 1000 for number in range(100)}
    shown: Json = {f"s{number:03}": {"args": args} for number in range(30)}
    body = text_of(notice(), facts({}, shown), LINK).body
    assert "    ... and 80 more arguments\n" in body
    assert body.endswith("  ... and 10 more steps\n")
    assert len(body) < 20 * 20 * 400


def test_a_following_step_without_arguments_or_with_a_bare_value_is_shown() -> None:
    body = text_of(notice(), facts({}, {"pay": {"args": None}, "other": {"args": [1]}}), LINK).body
    assert body.endswith("What runs once it is approved:\n  pay: calls echo\n  other\n    [1]\n")
