"""The proof finds nothing after normal histories, and each planted corruption by its code."""

# ruff: noqa: S608 -- the statements are the test's own

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.store.book import ANN, BOB, CHAIN, DELAY, DIAMOND, GATE, LOOP, WAIT, Book
from wfcelery.core.messages import (
    Cancel,
    Decide,
    Hold,
    Resume,
    RetryRun,
    Signal,
    StepDone,
    StepLost,
    StepPostponed,
    TimerDue,
)
from wfcelery.core.state import NO_ITEM, RunStatus
from wfcelery.errors import NotFound
from wfcelery.store import check, runs

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow
    from wfcelery.core.values import Json
    from wfcelery.store import Database

pytestmark = pytest.mark.corrupts  # rows are planted by hand

DENIABLE: Json = {
    "start": "ask",
    "steps": {
        "ask": {"approval": {"on_deny": "sorry", "timeout_s": 5, "on_timeout": "approve"}, "next": "act"},
        "act": {"tool": "echo", "done": True},
        "sorry": {"tool": "echo", "done": True},
    },
}
BRANCH: Json = {
    "start": "look",
    "steps": {
        "look": {"tool": "echo", "branch": [{"if": "result == 1", "then": "one"}, {"else": "other"}]},
        "one": {"tool": "echo", "next": "end"},
        "other": {"tool": "echo", "next": "end"},
        "end": {"done": True},
    },
}
FIRST: Json = {
    "start": "fork",
    "steps": {
        "fork": {"parallel": ["fast", "slow"]},
        "fast": {"tool": "echo", "next": "won"},
        "slow": {"tool": "echo", "next": "won"},
        "won": {"tool": "echo", "join_mode": "any", "done": True},
    },
}


def test_a_completed_chain_is_sound(book: Book) -> None:
    run_id = book.start(CHAIN)
    book.done(run_id, "a", {"any": ["thing", None, 1.5]})
    book.done(run_id, "b")
    assert (book.runs[run_id].status, book.problems()) == (RunStatus.COMPLETED, [])


def test_a_run_is_sound_at_every_moment_of_a_join(book: Book) -> None:
    run_id = book.start(DIAMOND)
    assert book.problems() == []
    for step in ("left", "right", "merge"):
        book.done(run_id, step, step)
        assert book.problems() == []


def test_retries_losses_and_late_reports_are_sound(book: Book) -> None:
    run_id = book.start(CHAIN)
    old = book.ref(run_id, "a")
    book.failed(run_id, "a")
    book.tell(run_id, StepDone(old, "late"))
    book.now += 40
    book.tell(run_id, TimerDue(run_id, "a", NO_ITEM, 2))
    book.send(run_id, "a")
    book.tell(run_id, StepLost(book.ref(run_id, "a")))
    book.tell(run_id, StepPostponed(book.ref(run_id, "a"), "w2", book.now))
    assert book.problems() == []
    assert book.runs[run_id].attempts["a", NO_ITEM].attempt == 3


def test_gates_decided_in_every_way_are_sound(book: Book) -> None:
    approved, denied, late, cancelled = (book.start(DENIABLE) for _ in range(4))
    book.approve(approved, "ask")
    book.tell(denied, Decide("d", denied, "ask", approve=False, by=BOB, comment="no"))
    book.tell(cancelled, Cancel("c", cancelled, ANN, "changed my mind"))
    book.now += 6
    book.tell(late, TimerDue(late, "ask", NO_ITEM, 1))
    for run_id in (approved, late):
        book.done(run_id, "act")
    book.done(denied, "sorry")
    refused = book.start(GATE)
    book.tell(refused, Decide("d2", refused, "ask", approve=False, by=BOB))
    assert book.problems() == []
    assert {book.runs[run_id].status for run_id in (approved, denied, late)} == {RunStatus.COMPLETED}


def test_branches_losers_loops_waits_and_timers_are_sound(book: Book) -> None:
    branch, first, loop = book.start(BRANCH), book.start(FIRST), book.start(LOOP, {"items": [1, 2, 3]})
    wait, delay = book.start(WAIT), book.start(DELAY)
    book.done(branch, "look", 2)
    book.done(branch, "other")
    book.send(first, "slow")
    book.done(first, "fast")
    book.done(first, "won")
    book.send(loop, "all", item=0)
    book.failed(loop, "all", item=1, retry=False)
    book.done(loop, "all", item=0)
    book.tell(wait, Hold("h", wait, ANN), Resume("r", wait, ANN), Signal("s", wait, "go", BOB, [1]))
    book.now += 31
    book.tell(delay, TimerDue(delay, "d", NO_ITEM, 1))
    assert book.problems() == []


