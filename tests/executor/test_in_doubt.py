"""Commits of which nobody knows whether they happened, and timers behind a long mailbox."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from tests.executor.desk import ANN, BOB, Desk, Recorder
from wfcelery.core.messages import Decide, Signal
from wfcelery.core.values import Json
from wfcelery.embedded.mailbox import LocalMailbox
from wfcelery.errors import NotReachable
from wfcelery.executor.answers import new_command_id, new_run_id
from wfcelery.executor.executor import BATCHES_BEFORE_TIMERS, Executor
from wfcelery.executor.lookout import Lookout
from wfcelery.executor.messages import Message, Start
from wfcelery.executor.packer import Packer
from wfcelery.executor.watch import Marker, Watch

if TYPE_CHECKING:
    from sqlalchemy import Connection

ONE: Json = {
    "name": "one",
    "start": "a",
    "steps": {"a": {"tool": "echo", "args": {"value": 1}, "done": True}},
}
GATED: Json = {
    "name": "gated",
    "start": "gate",
    "steps": {
        "gate": {"approval": {"approvers": ["bob"], "timeout_s": 60}, "next": "b"},
        "b": {"done": True},
    },
}


class Post(Recorder):
    """A dispatcher that knows of one line only."""

    def place(self, queue: str | None, priority: int | None) -> tuple[str, int]:
        return queue or "wfcelery.steps", 3 if priority is None else priority

    def mark(self, markers: Sequence[Marker]) -> None:
        """Lose them."""


class OneByOne(LocalMailbox):
    """A mailbox that gives one message at a time."""

    def take(self, limit: int) -> Sequence[Message]:
        return super().take(min(limit, 1))


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    made = Desk(database_url)
    yield made
    made.close()


def watched(desk: Desk) -> Watch:
    """Give the desk an executor with a lookout; the watch tells what it knows."""
    assert desk.lease is not None
    watch = Watch(desk.lease.epoch)
    desk.out = Post()
    lookout = Lookout(watch, desk.out, Packer())
    desk.executor = Executor(desk.database, desk.lease, desk.mailbox, desk.out, desk.clock, lookout=lookout)
    return watch


def test_what_was_committed_though_the_database_seemed_lost_is_watched(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watched(desk)
    desk.executor.run_once()
    committed = desk.database.transaction

    @contextlib.contextmanager
    def lost_at_the_end() -> Iterator[Connection]:
        with committed() as conn:
            yield conn
        raise NotReachable("the database", "the connection was closed during COMMIT")

    run = new_run_id(desk.clock.now())
    desk.mailbox.push(Start(new_command_id(), run, ONE, {}, ANN))
    with monkeypatch.context() as trouble:
        trouble.setattr(desk.database, "transaction", lost_at_the_end)
        with pytest.raises(NotReachable):
            desk.executor.run_once()
    desk.executor.run_once()
    assert (desk.states(run), desk.out.sent, len(watch)) == ({"a": "ready"}, [], 1)


def test_an_executor_watches_what_its_predecessor_had_out(desk: Desk) -> None:
    run = desk.start(ONE)
    watch = watched(desk)
    desk.executor.run_once()
    assert (desk.states(run), len(watch)) == ({"a": "running"}, 1)


def test_timers_wait_for_what_came_before_them(desk: Desk) -> None:
    run = desk.start(GATED)
    before = [Signal(new_command_id(), run, f"s{number}", ANN) for number in range(520)]
    desk.mailbox.push(*before, Decide(new_command_id(), run, "gate", approve=True, by=BOB))
    desk.clock.advance(90)
    desk.tell()
    assert desk.run(run)["status"] == "completed"


def test_timers_do_not_wait_for_ever(desk: Desk) -> None:
    run = desk.start(GATED)
    desk.mailbox = OneByOne()
    assert desk.lease is not None
    desk.executor = Executor(desk.database, desk.lease, desk.mailbox, desk.out, desk.clock)
    before = [Signal(new_command_id(), run, f"s{number}", ANN) for number in range(BATCHES_BEFORE_TIMERS + 5)]
    desk.mailbox.push(*before, Decide(new_command_id(), run, "gate", approve=True, by=BOB))
    desk.clock.advance(90)
    desk.tell()
    assert desk.run(run)["status"] == "cancelled"
