"""Rights at the writer: who may ask for what, and what a step may do when it is handed over."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.executor.desk import Desk, Recorder
from wfcelery.core.effects import Dispatch
from wfcelery.core.ids import child_id
from wfcelery.core.messages import (
    Cancel,
    Decide,
    EndStep,
    Hold,
    Kind,
    Principal,
    Resume,
    RetryRun,
    Signal,
    StepReady,
    StepReturned,
    StepUnsent,
)
from wfcelery.core.state import NO_ITEM
from wfcelery.core.values import Json
from wfcelery.embedded.engine import new_command_id, new_run_id
from wfcelery.errors import Forbidden, Refused
from wfcelery.executor.answers import raise_refusal
from wfcelery.executor.entitlement import RULES, parts
from wfcelery.executor.messages import Asked, Broadcast, Define, Retire, Start
from wfcelery.rights.policy import PolicyFile
from wfcelery.store import dead_letters, steps
from wfcelery.store.commands import Command
from wfcelery.tools import Registry, tool
from wfcelery.tools.catalogue import Catalogue

ANN, BOB, EVE = Principal("ann"), Principal("bob"), Principal("eve")
BOSS = Principal("boss")
SHOWN: Json = {"name": "shown", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}
PAID: Json = {"name": "paid", "start": "p", "steps": {"p": {"tool": "pay", "done": True}}}
LATER: Json = {
    "name": "later",
    "start": "a",
    "steps": {"a": {"tool": "echo", "next": "p"}, "p": {"tool": "pay", "done": True}},
}
GATED: Json = {
    "name": "gated",
    "start": "ask",
    "steps": {"ask": {"approval": {}, "next": "act"}, "act": {"tool": "echo", "done": True}},
}
POLICY = """
[groups.payers]
allow = ["billing.pay"]

[groups.chiefs]
allow = []

[users.ann]
groups = ["payers"]
allow = ["read", "define", "start", "cancel:shown"]

[users.bob]
allow = ["read", "decide", "signal", "define", "start"]

[users.bot]
kind = "agent"
allow = ["decide", "start"]

[users.eve]
allow = ["read"]

[users.boss]
allow = ["admin"]
"""


@tool(permission="billing.pay")
def pay(amount: int = 1) -> int:
    """Take money."""
    return amount


@tool(requires_approval=True)
def erase() -> None:
    """Do what cannot be undone."""


def registry(*tools: Any) -> Registry:  # noqa: ANN401 - a tool of any signature
    made = Registry.with_builtins()
    for each in tools:
        made.add(each)
    return made


class Policy:
    """A policy file that can be rewritten; it is looked at for each question."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write(POLICY)
        self.authority = PolicyFile(path, clock=map(float, itertools.count()).__next__)

    def write(self, text: str) -> None:
        self.path.write_text(text)

    def change(self, old: str, new: str) -> None:
        text = self.path.read_text()
        assert old in text
        self.write(text.replace(old, new))


class Dying(Recorder):
    """A dispatcher in whose hands the executor dies."""

    def send(self, steps: Sequence[Dispatch]) -> None:  # noqa: ARG002 - the port
        raise KeyboardInterrupt


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return Policy(tmp_path / "policy.toml")


@pytest.fixture
def governed(database_url: str, policy: Policy) -> Iterator[Desk]:
    desk = Desk(database_url, tools=registry(pay, erase), authority=policy.authority)
    try:
        yield desk
    finally:
        desk.close()


def refused(answer: Command) -> tuple[bool, str, str]:
    return answer.ok, answer.code, answer.reason


def forbidden(reason: str) -> tuple[bool, str, str]:
    return False, "forbidden", reason


# -- requests


def test_every_request_has_its_permission() -> None:
    assert set(RULES) == set(get_args(Asked))


