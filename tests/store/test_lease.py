"""One executor at a time."""

# ruff: noqa: PT012 -- what raises is the transaction around the statements, which the test itself writes

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.store.book import CHAIN, Book, value
from wfcelery.errors import LostLease
from wfcelery.store import changes, lease, migrations, open_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wfcelery.store import Database


@pytest.fixture
def two(database_url: str) -> Iterator[tuple[Database, Database]]:
    first, second = open_database(database_url), open_database(database_url)
    yield first, second
    first.close()
    second.close()


def take(database: Database, owner: str = "one", ttl_s: float = 30.0) -> lease.Lease | None:
    return lease.acquire(database, owner, ttl_s=ttl_s, now=1000.0)


def taken(database: Database, owner: str = "one", ttl_s: float = 30.0) -> lease.Lease:
    found = take(database, owner, ttl_s)
    assert found is not None
    return found


def expire(database: Database) -> None:
    with database.transaction() as conn:
        conn.exec_driver_sql("UPDATE executor SET expires_at = to_timestamp(0)")


def test_the_first_makes_the_tables_and_has_epoch_one(two: tuple[Database, Database]) -> None:
    held = taken(two[0])
    assert held.epoch == 1
    with two[1].reading() as conn:
        assert migrations.version(conn) == migrations.HEAD
        assert lease.holder(conn) == "one"
    held.release()


def test_the_second_gets_nothing_while_the_first_holds(two: tuple[Database, Database]) -> None:
    held = taken(two[0])
    assert take(two[1], "two") is None
    held.release()


def test_each_acquisition_raises_the_epoch_by_one(two: tuple[Database, Database]) -> None:
    epochs = []
    for database in (*two, *two):
        held = taken(database)
        epochs.append(held.epoch)
        held.release()
    assert epochs == [1, 2, 3, 4]
    with two[0].reading() as conn:
        assert lease.holder(conn) is None


def test_nobody_holds_it_before_there_are_tables(two: tuple[Database, Database]) -> None:
    with two[0].reading() as conn:
        assert lease.holder(conn) is None


def test_a_holder_that_is_still_the_executor_may_write(two: tuple[Database, Database]) -> None:
    held = taken(two[0])
    with two[0].transaction() as conn:
        held.check(conn)
        held.renew(conn, 1010.0)
    held.release()


def test_a_paused_holder_that_was_overtaken_cannot_commit(two: tuple[Database, Database]) -> None:
    old = taken(two[0])
    book = Book(two[0])
    definition = book.define(CHAIN)
    old.abandon()
    if two[0].kind == "postgresql":
        expire(two[0])
    new = taken(two[1], "two")
    for act in (old.check, lambda conn: old.renew(conn, 2000.0)):
        with pytest.raises(LostLease) as caught, two[0].transaction() as conn:
            changes.write(conn, [book.begun(definition)])
            act(conn)
        assert str(caught.value) == "another executor has taken over since epoch 1; this one stops"
    with two[1].reading() as conn:
        assert value(conn, "SELECT count(*) FROM workflows") == 0
    old.release()
    with two[1].transaction() as conn:
        new.check(conn)
        assert lease.holder(conn) == "two"
    new.release()


def test_on_postgresql_a_lease_runs_out_by_the_clock_of_the_database(postgres_url: str) -> None:
    first, second = open_database(postgres_url), open_database(postgres_url)
    old = taken(first)
    assert take(second, "two") is None
    expire(first)
    new = taken(second, "two")
    assert (old.epoch, new.epoch) == (1, 2)
    new.release()
    first.close()
    second.close()


def test_on_postgresql_a_holder_in_mid_transaction_is_not_overtaken_nor_waited_for(postgres_url: str) -> None:
    first, second = open_database(postgres_url), open_database(postgres_url)
    held = taken(first)
    expire(first)
    with first.transaction() as conn:
        held.check(conn)
        assert take(second, "two") is None
    first.close()
    second.close()


def test_in_memory_whoever_comes_last_is_the_executor() -> None:
    database = open_database("sqlite://")
    old, new = taken(database), taken(database, "two")
    with database.transaction() as conn:
        new.check(conn)
    with pytest.raises(LostLease), database.transaction() as conn:
        old.check(conn)
    database.close()


HOLDER = """
import sys
from wfcelery.store import lease, open_database
held = lease.acquire(open_database(sys.argv[1]), "dying", ttl_s=30.0, now=0.0)
print("held" if held else "refused", flush=True)
sys.stdin.read()
"""


def test_on_sqlite_the_kernel_frees_the_lease_of_a_process_that_was_killed(sqlite_url: str) -> None:
    command = [sys.executable, "-c", HOLDER, sqlite_url]
    database = open_database(sqlite_url)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert take(database) is None
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        held = taken(database)
        assert held.epoch == 2
        held.release()
    database.close()
