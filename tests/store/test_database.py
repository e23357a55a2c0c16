"""How a database is opened, and that a transaction is all or nothing."""

# ruff: noqa: PT012, S608 -- what raises is the transaction around the statements, which the test itself writes

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Column, Integer, MetaData, Table
from sqlalchemy.exc import DBAPIError

from tests.store.book import value
from wfcelery.errors import InvalidSettings, NotReachable, StoreError
from wfcelery.store import open_database, statements
from wfcelery.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def plain(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    with opened.transaction() as conn:
        conn.exec_driver_sql("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    yield opened
    opened.close()


def count(database: Database) -> object:
    with database.reading() as conn:
        return value(conn, "SELECT count(*) FROM t")


def test_what_is_written_in_a_transaction_is_there_afterwards(plain: Database) -> None:
    with plain.transaction() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (1)")
    assert count(plain) == 1


def test_an_error_of_the_caller_undoes_everything(plain: Database) -> None:
    with pytest.raises(KeyError), plain.transaction() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (1)")
        raise KeyError
    assert count(plain) == 0


def test_a_failed_statement_undoes_everything_even_if_the_caller_goes_on(plain: Database) -> None:
    said = f"{plain.name}: a statement of this transaction failed; nothing was written"
    with pytest.raises(StoreError) as caught, plain.transaction() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (1)")
        with pytest.raises(DBAPIError):
            conn.exec_driver_sql("INSERT INTO t VALUES (1)")
    assert str(caught.value) == said
    assert count(plain) == 0


def test_a_statement_after_a_failed_one_is_refused(plain: Database) -> None:
    with pytest.raises(StoreError, match="Can't operate on closed transaction"), plain.transaction() as conn:
        with pytest.raises(DBAPIError):
            conn.exec_driver_sql("INSERT INTO nowhere VALUES (1)")
        conn.exec_driver_sql("INSERT INTO t VALUES (2)")
    assert count(plain) == 0


def test_a_bulk_statement_after_a_failed_one_is_refused(plain: Database) -> None:
    """Bulk statements go around SQLAlchemy, which would refuse them; SQLite would commit them one by one."""
    table = Table("t", MetaData(), Column("n", Integer, primary_key=True))
    refused = pytest.raises(StoreError, match="a statement of this transaction failed; nothing was written")
    with refused, plain.transaction() as conn:
        with suppress(DBAPIError):
            conn.exec_driver_sql("INSERT INTO nowhere VALUES (1)")
        statements.insert(conn, table, ("n",), [(1,)])
    assert count(plain) == 0


def test_a_full_disk_leaves_nothing_of_the_transaction(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    with database.transaction() as conn:
        conn.exec_driver_sql("CREATE TABLE t (n INTEGER PRIMARY KEY, filling TEXT)")
    with pytest.raises(NotReachable) as caught, database.transaction() as conn:
        conn.exec_driver_sql("PRAGMA max_page_count=10")
        conn.exec_driver_sql("INSERT INTO t VALUES (1, 'small')")
        for n in range(2, 100):
            conn.exec_driver_sql("INSERT INTO t VALUES (?, ?)", (n, "x" * 2000))
    assert str(caught.value) == f"{database.name} is out of reach: database or disk is full"
    assert count(database) == 0
    with database.transaction() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (1, 'goes on')")
    assert count(database) == 1
    database.close()


def test_a_full_disk_swallowed_by_the_caller_still_commits_nothing(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    with database.transaction() as conn:
        conn.exec_driver_sql("CREATE TABLE t (n INTEGER PRIMARY KEY, filling TEXT)")
    with (
        pytest.raises(StoreError, match="Can't operate on closed transaction"),
        database.transaction() as conn,
    ):
        conn.exec_driver_sql("PRAGMA max_page_count=4")
        conn.exec_driver_sql("INSERT INTO t VALUES (1, 'small')")
        with pytest.raises(DBAPIError):
            conn.exec_driver_sql("INSERT INTO t VALUES (2, ?)", ("x" * 100_000,))
        conn.exec_driver_sql("INSERT INTO t VALUES (3, 'piecemeal')")
    assert count(database) == 0
    database.close()


def test_a_reader_cannot_write(plain: Database) -> None:
    with pytest.raises(StoreError), plain.reading() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (1)")
    assert count(plain) == 0


def test_a_reader_of_memory_cannot_write_either() -> None:
    database = open_database("sqlite://")
    with database.transaction() as conn:
        conn.exec_driver_sql("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    with pytest.raises(StoreError) as caught, database.reading() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (1)")
    assert str(caught.value) == "a reader tried to write; nothing was written"
    assert count(database) == 0
    database.close()


def test_a_reader_sees_one_state_while_others_write(plain: Database) -> None:
    with plain.reading() as reader:
        before = value(reader, "SELECT count(*) FROM t")
        with plain.transaction() as conn:
            conn.exec_driver_sql("INSERT INTO t VALUES (1)")
        assert (before, value(reader, "SELECT count(*) FROM t")) == (0, 0)
    assert count(plain) == 1


def test_threads_share_a_database_in_memory_without_mixing_their_transactions() -> None:
    database = open_database("sqlite://")
    with database.transaction() as conn:
        conn.exec_driver_sql("CREATE TABLE t (n INTEGER PRIMARY KEY)")

    def add(start: int) -> None:
        for n in range(start, start + 50):
            with database.transaction() as conn:
                conn.exec_driver_sql("INSERT INTO t VALUES (?)", (n,))
            with database.reading() as conn:
                conn.exec_driver_sql("SELECT count(*) FROM t").scalar()

    threads = [threading.Thread(target=add, args=(start,)) for start in (0, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(database) == 200
    database.close()


def test_sqlite_is_durable_and_checks_its_references(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    with database.transaction() as conn:
        found = [value(conn, f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "foreign_keys")]
    database.close()
    assert found == ["wal", 2, 1]


def test_the_folder_of_a_database_file_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "wfcelery.db"
    database = open_database(f"sqlite:///{path}")
    with database.transaction() as conn:
        conn.exec_driver_sql("CREATE TABLE t (n INTEGER)")
    database.close()
    assert path.exists()


def test_a_folder_that_cannot_be_made_is_out_of_reach(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    url = f"sqlite:///{tmp_path / 'file' / 'wfcelery.db'}"
    with pytest.raises(NotReachable) as caught:
        open_database(url)
    assert str(caught.value) == f"{url} is out of reach: its folder cannot be made: File exists"


def test_a_file_that_is_no_database_is_out_of_reach(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("something else entirely, and long enough to be looked at" * 10)
    database = open_database(f"sqlite:///{path}")
    with pytest.raises(NotReachable) as caught, database.transaction():
        pass
    assert str(caught.value) == f"sqlite:///{path} is out of reach: file is not a database"


def test_a_server_that_does_not_answer_is_out_of_reach_and_its_password_is_not_told() -> None:
    database = open_database("postgres://ann:hidden@127.0.0.1:1/orders")
    with pytest.raises(NotReachable) as caught, database.transaction():
        pass
    assert caught.value.what == "postgresql+psycopg://ann:***@127.0.0.1:1/orders"
    assert "hidden" not in str(caught.value)


def test_the_writer_comes_back_after_its_connection_was_cut(postgres_url: str) -> None:
    database, other = open_database(postgres_url), open_database(postgres_url)
    with database.transaction() as conn:
        conn.exec_driver_sql("CREATE TABLE t (n INTEGER)")
    with other.transaction() as conn:
        mine = "pid <> pg_backend_pid() AND datname = current_database()"
        conn.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}")
    with pytest.raises(NotReachable), database.transaction() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (1)")
    with database.transaction() as conn:
        conn.exec_driver_sql("INSERT INTO t VALUES (2)")
    assert count(database) == 1
    database.close()
    other.close()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nonsense", "is not a URL; write sqlite:///FILE or postgresql://HOST/NAME"),
        ("", "is not a URL; write sqlite:///FILE or postgresql://HOST/NAME"),
        ("mysql://host/db", "names mysql; wfcelery speaks sqlite and postgresql"),
        ("postgresql+psycopg2://host/db", "names postgresql+psycopg2; wfcelery speaks sqlite and postgresql"),
        ("postgresql://host:port/db", "is not a URL; write sqlite:///FILE or postgresql://HOST/NAME"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str, reason: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        open_database(url)
    assert str(caught.value) == f"setting database_url: {reason}"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_means_the_same(postgres_url: str, scheme: str) -> None:
    database = open_database(postgres_url.replace("postgresql+psycopg", scheme))
    with database.reading() as conn:
        assert value(conn, "SELECT 1") == 1
    database.close()
