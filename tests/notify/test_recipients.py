from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.notify.parts import facts, notice, policy, vote
from wfcelery.core.effects import NoticeKind
from wfcelery.core.state import RunStatus, StepStatus
from wfcelery.core.values import Json
from wfcelery.notify.facts import Facts
from wfcelery.notify.recipients import Recipient, recipients
from wfcelery.rights import Everybody

PLACE = "json://127.0.0.1:9"
TIMED: dict[str, Json] = {"timeout_s": 60, "on_timeout": "escalate"}
GIVE = "add one as `notify` in the policy"


def deciders(folder: Path, meant: str, known: Facts, kind: NoticeKind = NoticeKind.GATE_OPENED) -> list[str]:
    """Name those of the recipients who get a link, and look that it is their own."""
    found = recipients(policy(folder), notice(meant, kind), known)
    assert all(each.decider in (None, each.name) for each in found)
    return [each.name for each in found if each.decider]


def test_a_person_is_reached_at_their_addresses(tmp_path: Path) -> None:
    known = facts({"approvers": ["bob"]})
    assert recipients(policy(tmp_path), notice("bob"), known) == (
        Recipient("bob", (f"{PLACE}/bob",), "bob", GIVE),
    )


def test_a_group_is_each_of_its_people_and_no_agent(tmp_path: Path) -> None:
    found = recipients(policy(tmp_path), notice("group:ops"), facts({"approvers": ["group:ops"]}))
    assert found == (
        Recipient("bob", (f"{PLACE}/bob",), "bob", GIVE),
        Recipient("cleo", (f"{PLACE}/cleo",), "cleo", GIVE),
    )


def test_a_channel_is_each_of_its_places_and_gets_no_link(tmp_path: Path) -> None:
    authority = policy(tmp_path)
    assert recipients(authority, notice("channel:ops"), facts()) == (
        Recipient("channel:ops (1)", (f"{PLACE}/channel",)),
        Recipient("channel:ops (2)", (f"{PLACE}/second",)),
    )
    assert recipients(authority, notice("channel:news"), facts()) == (
        Recipient("channel:news", (f"{PLACE}/news",)),
    )


def test_an_address_is_itself_is_called_by_its_scheme_and_gets_no_link(tmp_path: Path) -> None:
    address = "slack://token@workspace/channel"
    (found,) = recipients(policy(tmp_path), notice(address), facts())
    assert found == Recipient("slack://...", (address,))
    assert "token" not in repr(found)


def test_nobody_and_nowhere_is_told_with_what_to_do(tmp_path: Path) -> None:
    authority = policy(tmp_path)
    found = [
        recipients(authority, notice(meant), facts())
        for meant in ("mute", "stranger", "group:empty", "group:none", "channel:none")
    ]
    assert [(each.name, each.addresses, each.lacks) for (each,) in found] == [
        ("mute", (), GIVE),
        ("stranger", (), GIVE),
        ("group:empty", (), "say in the policy who is in it"),
        ("group:none", (), "say in the policy who is in it"),
        ("channel:none", (), "name the channel in the policy"),
    ]


def test_without_a_policy_nobody_has_an_address() -> None:
    for meant in ("ann", "group:ops", "channel:ops"):
        assert [each.addresses for each in recipients(Everybody(), notice(meant), facts())] == [()]


