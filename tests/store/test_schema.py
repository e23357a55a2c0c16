"""The tables: how they come to be, what they refuse, and that sweeps find their rows by index."""

# ruff: noqa: S608 -- what raises is the transaction around the statements, which the test itself writes

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, Table, insert, select

from tests.store.book import CHAIN, Book, value
from wfcelery.errors import StoreError, UnknownSchema
from wfcelery.store import gates, migrations, notices, open_database, runs, signals, steps
from wfcelery.store.schema import VERSION_TABLE, metadata
from wfcelery.store.times import Time, iso

if TYPE_CHECKING:
    from wfcelery.store import Connection, Database

pytestmark = pytest.mark.corrupts  # rows are planted by hand


def shape(conn: Connection) -> list[object]:
    """Everything that the database itself says of our tables."""
    if conn.dialect.name == "sqlite":
        query = "SELECT name, coalesce(sql, '') FROM sqlite_master ORDER BY name"
        return [(name, clauses(sql)) for name, sql in conn.exec_driver_sql(query)]
    queries = (
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
        """SELECT conrelid::regclass::text || conname || pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid <> 0 AND connamespace = 'public'::regnamespace""",
        "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
        """SELECT table_name || column_name || data_type || is_nullable || coalesce(collation_name, '')
        FROM information_schema.columns WHERE table_schema = 'public'""",
        "SELECT prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    )
    return [sorted(conn.exec_driver_sql(query).scalars()) for query in queries]


def clauses(sql: str) -> list[str]:
    """The parts of a statement; columns and constraints may stand in any order."""
    whole = " ".join(sql.replace('"', "").split()).removesuffix(")").rstrip()
    return sorted(whole.split(", "))


def test_an_empty_database_gets_its_tables_and_a_second_upgrade_changes_nothing(database_url: str) -> None:
    database = open_database(database_url)
    with database.transaction() as conn:
        migrations.upgrade(conn)
        first = shape(conn)
        assert migrations.version(conn) == migrations.HEAD
    with database.transaction() as conn:
        migrations.upgrade(conn)
        assert shape(conn) == first
    database.close()


def test_the_revisions_lead_to_the_same_tables_as_the_short_way(database_url: str) -> None:
    database = open_database(database_url)
    with database.transaction() as conn:
        migrations.create(conn)
        at_once = shape(conn)
        for table in reversed(metadata.sorted_tables):
            table.drop(conn)
        conn.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")
        if database.kind == "postgresql":
            for name in ("steps_end_once", "events_are_appended", "definitions_are_fixed"):
                conn.exec_driver_sql(f"DROP FUNCTION workflow_{name}")
        migrations.migrate(conn)
        assert shape(conn) == at_once
    database.close()


def test_the_first_tables_keep_their_rows_when_they_become_todays(database_url: str) -> None:
    database = open_database(database_url)
    with database.transaction() as conn:
        migrations.migrate(conn, "0001")
        columns = "(id, kind, run_id, ok, code, reason, data, at)"
        values = "('c1', 'Start', 'r1', TRUE, '', '', '{}', CURRENT_TIMESTAMP)"
        conn.exec_driver_sql(f"INSERT INTO commands {columns} VALUES {values}")
        assert migrations.version(conn) == "0001"
    with database.reading() as conn, pytest.raises(UnknownSchema):
        migrations.require_known(conn)
    with database.transaction() as conn:
        migrations.upgrade(conn)
        assert migrations.version(conn) == migrations.HEAD
        kept = conn.exec_driver_sql("SELECT id, kind, run_id, actor FROM commands").all()
        assert [tuple(row) for row in kept] == [("c1", "Start", "r1", "")]
        assert notices.due(conn, 9e9, 10) == []
    with database.reading() as conn:
        context = MigrationContext.configure(
            conn, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, metadata) == []
    database.close()


def test_the_tables_are_what_the_code_says(database: Database) -> None:
    with database.reading() as conn:
        context = MigrationContext.configure(
            conn, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, metadata) == []


def test_the_newest_revision_is_the_one_the_code_knows() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations.__path__[0]))
    assert ScriptDirectory.from_config(config).get_current_head() == migrations.HEAD


def test_upgrading_leaves_logging_as_it_was(sqlite_url: str) -> None:
    before = (logging.getLogger().level, list(logging.getLogger().handlers))
    database = open_database(sqlite_url)
    with database.transaction() as conn:
        migrations.migrate(conn)
    database.close()
    assert (logging.getLogger().level, list(logging.getLogger().handlers)) == before


