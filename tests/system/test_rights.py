"""Rights in the real system: whoever reaches it with the secret still gets only what is theirs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.system import SECRET, System
from wfcelery.core.messages import Cancel, Decide, Kind, Principal
from wfcelery.core.values import Json
from wfcelery.errors import Forbidden
from wfcelery.executor.answers import new_command_id, new_run_id
from wfcelery.executor.messages import Message, NoticeTried, Start
from wfcelery.wire import codec, envelope
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal

OURS = keyring((SECRET,))
TOOLS = "tests.system.ledger,tests.system.guarded"
PAID: Json = {"name": "paid", "start": "only", "steps": {"only": {"tool": "pay", "done": True}}}
HELD: Json = {
    "name": "held",
    "start": "first",
    "steps": {"first": {"tool": "hold", "next": "then"}, "then": {"tool": "pay", "done": True}},
}
GATED: Json = {
    "name": "gated",
    "start": "ask",
    "steps": {
        "ask": {"approval": {"approvers": ["group:chiefs"]}, "next": "act"},
        "act": {"tool": "erase", "done": True},
    },
}
POLICY = """
[groups.payers]
allow = ["billing.pay"]

[groups.chiefs]
allow = ["decide"]

[users.ann]
groups = ["payers"]
allow = ["read", "define", "start"]

[users.cleo]
groups = ["chiefs"]

[users.bot]
kind = "agent"
groups = ["chiefs"]
allow = ["start:paid"]

[users.eve]
allow = ["read", "decide", "define", "start"]

[users.boss]
allow = ["admin"]
"""
DEMOTED = POLICY.replace('groups = ["payers"]', "groups = []")
_NUMBERS = itertools.count(1)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def begin(system: System, policy: Path) -> None:
    """An executor that knows the policy, and a worker that does not."""
    both = (
        system.executor(ready=None, WFCELERY_POLICY=str(policy), WFCELERY_TOOLS=TOOLS),
        system.worker(ready=None, WFCELERY_TOOLS=TOOLS),
    )
    system.ready(*both)


def demote(system: System, policy: Path) -> None:
    """Take `billing.pay` from ann, and wait until the executor has seen it."""
    policy.write_text(DEMOTED)

    def refused() -> bool:
        flow = {**PAID, "name": f"probe-{next(_NUMBERS)}"}  # type: ignore[dict-item]
        try:
            system.workflows.define(flow)
        except Forbidden:
            return True
        return False

    system.until(refused, "the policy to be read again")


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(Forbidden) as caught:
        act()
    return str(caught.value)


def steps(system: System, run: str) -> list[tuple[object, ...]]:
    return system.query(
        f"SELECT name, status, error FROM workflow_steps WHERE workflow_id = '{run}' ORDER BY position"  # noqa: S608
    )


def answered(system: System, *messages: Message) -> None:
    """Push sealed messages past every surface, and wait until the executor has taken them in."""
    seal = Seal(OURS)
    system.push(*(seal.write(message) for message in messages))
    last = messages[-1]
    assert isinstance(last, Start | Decide | Cancel)
    found = f"SELECT ok FROM commands WHERE id = '{last.command_id}'"  # noqa: S608
    system.until(lambda: system.query(found), "the answer")


def test_who_may_not_start_cancel_or_decide_is_refused(system: System, policy: Path) -> None:
    begin(system, policy)
    work = system.workflows
    run = work.start(GATED).id
    assert refusal(lambda: work.start("gated", by="bot")) == "bot may not start gated (permission start)"
    assert refusal(lambda: work.cancel(run)) == "ann may not cancel runs of gated (permission cancel)"
    decide = "may not decide in runs of gated (permission decide)"
    assert refusal(lambda: work.decide(run, "ask", approve=True)) == f"ann {decide}"
    bot = Principal("bot", Kind.AGENT)
    assert refusal(lambda: work.decide(run, "ask", approve=True, by=bot)) == f"bot {decide}"
    # An agent that calls itself a person is still an agent.
    assert refusal(lambda: work.decide(run, "ask", approve=True, by="bot")) == f"bot {decide}"
    assert steps(system, run) == [("ask", "pending", None)]
    work.decide(run, "ask", approve=True, by="cleo")
    system.finish([run])
    assert [line.step for line in system.ledger.lines()] == ["act", "act"]


def test_forged_groups_and_messages_past_every_surface_gain_nothing(system: System, policy: Path) -> None:
    begin(system, policy)
    run = system.start(GATED)
    forged = Principal("eve", groups=("chiefs", "payers"))
    stranger = Principal("stranger", groups=("chiefs",))
    answered(
        system,
        Decide(new_command_id(), run, "ask", approve=True, by=forged),
        Decide(new_command_id(), run, "ask", approve=True, by=stranger),
        Start(new_command_id(), new_run_id(1_700_000_000.0), PAID, {}, forged),
        Cancel(new_command_id(), run, Principal("eve", Kind.SYSTEM)),
    )
    rows = system.query("SELECT kind, actor, ok FROM commands WHERE actor <> 'ann' ORDER BY actor, kind")
    assert [(kind, actor, bool(ok)) for kind, actor, ok in rows] == [
        ("Cancel", "eve", False),
        ("Decide", "eve", False),
        ("Start", "eve", False),
        ("Decide", "stranger", False),
    ]
    assert steps(system, run) == [("ask", "pending", None)]
    assert system.ledger.lines() == []


def test_a_right_that_is_lost_after_the_start_is_lost_for_the_step(system: System, policy: Path) -> None:
    system.ledger.gate.touch()
    begin(system, policy)
    run = system.start(HELD)
    system.until(system.ledger.lines, "the first step to begin")
    demote(system, policy)
    system.ledger.gate.unlink()
    system.finish([run])
    (first, first_status, _), (then, then_status, error) = steps(system, run)
    assert (first, first_status, then, then_status) == ("first", "done", "then", "failed")
    assert "ann may not use the tool pay (permission billing.pay)" in str(error)
    assert {line.step for line in system.ledger.lines()} == {"first"}


def test_an_author_without_the_right_gains_nothing_when_an_admin_starts(system: System, policy: Path) -> None:
    begin(system, policy)
    work = system.workflows
    work.define(PAID)
    system.finish([work.start("paid").id])
    demote(system, policy)
    run = work.start("paid", by="boss").id
    system.finish([run])
    [(_, status, error)] = steps(system, run)
    assert status == "failed"
    assert "ann may not use the tool pay (permission billing.pay), and defined paid" in str(error)
    assert len(system.ledger.lines()) == 2


def test_only_who_holds_the_secret_says_that_a_notice_was_sent(system: System, policy: Path) -> None:
    begin(system, policy)
    run = system.start(GATED)
    waiting = f"SELECT id FROM notices WHERE run_id = '{run}' AND status = 'waiting'"  # noqa: S608
    [(notice,)] = system.query(waiting)
    said = NoticeTried(str(notice), ("cleo",))
    system.push(envelope.close(envelope.SAID, OURS.workers[0], codec.encode(said)))
    system.until(lambda: system.query("SELECT id FROM dead_letters"), "the dead letter")
    assert system.query(waiting) == [(notice,)]
    system.push(Seal(OURS).write(said))
    system.until(lambda: not system.query(waiting), "the notice to be over")
    assert system.query("SELECT status, tries, reached FROM notices") == [("sent", 1, '["cleo"]')]