REQUESTS: dict[str, tuple[Callable[[str], Asked], str]] = {
    "define": (lambda _: Define("c", SHOWN, EVE), "eve may not define shown (permission define)"),
    "retire": (lambda _: Retire("c", "gated", EVE), "eve may not retire gated (permission define)"),
    "start": (
        lambda _: Start("c", new_run_id(1.0), "gated", {}, EVE),
        "eve may not start gated (permission start)",
    ),
    "start a document": (
        lambda _: Start("c", new_run_id(1.0), SHOWN, {}, EVE),
        "eve may not define shown (permission define)",
    ),
    "decide": (
        lambda run: Decide("c", run, "ask", approve=True, by=EVE),
        "eve may not decide in runs of gated (permission decide)",
    ),
    "ready": (
        lambda run: StepReady("c", run, "ask", EVE),
        "eve may not let steps go on in runs of gated (permission decide)",
    ),
    "signal": (
        lambda run: Signal("c", run, "go", EVE),
        "eve may not signal runs of gated (permission signal)",
    ),
    "broadcast": (
        lambda _: Broadcast("c", "go", "k", EVE),
        "eve may not signal runs of any flow (permission signal)",
    ),
    "end": (
        lambda run: EndStep("c", run, "act", EVE),
        "eve may not end steps in runs of gated (permission signal)",
    ),
    "cancel": (lambda run: Cancel("c", run, EVE), "eve may not cancel runs of gated (permission cancel)"),
    "hold": (lambda run: Hold("c", run, EVE), "eve may not hold runs of gated (permission cancel)"),
    "resume": (lambda run: Resume("c", run, EVE), "eve may not resume runs of gated (permission cancel)"),
    "retry": (lambda run: RetryRun("c", run, EVE), "eve may not retry runs of gated (permission retry)"),
}


@pytest.mark.parametrize("request_of", REQUESTS)
def test_nothing_is_done_for_who_may_not(governed: Desk, request_of: str) -> None:
    make, reason = REQUESTS[request_of]
    run = governed.start(GATED, by=ANN)
    before = governed.run(run), governed.events(run)
    answer = governed.ask(make(run))
    assert refused(answer) == forbidden(reason)
    assert answer.actor == "eve"
    assert (governed.run(run), governed.events(run)) == before
    with pytest.raises(Forbidden) as caught:
        raise_refusal(answer)
    assert (str(caught.value), caught.value.code, isinstance(caught.value, Refused)) == (
        reason,
        "forbidden",
        True,
    )


def test_a_right_may_hold_for_some_flows_only(governed: Desk) -> None:
    shown, gated = governed.start(SHOWN), governed.start(GATED)
    assert governed.ask(Cancel("c1", shown, ANN)).ok
    assert governed.ask(Cancel("c2", gated, ANN)).code == "forbidden"
    assert governed.run(gated)["status"] == "paused"


def test_what_is_not_there_is_not_found_whoever_asks(governed: Desk) -> None:
    missing = new_run_id(1.0)
    assert governed.ask(Cancel("c1", missing, EVE)).reason == f"no run {missing}"
    assert governed.ask(Start("c2", new_run_id(1.0), "nowhere", {}, EVE)).code == "not-found"


def test_who_may_define_is_told_the_faults_and_who_may_not_is_not(governed: Desk) -> None:
    assert governed.ask(Define("c1", {"start": "nowhere", "steps": {}}, ANN)).code == "invalid-flow"
    assert governed.ask(Define("c2", {"start": "nowhere", "steps": {}}, EVE)).code == "forbidden"


def test_groups_and_kinds_are_what_the_policy_says_not_what_the_message_says(governed: Desk) -> None:
    gate: Json = {"approval": {"approvers": ["group:chiefs"]}, "next": "act"}
    flow: Json = {**GATED, "steps": {**GATED["steps"], "ask": gate}}  # type: ignore[call-overload,index,dict-item]
    run = governed.start(flow, by=ANN)
    forged = Principal("bob", groups=("chiefs", "payers"))
    assert not governed.ask(Decide("c1", run, "ask", approve=True, by=forged)).ok
    assert refused(governed.ask(Start("c2", new_run_id(1.0), PAID, {}, forged))) == forbidden(
        "bob may not use the tool pay, which paid calls (permission billing.pay)"
    )
    person = Principal("bot", Kind.PERSON)
    assert governed.ask(Decide("c3", run, "ask", approve=True, by=person)).code == "forbidden"
    nobody = Principal("stranger", groups=("chiefs",))
    assert governed.ask(Decide("c4", run, "ask", approve=True, by=nobody)).code == "forbidden"
    assert governed.run(run)["status"] == "paused"


