"""Notices of real runs in a real database, sent to a receiver that the test can look into."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.executor.desk import Desk
from tests.notify.parts import POLICY, policy
from tests.wire.parts import RING
from wfcelery.core.effects import NoticeKind
from wfcelery.core.messages import Cancel, Decide, Principal
from wfcelery.core.values import Json
from wfcelery.executor.answers import new_command_id
from wfcelery.executor.messages import NoticeTried
from wfcelery.notify.notifier import Notifier
from wfcelery.notify.post import NotSent
from wfcelery.notify.texts import Text
from wfcelery.settings import Settings
from wfcelery.store import notices
from wfcelery.store.notices import Notice, NoticeStatus
from wfcelery.wire.link import Link, read_link

BASE = "https://flows.example/ops/"
TOKEN = re.compile(r"https://flows\.example/ops/a/(\S+)")
PLACE = "json://127.0.0.1:9"


@dataclass
class Outside:
    """Where texts go; `faults` says what happens at an address."""

    sent: list[tuple[str, Text]] = field(default_factory=list)
    faults: dict[str, NotSent] = field(default_factory=dict)
    before: Callable[[], object] = lambda: None

    def send(self, address: str, text: Text) -> None:
        self.before()
        if address in self.faults:
            raise self.faults[address]
        self.sent.append((address, text))

    def places(self) -> list[str]:
        return [address.removeprefix(f"{PLACE}/") for address, _ in self.sent]


@dataclass
class World:
    desk: Desk
    outside: Outside
    notifier: Notifier

    def opened(self, **gate: Json) -> str:
        """A run that waits at its gate."""
        steps: dict[str, Json] = {
            "gate": {"approval": {"approvers": ["bob"], **gate}, "next": "pay"},
            "pay": {"tool": "echo", "args": {"amount": 7, "key": "{{secret.KEY}}"}, "done": True},
        }
        return self.desk.start({"name": "ship", "start": "gate", "steps": steps})

    def planted(self, run: str, recipient: str, kind: NoticeKind, **more: Json) -> str:
        name = f"{recipient[:20]}-{kind}-{run}"
        attempt, data = int(str(more.pop("attempt", 1))), dict(more)
        now = self.desk.clock.now()
        made = Notice(name, run, "gate", attempt, kind.value, recipient, now, now + 1e6, data)
        with self.desk.database.transaction() as conn:
            notices.put_many(conn, [made])
        return name

    def deliver(
        self, run: str, recipient: str, kind: NoticeKind = NoticeKind.GATE_OPENED
    ) -> NoticeTried | None:
        return self.notifier.deliver(self.planted(run, recipient, kind), self.desk.clock.now())

    def links(self) -> list[Link]:
        found = [token for _, text in self.outside.sent for token in TOKEN.findall(text.body)]
        return [read_link(RING, token, self.desk.clock.now()) for token in found]


@pytest.fixture
def world(sqlite_url: str, tmp_path: Path) -> Iterator[World]:
    desk, outside = Desk(sqlite_url), Outside()
    made = Settings(base_url=BASE, link_days=2)
    try:
        yield World(desk, outside, Notifier(desk.database, policy(tmp_path), RING, made, outside.send))
    finally:
        desk.close()


def test_an_approver_gets_a_link_of_their_own_until_the_deadline(world: World) -> None:
    run = world.opened(timeout_s=3600)
    tried = world.deliver(run, "bob")
    assert tried == NoticeTried(f"bob-gate_opened-{run}", ("bob",))
    assert world.outside.places() == ["bob"]
    assert world.links() == [Link(run, "gate", 1, "bob", round(world.desk.clock.now() + 3600, 3))]
    body = world.outside.sent[0][1].body
    assert f"Console: https://flows.example/ops/runs/{run}\n" in body
    assert '    amount = 7\n    key = "{{secret.KEY}}"\n' in body


def test_a_link_without_a_deadline_is_good_for_the_days_that_are_set(world: World) -> None:
    world.deliver(world.opened(), "bob")
    assert [link.expires_at for link in world.links()] == [round(world.desk.clock.now() + 2 * 86_400)]


def test_a_link_outlives_the_moment_at_which_others_are_asked_too(world: World) -> None:
    world.deliver(world.opened(timeout_s=60, on_timeout="escalate", escalate_to=["dora"]), "bob")
    assert [link.expires_at for link in world.links()] == [round(world.desk.clock.now() + 120, 3)]


def test_a_group_gets_a_link_for_each_and_a_channel_none(world: World) -> None:
    run = world.opened(approvers=["group:ops"])
    assert world.deliver(run, "group:ops") == NoticeTried(f"group:ops-gate_opened-{run}", ("bob", "cleo"))
    assert [link.approver for link in world.links()] == ["bob", "cleo"]
    world.outside.sent.clear()
    tried = world.deliver(run, "channel:ops")
    assert tried is not None
    assert tried.reached == ("channel:ops (1)", "channel:ops (2)")
    assert world.outside.places() == ["channel", "second"]
    assert world.links() == []
    assert "/runs/" in world.outside.sent[0][1].body


def test_an_address_gets_no_link_and_is_not_written_down(world: World) -> None:
    tried = world.deliver(world.opened(), "json://user:hush@127.0.0.1:9/hook")
    assert tried is not None
    assert (tried.reached, tried.error) == (("json://...",), "")
    assert world.links() == []


def decided(world: World, run: str) -> None:
    by = Principal("bob")
    assert world.desk.ask(Decide(new_command_id(), run, "gate", approve=True, by=by)).ok


def cancelled(world: World, run: str) -> None:
    assert world.desk.ask(Cancel(new_command_id(), run, Principal("ann"))).ok


@pytest.mark.parametrize("end", [decided, cancelled])
@pytest.mark.parametrize(
    "kind", [NoticeKind.GATE_OPENED, NoticeKind.GATE_REMINDER, NoticeKind.GATE_ESCALATED]
)
def test_nobody_is_asked_what_is_no_longer_open(
    world: World, kind: NoticeKind, end: Callable[[World, str], None]
) -> None:
    run = world.opened()
    end(world, run)
    assert world.deliver(run, "bob", kind) == NoticeTried(f"bob-{kind}-{run}")
    assert world.outside.sent == []


def test_nobody_is_asked_about_another_attempt(world: World) -> None:
    run = world.opened()
    name = world.planted(run, "bob", NoticeKind.GATE_OPENED, attempt=2)
    assert world.notifier.deliver(name, world.desk.clock.now()) == NoticeTried(name)
    assert world.outside.sent == []


def test_a_decision_is_told_also_after_it(world: World) -> None:
    run = world.opened()
    decided(world, run)
    world.deliver(run, "dora", NoticeKind.GATE_DECIDED)
    assert world.outside.places() == ["dora"]
    assert world.links() == []


def test_a_notice_that_is_not_there_or_was_sent_is_left_alone(world: World) -> None:
    assert world.notifier.deliver("nothing", 0.0) is None
    run = world.opened()
    name = world.planted(run, "bob", NoticeKind.GATE_OPENED)
    with world.desk.database.transaction() as conn:
        found = notices.get(conn, name)
        assert found is not None
        sent = Notice(
            found.id, run, "gate", 1, found.kind, "bob", 0.0, 0.0, status=NoticeStatus.SENT, reached=("bob",)
        )
        notices.save(conn, sent)
    assert world.notifier.deliver(name, world.desk.clock.now()) is None
    assert world.outside.sent == []


def test_who_has_no_address_is_told_of_once_in_the_log_and_it_is_final(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    run = world.opened(approvers=["mute"])
    error = "mute has no address: add one as `notify` in the policy"
    for kind in (NoticeKind.GATE_OPENED, NoticeKind.GATE_REMINDER):
        assert world.deliver(run, "mute", kind) == NoticeTried(f"mute-{kind}-{run}", (), error, final=True)
    assert caplog.messages == [f"notice mute-gate_opened-{run} (gate_opened): {error}"]


def test_of_a_group_only_those_are_tried_again_who_were_not_reached(world: World) -> None:
    run = world.opened(approvers=["group:ops"])
    world.outside.faults[f"{PLACE}/bob"] = NotSent("json://: the service answered 500")
    tried = world.deliver(run, "group:ops")
    error = "bob was not reached: json://: the service answered 500"
    assert tried == NoticeTried(f"group:ops-gate_opened-{run}", ("cleo",), error)
    world.outside.faults.clear()
    again = world.deliver(run, "group:ops")
    assert again == NoticeTried(f"group:ops-gate_opened-{run}", ("cleo", "bob"))
    assert world.outside.places() == ["cleo", "bob"]


def test_what_was_sent_is_not_sent_again_though_nobody_has_heard_of_it(world: World) -> None:
    run = world.opened()
    first, second = world.deliver(run, "bob"), world.deliver(run, "bob")
    assert first == second == NoticeTried(f"bob-gate_opened-{run}", ("bob",))
    assert world.outside.places() == ["bob"]


def test_the_same_notice_twice_at_once_is_sent_once(world: World) -> None:
    run = world.opened()
    name = world.planted(run, "bob", NoticeKind.GATE_OPENED)
    within, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        within.set()
        assert go_on.wait(10)

    world.outside.before = wait
    first = threading.Thread(target=lambda: world.notifier.deliver(name, world.desk.clock.now()))
    first.start()
    assert within.wait(10)
    assert world.notifier.deliver(name, world.desk.clock.now()) is None
    go_on.set()
    first.join(10)
    assert world.outside.places() == ["bob"]


def test_who_has_several_addresses_is_reached_at_one_of_them(world: World, tmp_path: Path) -> None:
    two = POLICY.replace(f'["{PLACE}/bob"]', f'["{PLACE}/bob", "{PLACE}/phone"]')
    made = Settings(base_url=BASE)
    notifier = Notifier(world.desk.database, policy(tmp_path, two), RING, made, world.outside.send)
    run = world.opened()
    name = world.planted(run, "bob", NoticeKind.GATE_OPENED)
    world.outside.faults[f"{PLACE}/bob"] = NotSent("json://: the service answered 500")
    assert notifier.deliver(name, world.desk.clock.now()) == NoticeTried(name, ("bob",))
    assert world.outside.places() == ["phone"]


def test_without_a_base_url_there_is_no_link_and_the_rest_is_told(world: World, tmp_path: Path) -> None:
    notifier = Notifier(world.desk.database, policy(tmp_path), RING, Settings(), world.outside.send)
    run = world.opened()
    name = world.planted(run, "bob", NoticeKind.GATE_OPENED)
    assert notifier.deliver(name, world.desk.clock.now()) == NoticeTried(name, ("bob",))
    assert "http" not in world.outside.sent[0][1].body
    assert f"wfcelery approve {run} gate" in world.outside.sent[0][1].body


def test_a_link_and_an_address_are_in_no_report_and_no_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    run = world.opened()
    tried = world.deliver(run, "bob")
    (token,) = TOKEN.findall(world.outside.sent[0][1].body)
    world.outside.faults[f"{PLACE}/bob"] = NotSent("json://: the service answered 500")
    failed = world.deliver(run, "bob", NoticeKind.GATE_REMINDER)
    said = f"{tried} {failed} {caplog.text}"
    assert "bob was not reached" in said
    for part in (token, *token.split("."), PLACE):
        assert part not in said
