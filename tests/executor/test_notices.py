"""What people are told of: kept with what it tells of, rung to the notifier, tried until it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.executor.desk import BOB, Desk
from wfcelery.core.effects import NoticeKind, Notify
from wfcelery.core.messages import Cancel, Decide, StepDone
from wfcelery.core.values import Json
from wfcelery.executor.messages import NoticeTried
from wfcelery.executor.notice_book import (
    GAPS_S,
    GIVEN_UP_S,
    NOBODY_SENT,
    NoticeBook,
    after,
    notice_id,
    rung_again,
)
from wfcelery.executor.tidying import NOTICES_KEPT_S
from wfcelery.store import notices
from wfcelery.store.notices import Notice, NoticeStatus

GATED: Json = {
    "name": "gated",
    "start": "ask",
    "steps": {
        "ask": {"approval": {"approvers": ["bob", "group:ops"]}, "next": "act"},
        "act": {"tool": "echo", "done": True},
    },
}
PLAIN: Json = {"name": "plain", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}
NOW = 1_700_000_000.0
ONE = Notice("n1", "r1", "ask", 1, "gate_opened", "bob", NOW, NOW + 60)


@pytest.fixture
def telling(database_url: str) -> Iterator[Desk]:
    """An executor whose operators want to know everything."""
    desk = Desk(database_url, told=("channel:ops",))
    try:
        yield desk
    finally:
        desk.close()


def of(desk: Desk, run: str) -> list[Notice]:
    """The notices of a run in the order of their kinds and recipients."""
    with desk.database.reading() as conn:
        found = notices.of_run(conn, run)
    return sorted(found, key=lambda notice: (notice.created_at, notice.kind, notice.recipient))


def told(desk: Desk, run: str) -> list[tuple[str, str]]:
    return [(notice.kind, notice.recipient) for notice in of(desk, run)]


def test_each_approver_is_told_of_a_gate_once_and_the_notifier_is_rung(desk: Desk) -> None:
    run = desk.start(GATED)
    found = of(desk, run)
    assert told(desk, run) == [("gate_opened", "bob"), ("gate_opened", "group:ops")]
    assert sorted(desk.out.rung) == sorted(notice.id for notice in found)
    first = found[0]
    assert (first.step, first.attempt, first.status, first.tries) == ("ask", 1, NoticeStatus.WAITING, 0)
    assert (first.created_at, first.next_at) == (desk.clock.now(), desk.clock.now() + 60)


def test_operators_are_told_of_everything(telling: Desk) -> None:
    run = telling.start(GATED)
    assert telling.ask(Decide("c1", run, "ask", approve=True, by=BOB)).ok
    telling.done("act")
    assert [pair for pair in told(telling, run) if pair[1] == "channel:ops"] == [
        ("gate_decided", "channel:ops"),
        ("gate_opened", "channel:ops"),
        ("run_finished", "channel:ops"),
    ]


def test_a_run_that_ends_well_tells_nobody_unless_somebody_wants_to_know(desk: Desk) -> None:
    run = desk.start(PLAIN)
    desk.done("a")
    assert (told(desk, run), desk.out.rung) == ([], [])
    named = desk.start({**PLAIN, "defaults": {"notify": ["json://there"]}})  # type: ignore[dict-item]
    desk.done("a")
    assert told(desk, named) == [("run_finished", "json://there")]


def test_a_repeated_message_tells_nobody_again(desk: Desk) -> None:
    run = desk.start(GATED)
    decide = Decide("c1", run, "ask", approve=False, by=BOB)
    desk.ask(decide)
    rung = list(desk.out.rung)
    before = of(desk, run)
    desk.restart()
    desk.ask(decide)
    assert (of(desk, run), desk.out.rung) == (before, rung)


def test_a_refused_request_tells_nobody(desk: Desk) -> None:
    run = desk.start(GATED)
    before = of(desk, run)
    assert not desk.ask(Decide("c1", run, "nowhere", approve=True, by=BOB)).ok
    assert of(desk, run) == before


def test_what_was_sent_is_over(desk: Desk) -> None:
    run = desk.start(GATED)
    first, second = of(desk, run)
    desk.clock.move_to(desk.clock.now() + 5)
    desk.tell(NoticeTried(first.id, ("bob",)), NoticeTried("unknown"), NoticeTried(first.id, (), "late"))
    sent = replace(
        first, status=NoticeStatus.SENT, tries=1, sent_at=desk.clock.now(), reached=("bob",), error=None
    )
    assert of(desk, run) == [sent, second]


def test_a_try_that_failed_is_rung_again_after_its_gap(desk: Desk) -> None:
    run = desk.start(GATED)
    first, _ = of(desk, run)
    desk.tell(NoticeTried(first.id, ("json://one",), "no route to host"))
    waiting = of(desk, run)[0]
    assert (waiting.error, waiting.reached, waiting.next_at) == (
        "no route to host",
        ("json://one",),
        desk.clock.now() + GAPS_S[0],
    )
    desk.out.rung.clear()
    desk.clock.move_to(desk.clock.now() + GAPS_S[0] + 1)
    desk.tell()
    assert desk.out.rung == [first.id]


def test_a_bell_that_was_lost_is_rung_again(desk: Desk) -> None:
    run = desk.start(GATED)
    desk.out.rung.clear()
    desk.restart()
    desk.tell()
    assert desk.out.rung == []
    desk.clock.move_to(desk.clock.now() + 61)
    desk.tell()
    assert sorted(desk.out.rung) == sorted(notice.id for notice in of(desk, run))
    desk.tell()
    assert len(desk.out.rung) == 2


def test_what_has_ended_is_forgotten_in_time(desk: Desk) -> None:
    run = desk.start(GATED)
    desk.tell(NoticeTried(of(desk, run)[0].id))
    desk.clock.move_to(desk.clock.now() + NOTICES_KEPT_S + 1)
    desk.tell()
    # One was sent; the other has waited for too long.
    assert of(desk, run) == []


def test_notices_of_a_message_that_cannot_be_written_with_others_are_written_all_the_same(desk: Desk) -> None:
    run, other = desk.start(GATED), desk.start(PLAIN)
    first = of(desk, run)[0]
    ref = desk.take("a").ref
    desk.tell(NoticeTried(first.id), StepDone(ref, "\x00"), Cancel("c1", other, BOB))
    assert of(desk, run)[0].status is NoticeStatus.SENT


# -- what a try means


def test_gaps_grow_and_the_sixth_try_is_the_last() -> None:
    notice, gaps = ONE, []
    for _ in range(len(GAPS_S)):
        notice = after(notice, NoticeTried("n1", (), "no"), NOW)
        gaps.append(notice.next_at - NOW)
    assert (tuple(gaps), notice.status, notice.tries) == (GAPS_S, NoticeStatus.WAITING, 5)
    last = after(notice, NoticeTried("n1", (), "no"), NOW)
    assert (last.status, last.tries, last.error) == (NoticeStatus.FAILED, 6, "no")


def test_a_final_failure_is_not_tried_again_and_long_words_are_cut() -> None:
    failed = after(ONE, NoticeTried("n1", (), "x" * 5_000, final=True), NOW)
    assert (failed.status, failed.error) == (NoticeStatus.FAILED, "x" * 500)


def test_who_was_reached_stays_reached() -> None:
    some = after(ONE, NoticeTried("n1", ("a",), "b is away"), NOW)
    both = after(some, NoticeTried("n1", ("b", "a")), NOW + 30)
    assert (both.status, both.reached, both.error) == (NoticeStatus.SENT, ("a", "b"), None)


def test_silence_is_rung_at_ever_rarer_and_given_up_after_days() -> None:
    assert rung_again(ONE, NOW + 60).next_at == NOW + 120
    assert rung_again(ONE, NOW + 1_000).next_at == NOW + 2_000
    assert rung_again(ONE, NOW + 100_000).next_at == NOW + 121_600
    given_up = rung_again(ONE, NOW + GIVEN_UP_S + 1)
    assert (given_up.status, given_up.error) == (NoticeStatus.FAILED, NOBODY_SENT)


def test_the_id_of_a_notice_says_what_it_tells_whom() -> None:
    opened = Notify("r1", NoticeKind.GATE_OPENED, ("bob",), "ask", 1)
    assert notice_id(opened, "bob", 3) == notice_id(replace(opened, to=()), "bob", 3)
    others = {
        notice_id(opened, "bob", 4),
        notice_id(opened, "ann", 3),
        notice_id(replace(opened, kind=NoticeKind.GATE_REMINDER), "bob", 3),
        notice_id(replace(opened, attempt=2), "bob", 3),
    }
    assert len(others | {notice_id(opened, "bob", 3)}) == 5


def test_without_a_policy_only_addresses_are_told(desk: Desk) -> None:
    book = NoticeBook(desk.out, ["channel:ops", "json://127.0.0.1:9/"], knows_people=False)
    desk.executor._notices = book
    gate: Json = {"approval": {"approvers": ["bob"]}, "done": True}
    run = desk.start({"name": "f", "start": "g", "steps": {"g": gate}})
    with desk.database.reading() as conn:
        assert [each.recipient for each in notices.of_run(conn, run)] == ["json://127.0.0.1:9/"]
