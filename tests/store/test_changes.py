"""Writing a batch: what was decided is what is read, and nothing happens twice."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.store.book import ANN, CHAIN, DIAMOND, GATE, LOOP, Book, value
from wfcelery.core import decide as core
from wfcelery.core.messages import Cancel, StepDone, StepSent
from wfcelery.core.state import RunStatus, StepStatus
from wfcelery.errors import Refused, StaleState
from wfcelery.store import changes, migrations, open_database, runs
from wfcelery.store.changes import RunChange

if TYPE_CHECKING:
    from wfcelery.core.values import Json


def test_a_run_is_read_as_it_was_decided(book: Book) -> None:
    run_id = book.start(CHAIN, {"x": "ä"}, key="k1")
    with book.database.reading() as conn:
        assert runs.load(conn, book.flow_of, [run_id]) == book.runs


NASTY = [
    '"',
    "\\",
    '\\"',
    "NULL",
    "null",
    "{}",
    "{a,b}",
    ",",
    " ",
    "",
    "ä\u2028",
    "'",
    "%s",
    "$1",
    "\n\t",
    '","',
    "?",
]


@pytest.mark.parametrize("how_many", [1, 2, 40])
def test_any_text_is_read_as_it_was_written(book: Book, how_many: int) -> None:
    definition = book.define(CHAIN)
    book.write([book.begun(definition, {"x": NASTY}, key=f"{n} {NASTY}") for n in range(how_many)])
    made = []
    for run_id, run in book.runs.items():
        done = StepDone(book.ref(run_id, "a"), NASTY, worker=NASTY[2])
        made.append(changes.first(run, core.decide(book.flow_of(definition), run, done, book.now)))
    book.write(made)
    assert book.problems() == []
    with book.database.reading() as conn:
        loaded = runs.load(conn, book.flow_of, list(book.runs), full=True)
    assert {run_id: run.key for run_id, run in loaded.items()} == {
        run_id: run.key for run_id, run in book.runs.items()
    }
    assert [run.results["a"] for run in loaded.values()] == [NASTY] * how_many


def test_several_decisions_of_one_batch_become_one_change(book: Book) -> None:
    run_id = book.start(CHAIN)
    before = book.runs[run_id]
    ref = book.ref(run_id, "a")
    flow = book.flows[before.definition_id]
    sent = core.decide(flow, before, StepSent(ref), book.now)
    change = changes.first(before, sent)
    done = core.decide(flow, sent.run, StepDone(ref, {"y": 2}), book.now)
    assert changes.merge(change, done) is change
    assert (change.before, change.after) == (before, done.run)
    assert [each.seq for each in change.events] == [each.seq for each in (*sent.events, *done.events)]
    write = change.writes["a", -1, 1]
    assert (write.before, write.after.status) == (before.attempts["a", -1], StepStatus.DONE)
    assert (write.args, write.result) == (None, '{"y":2}')
    book.write([change])
    assert book.problems() == []


def test_a_row_that_is_made_and_ended_in_one_batch_is_inserted_once(book: Book) -> None:
    change = book.begun(book.define(CHAIN))
    run, flow = change.after, book.flows[change.after.definition_id]
    book.runs[run.id] = run
    changes.merge(change, core.decide(flow, run, StepDone(book.ref(run.id, "a"), 7), book.now))
    book.write([change])
    with book.database.reading() as conn:
        query = "SELECT args || ' ' || result || ' ' || status FROM workflow_steps WHERE name = 'a'"
        assert value(conn, query) == '{"x":1} 7 done'
    assert book.problems() == []


def test_a_change_written_twice_is_refused_and_changes_nothing(book: Book) -> None:
    run_id = book.start(CHAIN)
    before = book.runs[run_id]
    book.done(run_id, "a")
    again = core.decide(book.flows[before.definition_id], before, StepSent(book.ref(run_id, "a")), book.now)
    with pytest.raises(StaleState) as caught:
        book.write([changes.first(before, again)])
    assert str(caught.value) == "workflows: 0 of 1 rows were as they were read; read them again"
    assert book.problems() == []


def test_a_step_that_has_moved_is_not_written_over(book: Book) -> None:
    run_id = book.start(CHAIN)
    run = book.runs[run_id]
    stale = run.attempts["a", -1]._replace(fence=99)
    write = core.Write(stale, stale._replace(status=StepStatus.RUNNING))
    with pytest.raises(StaleState) as caught:
        book.write([RunChange(run, run._replace(seq=run.seq + 1), {("a", -1, 1): write})])
    assert caught.value.args == ("workflow_steps", 1, 0)
    assert book.problems() == []


def test_one_stale_run_undoes_the_whole_batch(book: Book) -> None:
    first, second = book.start(CHAIN), book.start(CHAIN)
    made = []
    for run_id in (first, second):
        run = book.runs[run_id]
        decision = core.decide(
            book.flow_of(run.definition_id), run, StepSent(book.ref(run_id, "a")), book.now
        )
        made.append(changes.first(run._replace(seq=run.seq - (run_id == second)), decision))
    with pytest.raises(StaleState) as caught:
        book.write(made)
    assert caught.value.args == ("workflows", 2, 1)
    with book.database.reading() as conn:
        assert value(conn, "SELECT count(*) FROM workflow_steps WHERE status = 'running'") == 0


def test_a_run_that_exists_is_not_begun_again(book: Book) -> None:
    change = book.begun(book.define(CHAIN))
    book.write([change])
    with pytest.raises(StaleState) as caught:
        book.write([change])
    assert caught.value.args == ("workflows", 1, 0)


def test_an_event_that_exists_is_not_written_again(book: Book) -> None:
    run_id = book.start(CHAIN)
    run = book.runs[run_id]
    first = core.decide(
        book.flow_of(run.definition_id), run, StepSent(book.ref(run_id, "a")), book.now
    ).events[0]
    with pytest.raises(StaleState) as caught:
        book.write([RunChange(run, run._replace(updated_at=1.0), events=[first._replace(seq=1)])])
    assert caught.value.args == ("workflow_events", 1, 0)


def test_a_key_has_one_live_run(book: Book) -> None:
    definition = book.define(CHAIN)
    book.write([book.begun(definition, key="order-1")])
    with pytest.raises(Refused) as caught:
        book.write([book.begun(definition, key="order-1")])
    assert str(caught.value) == "another live run has this key"
    with book.database.reading() as conn:
        assert value(conn, "SELECT count(*) FROM workflows") == 1


def test_a_key_is_free_again_in_the_batch_in_which_its_run_ends(book: Book) -> None:
    first = book.start(CHAIN, key="order-1")
    run = book.runs[first]
    ended = core.decide(book.flow_of(run.definition_id), run, Cancel("c1", first, ANN), book.now)
    second = book.begun(run.definition_id, key="order-1")
    book.write([second, changes.first(run, ended)])
    with book.database.reading() as conn:
        assert runs.live_key(conn, "flow:flow", "order-1") == second.after.id
        assert runs.live_key(conn, "flow:flow", "order-2") is None
        assert runs.live(conn) == [second.after.id]
    assert book.runs[first].status is RunStatus.CANCELLED


@pytest.mark.parametrize("document", [CHAIN, DIAMOND, GATE, LOOP])
def test_a_batch_of_many_runs_takes_as_many_statements_as_one(document: Json) -> None:
    book = Book(open_database("sqlite://"))
    with book.database.transaction() as conn:
        migrations.upgrade(conn)
    definition = book.define(document)
    said = [statements_for(book, definition, how_many) for how_many in (1, 20)]
    book.database.close()
    begun = ["INSERT INTO workflows", "INSERT INTO workflow_steps", "INSERT INTO workflow_events"]
    assert said == [begun, begun]


def statements_for(book: Book, definition: str, how_many: int) -> list[str]:
    """The statements that SQLite prepares anew or again for a batch, without the values in them."""
    made = [book.begun(definition, {"x": 1, "items": [1]}) for _ in range(how_many)]
    said: list[str] = []
    with book.database.transaction() as conn:
        driver = conn.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_trace_callback(said.append)
        changes.write(conn, made)
        driver.set_trace_callback(None)
    return list(dict.fromkeys(" ".join(each.split()[:3]) for each in said if not each.startswith("--")))
