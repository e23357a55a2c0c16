"""What is counted in the tables: exactly what is open, and without passing by what is finished."""

from __future__ import annotations

from tests.store.book import CHAIN, DELAY, GATE, NOW, WAIT, Book
from tests.store.test_schema import plan
from wfcelery.store import dead_letters, metrics
from wfcelery.store.metrics import Counts
from wfcelery.store.schema import NoticeStatus

INDEXES = {
    "ix_workflows_status": metrics.RUNS,
    "ix_workflow_steps_ready": metrics.READY,
    "ix_workflow_steps_running": metrics.RUNNING,
    "ix_workflow_steps_due": metrics.TIMERS,
    "ix_workflow_steps_due ": metrics.DUE.params(now=1.0),
    "ix_workflows_status ": metrics.PENDING,
    "ix_notices_waiting": metrics.NOTICES[NoticeStatus.WAITING],
    "ix_notices_failed": metrics.NOTICES[NoticeStatus.FAILED],
}


def counts(book: Book) -> Counts:
    with book.database.reading() as conn:
        return metrics.counts(conn, book.now)


def test_of_empty_tables_everything_is_zero(book: Book) -> None:
    assert counts(book) == Counts(
        runs={"paused": 0, "running": 0},
        steps={"pending": 0, "ready": 0, "running": 0},
        notices={"waiting": 0, "failed": 0},
    )


def test_what_is_open_is_counted_and_what_has_ended_is_not(book: Book) -> None:
    done = book.start(CHAIN)
    book.done(done, "a")
    book.done(done, "b")
    book.start(CHAIN)
    for flow in (GATE, WAIT, WAIT, DELAY):
        book.start(flow)
    with book.database.transaction() as conn:
        dead_letters.put(conn, at=NOW, run_id=None, message="?", error="unreadable")
    found = counts(book)
    assert found.runs == {"paused": 3, "running": 2}
    assert found.steps == {"pending": 4, "ready": 1, "running": 0}
    assert found.waiting == {"approval": 1, "signal": 2, "time": 1}
    assert (found.timers, found.timers_due, found.held, found.dead_letters) == (2, 0, 0, 1)
    book.now += 100_000
    assert counts(book).timers_due == 2


def test_everything_is_found_by_an_index_that_leaves_out_the_finished(book: Book) -> None:
    with book.database.reading() as conn:
        if book.database.kind == "postgresql":
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        for index, query in INDEXES.items():
            assert index.strip() in plan(conn, query), plan(conn, query)
