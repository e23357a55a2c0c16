"""Reading for the executor: a run that was read back goes on as the one in memory would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.book import ANN, CHAIN, DELAY, DIAMOND, GATE, LOOP, NOW, WAIT, Book
from wfcelery.core.messages import Hold, RetryRun, Signal, TimerDue
from wfcelery.core.state import NO_ITEM, Run, RunStatus, StepStatus, StoredSignal
from wfcelery.store import runs, steps

if TYPE_CHECKING:
    from wfcelery.core.values import Json

MISSING = "0" * 26


def read(book: Book, run_id: str, *, full: bool = False) -> Run:
    with book.database.reading() as conn:
        return runs.load(conn, book.flow_of, [run_id, MISSING], full=full)[run_id]


def seen(run: Run, kept: frozenset[str]) -> Run:
    """What a decision can see of a run: results that nobody may read, and counters' twins, are left out."""
    results = {name: result for name, result in run.results.items() if name in kept}
    return run._replace(results=results, loops={}, votes=())


def assert_same(book: Book, run_id: str) -> None:
    kept = book.flow_of(book.runs[run_id].definition_id).kept
    assert seen(read(book, run_id), kept) == seen(book.runs[run_id], kept)


def test_a_run_that_is_not_there_is_left_out(book: Book) -> None:
    with book.database.reading() as conn:
        assert runs.load(conn, book.flow_of, []) == {}
        assert runs.load(conn, book.flow_of, [MISSING]) == {}


def test_a_join_is_read_back_at_every_moment(book: Book) -> None:
    run_id = book.start(DIAMOND)
    assert_same(book, run_id)
    for step in ("right", "left", "merge"):
        book.done(run_id, step, {"from": step})
        assert_same(book, run_id)
    assert book.runs[run_id].status is RunStatus.COMPLETED


def test_only_results_that_may_be_read_are_loaded_unless_asked_for_in_full(book: Book) -> None:
    run_id = book.start(CHAIN)
    book.done(run_id, "a", "nobody reads this")
    assert read(book, run_id).results.get("a") is None
    assert read(book, run_id, full=True).results["a"] == "nobody reads this"
    assert set(read(book, run_id).prepared) == {("b", NO_ITEM)}
    assert set(read(book, run_id, full=True).prepared) == {("a", NO_ITEM), ("b", NO_ITEM)}


def test_the_items_of_a_loop_are_loaded_while_it_is_open(book: Book) -> None:
    run_id = book.start(LOOP, {"items": ["p", "q", "r"]})
    book.done(run_id, "all", 10, item=0)
    loop = read(book, run_id).loops["all"]
    assert (loop.items, loop.out, loop.next, loop.collected) == (["p", "q", "r"], 2, 3, (0, 10, None))
    for item in (2, 1):
        book.done(run_id, "all", 10 + item, item=item)
    ended = read(book, run_id)
    assert (ended.status, ended.loops, set(ended.attempts)) == (RunStatus.COMPLETED, {}, {("all", NO_ITEM)})


def test_a_loop_that_was_read_back_goes_on(book: Book) -> None:
    run_id = book.start(LOOP, {"items": ["p", "q"]})
    book.done(run_id, "all", "P", item=0)
    book.runs[run_id] = read(book, run_id)
    book.done(run_id, "all", "Q", item=1)
    assert (book.runs[run_id].status, book.problems()) == (RunStatus.COMPLETED, [])
    assert read(book, run_id, full=True).results["all"] == ["P", "Q"]


def test_a_timer_that_was_read_back_passes_on_what_came_in(book: Book) -> None:
    document: Json = {
        "start": "a",
        "steps": {"a": {"tool": "echo", "next": "d"}, "d": {"delay": 30, "done": True}},
    }
    run_id = book.start(document)
    book.done(run_id, "a", {"kept": 1})
    book.runs[run_id] = read(book, run_id)
    book.now += 31
    book.tell(run_id, TimerDue(run_id, "d", NO_ITEM, 1))
    assert read(book, run_id, full=True).results["d"] == {"kept": 1}
    assert book.problems() == []


def test_the_votes_of_an_open_gate_are_loaded(book: Book) -> None:
    document: Json = {"start": "ask", "steps": {"ask": {"approval": {"quorum": 2}, "done": True}}}
    run_id = book.start(document)
    book.approve(run_id, "ask")
    assert read(book, run_id).votes == book.runs[run_id].votes
    assert [vote.voter for vote in read(book, run_id).votes] == ["bob"]


