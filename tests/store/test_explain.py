"""What is read to say why a run does not move, to follow a run, and to tell who is at work."""

from __future__ import annotations

import time

from tests.store.book import BOB, CHAIN, DELAY, GATE, LOOP, NOW, WAIT, Book
from wfcelery.core.messages import Cancel, Decide, StepBegun
from wfcelery.core.state import Error, StepStatus, Vote, WaitsFor
from wfcelery.core.values import Json
from wfcelery.executor.messages import Holding
from wfcelery.store import dead_letters, explain, health, lease, news, workers

QUORUM: Json = {
    "start": "ask",
    "steps": {
        "ask": {"approval": {"quorum": 2}, "next": "act"},
        "act": {"tool": "echo", "queue": "gpu", "done": True},
    },
}


def facts(book: Book, run_id: str) -> explain.Facts:
    with book.database.reading() as conn:
        found = explain.facts(conn, book.flow_of, run_id)
    assert found is not None
    return found


def test_a_gate_is_read_with_its_votes_and_since_when_it_is_open(book: Book) -> None:
    run_id = book.start(QUORUM)
    book.now += 60
    book.tell(run_id, Decide("c1", run_id, "ask", approve=True, by=BOB, comment="fine"))
    [step] = facts(book, run_id).open
    assert (step.run.id, step.step.name, step.attempt.waits_for) == (run_id, "ask", WaitsFor.APPROVAL)
    assert step.opened_at == NOW
    assert step.votes == (Vote("ask", 1, "bob", approve=True, comment="fine"),)


def test_a_signal_is_read_with_what_is_waited_for(book: Book) -> None:
    [step] = facts(book, book.start(WAIT)).open
    assert (step.attempt.waits_for, step.shown) == (WaitsFor.SIGNAL, {"signal": "go", "key": None})


def test_a_retry_is_read_with_how_the_attempt_before_it_failed(book: Book) -> None:
    run_id = book.start(CHAIN)
    book.failed(run_id, "a")
    [step] = facts(book, run_id).open
    assert (step.attempt.attempt, step.attempt.waits_for) == (2, WaitsFor.RETRY)
    assert step.before == Error("ValueError", "no")


def test_items_are_read_and_not_the_loop_that_waits_for_them(book: Book) -> None:
    run_id = book.start(LOOP, {"items": list(range(explain.MOST + 50))})
    found = facts(book, run_id)
    assert len(found.open) + found.others == len(
        [each for each in book.runs[run_id].attempts.values() if each.item >= 0]
    )
    assert {step.attempt.name for step in found.open} == {"all"}
    assert min(step.attempt.item for step in found.open) == 0


def test_a_run_that_has_ended_has_nothing_open_and_one_that_is_not_there_is_none(book: Book) -> None:
    run_id = book.start(GATE)
    book.tell(run_id, Cancel("c1", run_id, BOB))
    assert facts(book, run_id).open == ()
    with book.database.reading() as conn:
        assert explain.facts(conn, book.flow_of, "nowhere") is None


def test_each_look_gives_what_has_happened_since_the_last(book: Book) -> None:
    run_id = book.start(CHAIN)
    watched = news.Watched(run_id)

    def look() -> list[tuple[str, StepStatus]]:
        with book.database.reading() as conn:
            told = watched.look(conn)
        return [(each.name, each.status) for one in told for each in one.attempts]

    assert look() == [("a", StepStatus.READY)]
    assert look() == []
    book.done(run_id, "a")
    assert look() == [("a", StepStatus.DONE), ("b", StepStatus.READY)]
    book.done(run_id, "b")
    assert look() == [("b", StepStatus.DONE)]
    with book.database.reading() as conn:
        assert news.Watched("nowhere").look(conn) == []


def test_a_look_tells_how_many_items_a_loop_has(book: Book) -> None:
    run_id = book.start(LOOP, {"items": ["p", "q", "r"]})
    with book.database.reading() as conn:
        [told] = news.Watched(run_id).look(conn)
    assert {name: len(loop.items) for name, loop in told.run.loops.items()} == {"all": 3}


def test_the_executor_is_alive_until_its_lease_runs_out_or_is_let_go_of(book: Book) -> None:
    def seen() -> health.ExecutorSeen | None:
        with book.database.reading() as conn:
            return health.executor_seen(conn)

    assert seen() is None
    now = time.time()
    held = lease.acquire(book.database, "me", ttl_s=600.0, now=now)
    assert held is not None
    found = seen()
    assert found is not None
    assert (found.owner, found.epoch) == ("me", 1)
    assert (found.is_alive(now), found.is_alive(now + 1_000)) == (True, False)
    held.release()
    left = seen()
    assert left is not None
    assert (left.owner, left.is_alive(now)) == (None, False)


def test_steps_that_nobody_has_begun_are_counted_by_queue(book: Book) -> None:
    begun = book.start(CHAIN)
    book.tell(begun, StepBegun(book.ref(begun, "a"), "w1", NOW))
    book.start(CHAIN)
    approved = book.start(GATE)
    book.approve(approved, "ask")
    gpu = book.start(QUORUM, name="other")
    for who in ("x", "y"):
        book.tell(gpu, Decide(f"c-{who}", gpu, "ask", approve=True, by=type(BOB)(who), comment=""))
    with book.database.reading() as conn:
        assert health.waiting(conn, book.flow_of) == [
            health.Waiting(None, 2, NOW),
            health.Waiting("gpu", 1, NOW),
        ]


def test_workers_come_with_the_facts(book: Book) -> None:
    run_id = book.start(DELAY)
    with book.database.transaction() as conn:
        workers.put(conn, [Holding("w1", "b1", NOW - 1, ("gpu",), "prefork")], NOW)
    assert [(each.name, each.queues) for each in facts(book, run_id).workers] == [("w1", ("gpu",))]


def test_flows_in_use_are_the_newest_and_those_of_live_runs(book: Book) -> None:
    live = book.define(CHAIN)
    book.start(CHAIN)
    newest = book.define(GATE)
    with book.database.reading() as conn:
        assert health.definitions_in_use(conn) == sorted([live, newest])


def test_a_dead_letter_is_read_by_its_number(book: Book) -> None:
    with book.database.transaction() as conn:
        dead_letters.put(conn, at=NOW, run_id=None, message="m", error="e")
    with book.database.reading() as conn:
        [letter] = dead_letters.listing(conn)
        assert dead_letters.get(conn, letter.id) == letter
        assert dead_letters.get(conn, letter.id + 1) is None
        assert health.count_dead_letters(conn) == 1
