"""The table of workers, on both databases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.store.book import NOW
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.executor.messages import Holding
from wfcelery.store import workers
from wfcelery.store.workers import WorkerRow

if TYPE_CHECKING:
    from wfcelery.store import Database

RUN = "01hzy0000000000000000000aa"
PLAIN = StepRef(RUN, "a", NO_ITEM, 1, 7)
ITEM = StepRef(RUN, "b", 3, 2, 1)
UNSENT = StepRef(RUN, "c", NO_ITEM, 1, 9)

ANN = Holding(
    worker="ann@host",
    boot_id="boot-1",
    at=NOW - 1.5,
    queues=("gpu", "wfcelery.steps"),
    pool="prefork",
    reserved=(PLAIN, ITEM),
    active=((PLAIN, NOW), (ITEM, NOW)),
    unsent=(UNSENT,),
)
ANN_ROW = WorkerRow(
    name="ann@host",
    boot_id="boot-1",
    seen_at=NOW,
    queues=("gpu", "wfcelery.steps"),
    pool="prefork",
    at=NOW - 1.5,
    reserved=2,
    active=(f"{RUN}:a:1", f"{RUN}:b[3]:2"),
    unsent=(f"{RUN}:c:1",),
)
BOB = Holding("bob@host", "boot-2", NOW)
BOB_ROW = WorkerRow("bob@host", "boot-2", NOW, (), "", NOW, 0, (), ())


def test_what_workers_said_is_read_back_by_name(database: Database) -> None:
    with database.transaction() as conn:
        workers.put(conn, [BOB, ANN], NOW)
    with database.transaction() as conn:
        assert workers.known(conn) == [ANN_ROW, BOB_ROW]


def test_no_holdings_write_nothing(database: Database) -> None:
    with database.transaction() as conn:
        workers.put(conn, [], NOW)
        assert workers.known(conn) == []


def test_a_later_word_stands_in_the_place_of_the_earlier(database: Database) -> None:
    later = replace(
        ANN, boot_id="boot-9", at=NOW + 3, queues=("gpu",), pool="threads", reserved=(), unsent=()
    )
    with database.transaction() as conn:
        workers.put(conn, [ANN, BOB], NOW)
        workers.put(conn, [later, BOB], NOW + 3)
        expected = replace(
            ANN_ROW,
            boot_id="boot-9",
            seen_at=NOW + 3,
            at=NOW + 3,
            queues=("gpu",),
            pool="threads",
            reserved=0,
            unsent=(),
        )
        assert workers.known(conn) == [expected, replace(BOB_ROW, seen_at=NOW + 3)]


def test_of_several_words_of_one_worker_the_last_is_kept(database: Database) -> None:
    with database.transaction() as conn:
        workers.put(conn, [replace(ANN, pool="solo"), BOB, ANN], NOW)
        assert workers.known(conn) == [ANN_ROW, BOB_ROW]


def test_a_worker_that_leaves_is_deleted(database: Database) -> None:
    with database.transaction() as conn:
        workers.put(conn, [ANN, BOB], NOW)
        workers.put(conn, [replace(ANN, leaving=True)], NOW + 1)
        assert workers.known(conn) == [BOB_ROW]


def test_a_worker_that_leaves_does_not_take_its_successor_with_it(database: Database) -> None:
    leaving = replace(BOB, boot_id="boot-1", leaving=True)
    with database.transaction() as conn:
        workers.put(conn, [BOB, leaving], NOW)
        assert workers.known(conn) == [BOB_ROW]
        workers.put(conn, [leaving], NOW)
        assert workers.known(conn) == [BOB_ROW]


def test_those_not_heard_for_long_are_forgotten(database: Database) -> None:
    with database.transaction() as conn:
        workers.put(conn, [ANN], NOW - 10)
        workers.put(conn, [BOB], NOW)
        assert workers.forget(conn, NOW) == 1
        assert workers.forget(conn, NOW) == 0
        assert workers.known(conn) == [BOB_ROW]


def test_names_in_any_script_and_with_any_quotes_are_kept(database: Database) -> None:
    odd = Holding("wörker'); DROP TABLE workers;--\"\\{}", "böot", NOW, queues=('q"\\,{}', "очередь"))
    with database.transaction() as conn:
        workers.put(conn, [odd, BOB], NOW)
        row = WorkerRow(odd.worker, "böot", NOW, odd.queues, "", NOW, 0, (), ())
        assert sorted(workers.known(conn), key=lambda one: one.name) == [BOB_ROW, row]