def test_a_failed_run_that_is_retried_is_sound(book: Book) -> None:
    run_id = book.start(DIAMOND)
    book.done(run_id, "left")
    book.failed(run_id, "right", retry=False)
    assert book.problems() == []
    with book.database.reading() as conn:
        book.runs = runs.load(conn, book.flow_of, [run_id], full=True)
    book.tell(run_id, RetryRun("again", run_id, ANN))
    assert book.problems() == []
    book.done(run_id, "right")
    book.done(run_id, "merge")
    assert (book.runs[run_id].status, book.problems()) == (RunStatus.COMPLETED, [])


# -- planted corruptions


def plant(database: Database, *statements: str) -> None:
    """Do what the tables would refuse: without triggers and references."""
    if database.path is not None:
        raw = sqlite3.connect(database.path)
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(statement)
        raw.commit()
        raw.close()
    else:
        with database.transaction() as conn:
            conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
            for statement in statements:
                conn.exec_driver_sql(statement)


@pytest.fixture
def history(book: Book) -> Book:
    """A chain that failed once and completed, a gate that was passed, a join that waits, a failed run."""
    chain = book.start(CHAIN, key="k")
    book.failed(chain, "a")
    book.now += 40
    book.tell(chain, TimerDue(chain, "a", NO_ITEM, 2))
    book.done(chain, "a", 1)
    book.done(chain, "b", 2)
    gate = book.start(GATE, name="gated")
    book.approve(gate, "ask")
    join = book.start(DIAMOND, name="diamond")
    book.done(join, "left")
    failed = book.start(DIAMOND, name="diamond")
    book.failed(failed, "left", retry=False)
    assert book.problems() == []
    return book


CHAIN_RUN = "(SELECT id FROM workflows WHERE name = 'flow')"
GATE_RUN = "(SELECT id FROM workflows WHERE name = 'gated')"
OF_CHAIN = f"workflow_id = {CHAIN_RUN}"
OF_GATE = f"workflow_id = {GATE_RUN}"
JOIN = "name = 'merge' AND status = 'pending'"
COPIED = "at, type, step, item, attempt, actor, data, transition"


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        pytest.param(
            f"DELETE FROM workflow_events WHERE {OF_CHAIN} AND type = 'run_started'",
            {"event-gap", "event-count", "run-differs", "payload-changed"},
            id="the first event is gone",
        ),
        pytest.param(
            f"DELETE FROM workflow_events WHERE {OF_CHAIN} AND type = 'run_completed'",
            {"event-count", "run-differs"},
            id="the last event is gone",
        ),
        pytest.param(
            f"UPDATE workflows SET seq = seq + 1 WHERE id = {CHAIN_RUN}", {"event-count"}, id="seq runs ahead"
        ),
        pytest.param(
            f"UPDATE workflow_steps SET worker = 'eve' WHERE {OF_CHAIN} AND name = 'b'",
            {"row-differs"},
            id="a control column was changed",
        ),
        pytest.param(
            f"UPDATE workflow_steps SET status = 'skipped' WHERE {OF_CHAIN} AND name = 'b'",
            {"row-differs", "completed-without-done"},
            id="the done step is not done",
        ),
        pytest.param(
            f"UPDATE workflow_steps SET status = 'running' WHERE {OF_CHAIN} AND name = 'b'",
            {"row-differs", "completed-without-done", "open-after-end"},
            id="a step runs in a completed run",
        ),
        pytest.param(
            "UPDATE workflow_steps SET status = 'ready' WHERE name = 'right' AND status = 'cancelled'",
            {"row-differs", "open-after-end"},
            id="a step is ready in a failed run",
        ),
        pytest.param(
            f"UPDATE workflow_steps SET result = '3' WHERE {OF_CHAIN} AND name = 'b'",
            {"payload-changed"},
            id="a result was changed",
        ),
        pytest.param(
            f"UPDATE workflow_steps SET args = NULL WHERE {OF_CHAIN} AND name = 'b'",
            {"payload-changed"},
            id="arguments are gone",
        ),
        pytest.param(
            f"UPDATE workflows SET input = '{{}}' WHERE id = {CHAIN_RUN}",
            {"payload-changed"},
            id="the input was changed",
        ),
        pytest.param(
            f"UPDATE workflows SET output = NULL WHERE id = {CHAIN_RUN}",
            {"payload-changed"},
            id="the output is gone",
        ),
        pytest.param(
            f"UPDATE workflows SET status = 'running' WHERE id = {CHAIN_RUN}",
            {"run-differs"},
            id="a run came alive",
        ),
        pytest.param(
            f"DELETE FROM workflow_steps WHERE {OF_CHAIN} AND name = 'a' AND attempt = 1",
            {"attempt-gap", "event-without-row"},
            id="an attempt is gone",
        ),
        pytest.param(
            f"UPDATE workflow_steps SET status = 'pending' WHERE {OF_CHAIN} AND attempt = 1 AND name = 'a'",
            {"attempt-open", "row-differs", "open-after-end"},
            id="an attempt is open, and another follows",
        ),
        pytest.param(
            f"UPDATE workflow_steps SET missing = 2 WHERE {JOIN}", {"join-miscounts"}, id="a join miscounts"
        ),
        pytest.param(
            f"UPDATE workflow_steps SET live = 0 WHERE {JOIN}", {"join-miscounts"}, id="a token is gone"
        ),
        pytest.param(
            f"UPDATE workflow_steps SET took = 'dead' WHERE {OF_CHAIN} AND name = 'a' AND attempt = 2",
            {"row-differs", "begun-without-way"},
            id="a step began without a live way in",
        ),
        pytest.param("DELETE FROM votes", {"gate-without-vote"}, id="a gate was passed without a vote"),
        pytest.param(
            "UPDATE votes SET approve = (1 = 0)", {"gate-without-vote"}, id="a gate was passed by a denial"
        ),
        pytest.param(
            f"UPDATE workflow_steps SET id = 'x', attempt = 3 WHERE {OF_GATE} AND name = 'act'",
            {"attempt-gap", "row-without-event", "event-without-row"},
            id="a row has no history",
        ),
        pytest.param(
            "UPDATE workflow_definitions SET document = '{}' WHERE name = 'flow'",
            {"definition-changed"},
            id="a definition was changed",
        ),
        pytest.param(
            f"UPDATE workflow_steps SET workflow_id = '0' WHERE {OF_CHAIN} AND name = 'b'",
            {"orphan-step", "event-without-row", "completed-without-done"},
            id="a step belongs to no run",
        ),
        pytest.param(
            f"""INSERT INTO workflow_events SELECT 'z', 1, {COPIED} FROM workflow_events
            WHERE {OF_CHAIN} AND seq = 1""",
            {"orphan-event"},
            id="an event belongs to no run",
        ),
        pytest.param(
            "UPDATE votes SET workflow_id = 'z'",
            {"orphan-vote", "gate-without-vote"},
            id="a vote belongs to no run",
        ),
    ],
)
def test_a_planted_corruption_is_found(history: Book, statement: str, codes: set[str]) -> None:
    plant(history.database, statement)
    assert {problem.code for problem in history.problems()} == codes