def test_a_refusal_is_remembered_like_any_answer(governed: Desk, policy: Policy) -> None:
    run = governed.start(GATED, by=ANN)
    assert governed.ask(Cancel("same", run, EVE)).code == "forbidden"
    policy.change('[users.eve]\nallow = ["read"]', '[users.eve]\nallow = ["cancel"]')
    assert governed.ask(Cancel("same", run, EVE)).code == "forbidden"
    assert governed.ask(Cancel("other", run, EVE)).ok


def test_a_run_that_begins_in_the_same_batch_belongs_to_its_flow(governed: Desk) -> None:
    run = new_run_id(1.0)
    governed.tell(
        Define("d1", SHOWN, ANN),
        Start("s1", run, "shown", {}, ANN),
        Cancel("x1", run, EVE),
        Cancel("x2", run, ANN),
    )
    assert governed.ask(Cancel("x1", run, EVE)).code == "forbidden"
    assert governed.ask(Cancel("x2", run, ANN)).ok
    assert governed.run(run)["status"] == "cancelled"


def test_a_batch_is_cut_only_where_a_request_is_about_what_another_makes() -> None:
    one, other = new_run_id(1.0), new_run_id(2.0)
    define, start, document = (
        Define("d", SHOWN, ANN),
        Start("s", one, "shown", {}, ANN),
        Start("t", other, SHOWN, {}, ANN),
    )
    cancel = Cancel("c", one, ANN)
    assert list(parts([])) == [[]]
    assert list(parts([start, document, define])) == [[start, document, define]]
    assert list(parts([define, start, cancel])) == [[define], [start], [cancel]]
    assert list(parts([cancel, document, start])) == [[cancel, document], [start]]


# -- tools


def test_defining_and_starting_take_the_permissions_of_the_tools(governed: Desk) -> None:
    reason = "bob may not use the tool pay, which paid calls (permission billing.pay)"
    assert refused(governed.ask(Define("c1", PAID, BOB))) == forbidden(reason)
    assert governed.ask(Define("c2", PAID, ANN)).ok
    assert refused(governed.ask(Start("c3", new_run_id(1.0), "paid", {}, BOB))) == forbidden(reason)
    governed.start("paid", by=ANN)
    assert [each.tool for each in governed.out.sent] == ["pay"]


def test_a_starter_who_loses_the_right_before_the_step_does_not_get_it(
    governed: Desk, policy: Policy
) -> None:
    run = governed.start(LATER, by=ANN)
    policy.change('groups = ["payers"]', "groups = []")
    governed.done("a", 1)
    found = governed.run(run)
    message = "ann may not use the tool pay (permission billing.pay), and defined later"
    assert (found["status"], found["steps"][1]["error"]) == (
        "failed",
        {"type": "forbidden", "message": message},
    )
    assert [each.ref.step for each in governed.out.sent] == ["a"]
    assert not governed.executor.has_marks


def test_an_author_without_the_right_gains_nothing_by_the_start_of_an_admin(
    governed: Desk, policy: Policy
) -> None:
    assert governed.ask(Define("c1", PAID, ANN)).ok
    policy.change('groups = ["payers"]', "groups = []")
    run = governed.start("paid", by=BOSS)
    found = governed.run(run)
    message = "ann may not use the tool pay (permission billing.pay), and defined paid"
    assert (found["status"], found["steps"][0]["error"]) == (
        "failed",
        {"type": "forbidden", "message": message},
    )
    assert governed.out.sent == []