def test_two_that_upgrade_at_once_take_turns(database_url: str) -> None:
    failures: list[BaseException] = []
    together = threading.Barrier(4)

    def upgrade() -> None:
        database = open_database(database_url)
        together.wait()
        try:
            with database.transaction() as conn:
                migrations.upgrade(conn)
        except BaseException as failure:  # noqa: BLE001 -- carried into the test's own thread
            failures.append(failure)
        finally:
            database.close()

    threads = [threading.Thread(target=upgrade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_reader_refuses_tables_that_are_not_there(database_url: str) -> None:
    database = open_database(database_url)
    with pytest.raises(UnknownSchema) as caught, database.reading() as conn:
        migrations.require_known(conn)
    database.close()
    known = f"the tables are at version none, this wfcelery knows {migrations.HEAD}"
    assert str(caught.value) == f"{known}; upgrade whichever is older"


def test_everybody_refuses_tables_of_a_version_from_the_future(database: Database) -> None:
    with database.transaction() as conn:
        conn.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    for use in (migrations.require_known, migrations.upgrade):
        with pytest.raises(UnknownSchema) as caught, database.transaction() as conn:
            use(conn)
        assert caught.value.args == ("9999", migrations.HEAD)


# -- what the tables refuse


def test_a_step_that_has_ended_never_changes(book: Book) -> None:
    run_id = book.start(CHAIN)
    book.done(run_id, "a", 1)
    for change in ("status = 'ready'", "result = '2'", "error = 'x'", "completed_at = NULL"):
        with pytest.raises(StoreError, match="an attempt that has ended never changes"):
            execute(book.database, f"UPDATE workflow_steps SET {change} WHERE name = 'a'")
    execute(book.database, "UPDATE workflow_steps SET took = 'else' WHERE name = 'a'")


def test_history_is_never_rewritten(book: Book) -> None:
    book.start(CHAIN)
    with pytest.raises(StoreError, match="history is never rewritten"):
        execute(book.database, "UPDATE workflow_events SET actor = 'eve'")


def test_a_definition_never_changes_but_may_be_deleted(book: Book) -> None:
    book.define(CHAIN)
    with pytest.raises(StoreError, match="a definition never changes; define a new version"):
        execute(book.database, "UPDATE workflow_definitions SET document = '{}'")
    execute(book.database, "UPDATE workflow_definitions SET deleted_at = NULL")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE workflows SET status = 'sleeping'",
        "UPDATE workflow_steps SET status = 'sleeping'",
        "UPDATE workflow_steps SET waits_for = 'godot'",
        "UPDATE workflow_steps SET attempt = 0",
        "DELETE FROM workflows",
        "DELETE FROM workflow_definitions",
        """INSERT INTO workflow_events
        SELECT workflow_id, 99, at, type, step, item, attempt, actor, data, transition FROM workflow_events
        WHERE transition""",
    ],
)
def test_the_tables_refuse_what_cannot_be(book: Book, statement: str) -> None:
    book.start(CHAIN)
    with pytest.raises(StoreError, match="refused a statement"):
        execute(book.database, statement)
    assert book.problems() == []


def execute(database: Database, statement: str) -> None:
    with database.transaction() as conn:
        conn.exec_driver_sql(statement)


# -- times


@given(st.lists(st.floats(0, 253_402_000_000).map(lambda moment: round(moment, 3)), min_size=1, max_size=50))
def test_a_moment_in_milliseconds_survives_sqlite_exactly(moments: list[float]) -> None:
    assert kept("sqlite://", moments) == moments


def test_a_moment_in_milliseconds_survives_postgresql_exactly(postgres_url: str) -> None:
    moments = [round(start + n * 0.001, 3) for start in (0, 1.7e9, 2.5e11) for n in range(1000)]
    assert kept(postgres_url, moments) == moments


def kept(url: str, moments: list[float]) -> list[float]:
    table = Table("moments", MetaData(), Column("n", Time, nullable=False))
    database = open_database(url)
    with database.transaction() as conn:
        table.create(conn)
        conn.execute(insert(table), [{"n": moment} for moment in moments])
        found = list(conn.execute(select(table.c.n)).scalars())
        table.drop(conn)
    database.close()
    return found


def test_moments_are_shown_in_utc() -> None:
    assert (iso(1_700_000_000.123), iso(0.0), iso(None)) == (
        "2023-11-14T22:13:20.123Z",
        "1970-01-01T00:00:00.000Z",
        None,
    )


# -- plans


def test_the_sweeps_find_their_rows_by_partial_indexes(database: Database) -> None:
    expected = {
        "ix_workflow_steps_ready": steps._ready,
        "ix_workflow_steps_running": steps._running,
        "ix_workflow_steps_due": steps._due,
        "ix_workflow_steps_due ": steps._next_due,
        "uq_workflows_live_key": runs._live_key,
        "ix_workflow_steps_signal": signals._waiting,
        "ix_signals_run": signals._of_runs,
        "ix_signals_key": signals._by_key,
        "ix_notices_waiting": notices._due,
        "ix_workflow_steps_approval": gates._waiting,
        "ix_workflow_steps_approval ": gates._waiting_before,
    }
    values: dict[str, object] = {
        "now": 1.0,
        "most": 10,
        "root": None,
        "key_space": "s",
        "key": "k",
        "shown": "x",
        "name": "n",
        "ready_at": 1.0,
        "id": "x",
    }
    values["ids"] = ["r1"]
    with database.reading() as conn:
        if database.kind == "postgresql":
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        for index, query in expected.items():
            named = query.compile().params
            asked = query.params(**{name: given for name, given in values.items() if name in named})
            found = plan(conn, asked)
            assert index.strip() in found, found


def plan(conn: Connection, query: object) -> str:
    words = "EXPLAIN" if conn.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    compiled = query.compile(conn, compile_kwargs={"literal_binds": True})  # type: ignore[attr-defined]
    return "\n".join(
        str(tuple(row)) for row in conn.exec_driver_sql(f"{words} {compiled}".replace("%", "%%"))
    )


def test_what_a_due_sweep_reads_does_not_grow_with_history(book: Book) -> None:
    for _ in range(5):
        run_id = book.start(CHAIN)
        book.done(run_id, "a")
        book.done(run_id, "b")
    with book.database.reading() as conn:
        assert value(conn, "SELECT count(*) FROM workflow_steps WHERE status = 'done'") == 10
        assert (steps.due(conn, 9e9, 10), steps.ready(conn, 10), steps.running(conn, 10)) == ([], [], [])
        assert steps.next_due(conn) is None