def test_a_transition_that_happened_twice_is_found(history: Book) -> None:
    last = f"(SELECT seq + 1 FROM workflows WHERE id = {GATE_RUN})"
    plant(
        history.database,
        "DROP INDEX uq_workflow_events_transition",
        f"""INSERT INTO workflow_events SELECT workflow_id, {last}, {COPIED} FROM workflow_events
        WHERE {OF_GATE} AND type = 'step_ready'""",
        f"UPDATE workflows SET seq = seq + 1 WHERE id = {GATE_RUN}",
    )
    assert [problem.code for problem in history.problems()] == ["event-twice"]


def test_an_attempt_that_began_too_early_is_found(history: Book) -> None:
    plant(
        history.database,
        f"UPDATE workflow_events SET seq = 1000 WHERE {OF_CHAIN} AND type = 'step_failed' AND attempt = 1",
        f"UPDATE workflow_events SET seq = seq - 1 WHERE {OF_CHAIN} AND seq BETWEEN 3 AND 4",
    )
    assert "attempt-overlap" in {problem.code for problem in history.problems()}


def test_a_key_that_two_live_runs_have_is_found(history: Book) -> None:
    for _ in range(2):
        history.start(CHAIN)
    plant(
        history.database,
        "DROP INDEX uq_workflows_live_key",
        "UPDATE workflows SET key_space = 's', key = 'k' WHERE status = 'running'",
    )
    assert {problem.code for problem in history.problems()} == {"key-taken-twice"}


def test_a_run_whose_definition_cannot_be_used_is_named(history: Book) -> None:
    def missing(definition_id: str) -> Flow:
        raise NotFound("definition", definition_id)

    with history.database.reading() as conn:
        found = check.check(conn, missing)
    assert [problem.code for problem in found] == ["no-definition"] * 4
    run = min(history.runs.values(), key=lambda each: each.id)
    said = f"its definition cannot be used: no definition {run.definition_id}"
    assert str(found[0]) == f"{run.id}: no-definition: {said}"


def test_a_problem_says_what_is_and_what_should_be(history: Book) -> None:
    plant(history.database, f"UPDATE workflow_steps SET worker = 'eve' WHERE {OF_CHAIN} AND name = 'b'")
    chain = next(run.id for run in history.runs.values() if run.name == "flow")
    said = 'b attempt 1: worker is "eve", by its events it is "w1"'
    assert history.problems() == [check.Problem(chain, "row-differs", said)]