def test_a_sub_run_keeps_the_starter_and_counts_its_own_author(governed: Desk, policy: Policy) -> None:
    outer: Json = {"name": "outer", "start": "s", "steps": {"s": {"flow": {"name": "paid"}, "done": True}}}
    assert governed.ask(Define("c1", PAID, ANN)).ok
    assert governed.ask(Define("c2", outer, BOB)).ok
    # Bob wrote the outer flow, which calls no tool; starting it gives him nothing of the inner one.
    assert governed.run(governed.start("outer", by=BOB))["status"] == "failed"
    assert governed.out.sent == []
    assert governed.run(governed.start("outer", by=ANN))["status"] == "running"
    assert [each.tool for each in governed.out.sent] == ["pay"]
    policy.change('groups = ["payers"]', "groups = []")
    assert governed.run(governed.start("outer", by=BOSS))["status"] == "failed"
    assert len(governed.out.sent) == 1


def test_who_may_not_start_a_flow_may_not_run_it_as_a_sub_flow(governed: Desk, policy: Policy) -> None:
    policy.change('"signal", "define", "start"]', '"signal", "define:mine", "start:mine"]')
    assert governed.ask(Define("c1", SHOWN, ANN)).ok
    once: Json = {"name": "mine", "start": "s", "steps": {"s": {"flow": {"name": "shown"}, "done": True}}}
    each: Json = {"items": [1], "flow": "shown"}
    many: Json = {"name": "mine", "start": "s", "steps": {"s": {"foreach": each, "done": True}}}
    reason = "bob may not start shown, which mine runs (permission start)"
    assert refused(governed.ask(Define("c2", once, BOB))) == forbidden(reason)
    assert refused(governed.ask(Define("c3", many, BOB))) == forbidden(reason)
    assert refused(governed.ask(Start("c4", new_run_id(1.0), once, {}, BOB))) == forbidden(reason)
    # What somebody has written who may is there for whoever may start it.
    assert governed.ask(Define("c5", once, ANN)).ok
    assert governed.run(governed.start("mine", by=BOB))["status"] == "running"


def test_who_takes_the_id_of_a_sub_run_costs_one_try_of_its_step_and_nothing_else(governed: Desk) -> None:
    wait: Json = {"wait": {"signal": "go"}, "next": "s"}
    call: Json = {"flow": {"name": "shown"}, "retry": {"max_attempts": 2}, "done": True}
    outer: Json = {"name": "outer", "start": "w", "steps": {"w": wait, "s": call}}
    assert governed.ask(Define("c1", SHOWN, ANN)).ok
    run = governed.start(outer, by=ANN)
    taken = child_id(run, "s", NO_ITEM, 1)
    assert governed.ask(Start("c2", taken, "shown", {}, BOB)).ok
    assert governed.ask(Signal("c3", run, "go", BOSS)).ok
    governed.done("a", "not for ann")
    first = governed.run(run)["steps"][1]
    assert (first["status"], first["error"]["type"]) == ("failed", "sub-run-failed")
    governed.clock.advance(60.0)
    governed.tell()
    governed.done("a", "for ann")
    assert governed.run(run)["output"] == "for ann"
    assert governed.run(taken)["output"] == "not for ann"


def test_a_step_that_is_sent_again_is_looked_at_again(governed: Desk, policy: Policy) -> None:
    run = governed.start(PAID, by=ANN)
    policy.change('groups = ["payers"]', "groups = []")
    governed.tell(StepReturned(governed.take("p").ref, "leaving", "w1"))
    assert governed.run(run)["steps"][-1]["error"]["type"] == "forbidden"
    assert governed.run(run)["status"] == "failed"
    assert len(governed.out.sent) == 1


def test_what_was_committed_and_not_sent_is_looked_at_by_the_next_executor(
    database_url: str, policy: Policy
) -> None:
    desk = Desk(database_url, tools=registry(pay), authority=policy.authority)
    try:
        desk.out = Dying()
        desk.restart()
        with pytest.raises(KeyboardInterrupt):
            desk.start(PAID, by=ANN)
        desk.out = Recorder()
        desk.restart()
        policy.change('groups = ["payers"]', "groups = []")
        with desk.database.reading() as conn:
            [ref] = steps.ready(conn, 10)
        desk.tell(StepUnsent(ref))
        assert desk.run(ref.run_id)["steps"][0]["error"]["type"] == "forbidden"
        assert desk.out.sent == []
    finally:
        desk.close()