@pytest.mark.parametrize(
    ("gate", "changes", "meant", "wanted"),
    [
        # Where approvers are named, they and nobody else.
        ({"approvers": ["bob"]}, {}, "bob", ["bob"]),
        ({"approvers": ["bob"]}, {}, "group:ops", ["bob"]),
        ({"approvers": ["bob"]}, {}, "cleo", []),
        ({"approvers": ["bob"]}, {}, "mute", []),
        ({"approvers": ["group:ops"]}, {}, "cleo", ["cleo"]),
        ({"approvers": ["group:ops"]}, {}, "dora", []),
        ({"approvers": ["dora"]}, {}, "dora", ["dora"]),
        # Being named does not replace the right to decide.
        ({"approvers": ["erin"]}, {}, "erin", []),
        ({"approvers": ["stranger"]}, {}, "stranger", []),
        # Those who are asked later, later.
        ({"approvers": ["bob"], "escalate_to": ["dora"], **TIMED}, {"escalated": False}, "dora", []),
        ({"approvers": ["bob"], "escalate_to": ["dora"], **TIMED}, {"escalated": True}, "dora", ["dora"]),
        (
            {"approvers": ["bob"], "escalate_to": ["group:ops"], **TIMED},
            {"escalated": True},
            "cleo",
            ["cleo"],
        ),
        ({"approvers": ["bob"], "escalate_to": ["dora"], **TIMED}, {"escalated": True}, "bob", ["bob"]),
        # Where nobody is named, whoever may decide.
        ({}, {}, "bob", ["bob"]),
        ({}, {}, "mute", ["mute"]),
        ({}, {}, "erin", []),
        ({}, {}, "group:ops", ["bob", "cleo"]),
        ({}, {}, "stranger", []),
        # Never the starter or the author, unless the gate allows it.
        ({"approvers": ["ann"]}, {}, "ann", []),
        ({}, {}, "ann", []),
        ({"approvers": ["ann"], "allow_self": True}, {}, "ann", ["ann"]),
        ({"approvers": ["bob"]}, {"author": "bob"}, "bob", []),
        ({"approvers": ["bob"], "allow_self": True}, {"author": "bob"}, "bob", ["bob"]),
        # Never an agent.
        ({"approvers": ["robot"]}, {}, "robot", []),
        ({"approvers": ["group:ops"]}, {}, "robot", []),
        ({}, {}, "robot", []),
        # Nobody twice.
        ({"approvers": ["bob", "dora"], "quorum": 2}, {"run_votes": (vote("bob"),)}, "bob", []),
        ({"approvers": ["bob", "dora"], "quorum": 2}, {"run_votes": (vote("bob"),)}, "dora", ["dora"]),
        ({"approvers": ["bob", "dora"], "quorum": 2}, {"run_votes": (vote("bob", 2),)}, "bob", ["bob"]),
        # A gate that asks for a comment or a form asks on its page.
        ({"approvers": ["bob"], "require_comment": True}, {}, "bob", ["bob"]),
        ({"approvers": ["bob"], "form": {"type": "object", "required": ["a"]}}, {}, "bob", ["bob"]),
        # Nothing is left to decide.
        ({"approvers": ["bob"]}, {"status": StepStatus.DONE, "waits_for": None}, "bob", []),
        ({"approvers": ["bob"]}, {"run_status": RunStatus.CANCELLED}, "bob", []),
    ],
)
def test_a_link_is_for_who_may_decide_and_nobody_else(
    tmp_path: Path, gate: dict[str, Json], changes: dict[str, Any], meant: str, wanted: list[str]
) -> None:
    assert deciders(tmp_path, meant, facts(gate, **changes)) == wanted


@pytest.mark.parametrize("kind", [NoticeKind.GATE_DECIDED, NoticeKind.RUN_FAILED, NoticeKind.RUN_FINISHED])
def test_only_who_is_asked_to_decide_gets_a_link(tmp_path: Path, kind: NoticeKind) -> None:
    assert deciders(tmp_path, "bob", facts({"approvers": ["bob"]}), kind) == []


def test_a_reminder_leaves_out_those_of_a_group_who_have_voted(tmp_path: Path) -> None:
    known = facts({"approvers": ["group:ops"], "quorum": 2}, run_votes=(vote("bob"),))
    reminder = notice("group:ops", NoticeKind.GATE_REMINDER, voted=["bob"])
    assert [each.name for each in recipients(policy(tmp_path), reminder, known)] == ["cleo"]


def test_of_a_group_that_is_asked_only_those_hear_who_may_answer(tmp_path: Path) -> None:
    known = facts({"approvers": ["group:ops"]}, run_created_by="bob")
    found = recipients(policy(tmp_path), notice("group:ops"), known)
    assert [each.name for each in found] == ["cleo"]