def test_signals_that_came_early_are_loaded_in_order_until_they_are_used(book: Book) -> None:
    document: Json = {
        "start": "a",
        "steps": {"a": {"tool": "echo", "next": "w"}, "w": {"wait": {"signal": "go"}, "done": True}},
    }
    run_id = book.start(document)
    for name in ("z", "y", "x"):
        book.tell(run_id, Signal(f"s-{name}", run_id, "go", ANN, {"from": name}))
    assert read(book, run_id).signals == tuple(
        StoredSignal(f"s-{name}", "go", None, {"from": name}) for name in ("z", "y", "x")
    )
    book.runs[run_id] = read(book, run_id)
    book.done(run_id, "a")
    assert [signal.id for signal in read(book, run_id).signals] == ["s-y", "s-x"]
    assert read(book, run_id, full=True).results["w"] == {"from": "z"}


def test_many_runs_are_loaded_together(book: Book) -> None:
    started = [book.start(CHAIN, {"x": n}) for n in range(3)] + [
        book.start(LOOP, {"items": [1]}) for _ in range(2)
    ]
    with book.database.reading() as conn:
        loaded = runs.load(conn, book.flow_of, started)
    assert {run_id: run.input for run_id, run in loaded.items()} == {
        run_id: book.runs[run_id].input for run_id in started
    }


def test_a_failed_run_loaded_in_full_can_be_retried(book: Book) -> None:
    run_id = book.start(CHAIN)
    book.failed(run_id, "a", retry=False)
    book.runs[run_id] = read(book, run_id, full=True)
    book.tell(run_id, RetryRun("again", run_id, ANN))
    book.done(run_id, "a")
    book.done(run_id, "b")
    assert (read(book, run_id).status, book.problems()) == (RunStatus.COMPLETED, [])


def test_a_standing_tells_whether_anything_can_still_change(book: Book) -> None:
    run_id = book.start(CHAIN)
    with book.database.reading() as conn:
        assert runs.standing(conn, run_id) == runs.Standing(RunStatus.RUNNING, 1)
        assert runs.standing(conn, MISSING) is None


# -- steps


def test_the_newest_attempt_at_a_step_is_found(book: Book) -> None:
    run_id = book.start(CHAIN)
    book.failed(run_id, "a")
    with book.database.reading() as conn:
        found = steps.find(conn, run_id, "a", NO_ITEM)
        assert found == book.runs[run_id].attempts["a", NO_ITEM]
        assert (found.attempt, steps.find(conn, run_id, "b", NO_ITEM)) == (2, None)


def test_ready_and_running_steps_are_found_oldest_first(book: Book) -> None:
    first = book.start(CHAIN)
    book.now += 1
    second = book.start(CHAIN)
    with book.database.reading() as conn:
        assert steps.ready(conn, 10) == [book.ref(first, "a"), book.ref(second, "a")]
        assert steps.ready(conn, 1) == [book.ref(first, "a")]
        assert steps.ready(conn, 10, second) == [book.ref(second, "a")]
        assert steps.running(conn, 10) == []
    book.send(second, "a")
    with book.database.reading() as conn:
        assert (steps.ready(conn, 10), steps.running(conn, 10)) == (
            [book.ref(first, "a")],
            [book.ref(second, "a")],
        )


def test_the_ready_steps_of_a_held_run_are_not_sent(book: Book) -> None:
    run_id = book.start(CHAIN)
    book.tell(run_id, Hold("h", run_id, ANN))
    with book.database.reading() as conn:
        assert steps.ready(conn, 10) == []


def test_timers_that_have_run_out_are_found_earliest_first(book: Book) -> None:
    late, early = book.start(GATE), book.start(DELAY)
    with book.database.reading() as conn:
        assert steps.next_due(conn) == round(NOW + 30, 3)
        assert steps.due(conn, NOW, 10) == []
        assert steps.due(conn, round(NOW + 30, 3), 10) == [TimerDue(early, "d", NO_ITEM, 1)]
        both = [TimerDue(early, "d", NO_ITEM, 1), TimerDue(late, "ask", NO_ITEM, 1)]
        assert steps.due(conn, NOW + 60, 10) == both
        assert steps.due(conn, NOW + 60, 1) == both[:1]
        assert (steps.due(conn, NOW + 60, 10, late), steps.next_due(conn, late)) == (
            both[1:],
            round(NOW + 60, 3),
        )


def test_the_timers_of_held_and_ended_runs_do_not_ring(book: Book) -> None:
    run_id = book.start(DELAY)
    book.tell(run_id, Hold("h", run_id, ANN))
    with book.database.reading() as conn:
        assert (steps.due(conn, NOW + 99, 10), steps.next_due(conn)) == ([], None)


@pytest.mark.parametrize("document", [GATE, WAIT])
def test_what_waits_for_somebody_is_found(book: Book, document: Json) -> None:
    run_id = book.start(document)
    with book.database.reading() as conn:
        found = steps.waiting(conn, run_id)
    assert [(each.run_id, each.attempt.status) for each in found] == [(run_id, StepStatus.PENDING)]