def test_a_step_that_may_not_run_fails_like_any_other_and_may_be_caught(
    governed: Desk, policy: Policy
) -> None:
    caught: Json = {
        "name": "caught",
        "start": "a",
        "steps": {
            "a": {"tool": "echo", "next": "p"},
            "p": {"tool": "pay", "on_error": "tell", "done": True},
            "tell": {"tool": "echo", "done": True},
        },
    }
    run = governed.start(caught, by=ANN)
    policy.change('groups = ["payers"]', "groups = []")
    governed.done("a")
    assert [each.ref.step for each in governed.out.sent] == ["a", "tell"]
    governed.done("tell", "told")
    assert governed.states(run)["tell"] == "done"


def test_many_items_that_may_not_run_are_all_failed_in_one_turn(governed: Desk, policy: Policy) -> None:
    many: Json = {
        "name": "many",
        "start": "a",
        "steps": {
            "a": {"tool": "echo", "next": "all"},
            "all": {
                "foreach": {
                    "items": "{{input.items}}",
                    "tool": "pay",
                    "concurrency": 2,
                    "on_item_error": "collect",
                },
                "done": True,
            },
        },
    }
    run = governed.start(many, {"items": list(range(50))}, by=ANN)
    policy.change('groups = ["payers"]', "groups = []")
    governed.done("a")
    assert governed.run(run)["status"] == "completed"
    assert [each.ref.step for each in governed.out.sent] == ["a"]


def test_a_tool_that_the_executor_does_not_know_is_for_nobody_where_there_are_rights(
    database_url: str, policy: Policy
) -> None:
    desk = Desk(database_url, tools=registry(pay), authority=policy.authority)
    try:
        assert desk.ask(Define("c1", PAID, ANN)).ok
        desk.tools = Catalogue(Registry.with_builtins())
        desk.restart()
        run = desk.start("paid", by=BOSS)
        error = desk.run(run)["steps"][0]["error"]
        assert error["message"] == "the executor does not know the tool pay, nor who may use it"
        assert desk.out.sent == []
    finally:
        desk.close()


# -- approvals


ERASED: Json = {
    "name": "erased",
    "start": "ask",
    "steps": {"ask": {"approval": {}, "next": "gone"}, "gone": {"tool": "erase", "done": True}},
}


@pytest.fixture
def careful(database_url: str) -> Iterator[Desk]:
    """Everybody may do everything, and yet some tools take an approval."""
    desk = Desk(database_url, tools=registry(erase))
    try:
        yield desk
    finally:
        desk.close()


def test_a_tool_that_requires_approval_runs_behind_an_opened_gate(careful: Desk) -> None:
    run = careful.start(ERASED)
    assert careful.out.sent == []
    assert careful.ask(Decide("c1", run, "ask", approve=True, by=BOB)).ok
    assert [each.tool for each in careful.out.sent] == ["erase"]


def test_a_definition_from_before_a_tool_required_approval_does_not_run_it(database_url: str) -> None:
    @tool(name="erase")
    def harmless() -> None:
        """Be harmless, as yet."""

    flow: Json = {"name": "old", "start": "gone", "steps": {"gone": {"tool": "erase", "done": True}}}
    desk = Desk(database_url, tools=registry(harmless))
    try:
        assert desk.ask(Define("c1", flow, ANN)).ok
        desk.tools = Catalogue(registry(erase))
        desk.restart()
        run = desk.start("old")
        error = {
            "type": "approval-required",
            "message": "the tool erase runs only behind a gate that people have opened",
        }
        assert desk.run(run)["steps"][0]["error"] == error
        assert desk.out.sent == []
        with desk.database.reading() as conn:
            assert dead_letters.listing(conn) == []
    finally:
        desk.close()


def test_an_open_authority_asks_nobody_and_writes_who_asked(desk: Desk) -> None:
    run = desk.start(GATED)
    command = new_command_id()
    assert desk.ask(Cancel(command, run, EVE)).actor == "eve"
