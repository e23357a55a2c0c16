"""What must not go wrong: poison, lost leases, writes behind our back."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import text

from tests.executor.desk import ANN, Desk
from wfcelery.core.effects import KeepSignal
from wfcelery.core.messages import Signal, StepDone
from wfcelery.core.state import StepRef
from wfcelery.core.values import Json
from wfcelery.embedded.engine import new_run_id
from wfcelery.errors import LostLease
from wfcelery.executor.messages import Start, Unreadable
from wfcelery.store import dead_letters, lease, signals
from wfcelery.store.database import open_database

ONE: Json = {"name": "one", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}


def letters(desk: Desk) -> list[str]:
    with desk.database.reading() as conn:
        return [letter.error for letter in dead_letters.listing(conn)]


def test_a_message_that_cannot_be_decided_fails_its_run_and_no_other(desk: Desk) -> None:
    bad, good = desk.start(ONE), desk.start(ONE)
    poison, fine = (StepDone(step.ref, 1) for step in desk.out.sent)
    desk.tell(dataclasses.replace(poison, result={1, 2}), fine)  # type: ignore[arg-type]
    assert desk.run(good)["status"] == "completed"
    assert desk.run(bad)["error"] == {
        "type": "internal",
        "message": "TypeError: Object of type set is not JSON serializable",
    }
    assert letters(desk) == ["TypeError: Object of type set is not JSON serializable"]


def test_what_cannot_be_read_is_set_aside_and_the_rest_goes_on(desk: Desk) -> None:
    request = Start("c1", new_run_id(desk.clock.now()), ONE, {}, ANN)
    desk.tell(Unreadable("\x00garbage", "is not JSON"), request)
    assert letters(desk) == ["is not JSON"]
    assert len(desk.out.sent) == 1


def test_a_report_of_nowhere_is_set_aside(desk: Desk) -> None:
    run = new_run_id(desk.clock.now())
    desk.tell(StepDone(StepRef(run, "a", -1, 1, 1), 1))
    assert letters(desk) == [f"there is no run {run}"]


def test_an_executor_whose_lease_was_taken_writes_nothing(desk: Desk) -> None:
    run = desk.start(ONE)
    rival = open_database(str(desk.database.url.render_as_string(hide_password=False)))
    try:
        assert desk.lease is not None
        desk.lease.release()
        taken = lease.acquire(rival, "rival", ttl_s=30.0, now=desk.clock.now())
        assert taken is not None
        with pytest.raises(LostLease):
            desk.done("a", 1)
        assert desk.states(run) == {"a": "running"}
        taken.release()
    finally:
        rival.close()


def test_rows_that_moved_behind_our_back_are_read_again(desk: Desk) -> None:
    first = desk.start(ONE)
    second = desk.start(ONE)
    with desk.database.transaction() as conn:
        conn.exec_driver_sql(f"UPDATE workflow_steps SET fence = 77 WHERE workflow_id = '{first}'")  # noqa: S608
    stale, fine = (StepDone(step.ref, 1) for step in desk.out.sent)
    desk.tell(stale, fine)
    assert desk.run(second)["status"] == "completed"
    assert desk.states(first) == {"a": "running"}
    with desk.database.transaction() as conn:
        conn.exec_driver_sql(f"UPDATE workflow_steps SET fence = 2 WHERE workflow_id = '{first}'")  # noqa: S608


def test_a_batch_that_fails_half_way_leaves_nothing_and_is_taken_again(desk: Desk) -> None:
    """The transaction fails as a whole; the messages stay in the mailbox until they are written."""
    request = Start("c1", new_run_id(desk.clock.now()), ONE, {}, ANN)
    desk.mailbox.push(request)
    taken = desk.mailbox.take(10)
    assert taken == (request,)
    assert desk.mailbox.take(10) == (request,)
    desk.tell()
    assert len(desk.out.sent) == 1


def test_a_version_that_no_table_holds_is_not_found(desk: Desk) -> None:
    request = Start("c1", new_run_id(desk.clock.now()), "one@99999999999999999999", {}, ANN)
    answer = desk.ask(request)
    assert (answer.ok, answer.code) == (False, "not-found")
    assert letters(desk) == []


def test_a_request_that_cannot_be_written_is_answered(desk: Desk) -> None:
    run = desk.start(
        {
            "name": "late",
            "start": "a",
            "steps": {"a": {"tool": "echo", "next": "w"}, "w": {"wait": {"signal": "go"}, "done": True}},
        }
    )
    with desk.database.transaction() as conn:
        signals.keep(conn, [KeepSignal("c1", run, "go", None, None)], now=desk.clock.now())
        signals.use(conn, ["c1"], now=desk.clock.now())
    answer = desk.ask(Signal("c1", run, "go", ANN))
    assert (answer.ok, answer.code) == (False, "internal")
    assert answer.reason.startswith("it could not be written: ")
    assert len(letters(desk)) == 1


def damage(desk: Desk, run: str) -> None:
    """Add an event of nobody's, so that no other event of the run can be written."""
    with desk.database.transaction() as conn:
        conn.execute(
            text(
                "INSERT INTO workflow_events"
                " (workflow_id, seq, at, type, item, attempt, actor, data, transition)"
                " SELECT workflow_id, max(seq) + 1, max(at), 'planted', -1, 0, '', '{}', false"
                " FROM workflow_events WHERE workflow_id = :run GROUP BY workflow_id"
            ),
            {"run": run},
        )


def repair(desk: Desk) -> None:
    with desk.database.transaction() as conn:
        conn.exec_driver_sql("DELETE FROM workflow_events WHERE type = 'planted'")


def test_the_timers_of_a_run_that_cannot_be_written_hold_up_no_other(desk: Desk) -> None:
    flow: Json = {"name": "later", "start": "a", "steps": {"a": {"delay": 10, "done": True}}}
    bad, good = desk.start(flow), desk.start(flow)
    damage(desk, bad)
    desk.clock.advance(10)
    for _ in range(5):
        desk.tell()
    assert desk.run(good)["status"] == "completed"
    assert len(letters(desk)) == 2
    assert desk.executor.next_due > desk.clock.now()
    repair(desk)
    desk.restart()
    desk.tell()
    assert desk.run(bad)["status"] == "completed"


def test_a_step_that_cannot_be_marked_as_handed_over_spoils_nothing_else(desk: Desk) -> None:
    good = desk.start(ONE)
    fine = StepDone(desk.take("a").ref, 1)
    bad = new_run_id(desk.clock.now())
    desk.mailbox.push(Start("c1", bad, ONE, {}, ANN))
    desk.executor.run_once()
    damage(desk, bad)
    desk.clock.advance(2)
    desk.tell(fine)
    assert desk.run(good)["status"] == "completed"
    assert not desk.executor.has_marks
    repair(desk)


def test_a_limit_that_is_lowered_does_not_stop_runs_of_flows_accepted_before(desk: Desk) -> None:
    steps: Json = {"a": {"tool": "echo", "next": "b"}, "b": {"done": True}}
    run = desk.start({"name": "two", "start": "a", "steps": steps})
    desk.limits = dataclasses.replace(desk.limits, steps=1, edges=0, flow_bytes=10, depth=1)
    desk.restart()
    desk.done("a", 1)
    assert desk.run(run)["status"] == "completed"


def test_a_report_and_a_timer_of_a_run_that_nobody_remembers_are_decided_in_one_batch(desk: Desk) -> None:
    steps: Json = {
        "a": {"parallel": ["nap", "work"], "join": "end"},
        "nap": {"delay": 60},
        "work": {"tool": "echo"},
        "end": {"done": True},
    }
    run = desk.start({"name": "both", "start": "a", "steps": steps})
    desk.restart()
    batches: list[list[str]] = []
    desk.executor._observer = lambda changes: batches.append(
        [event.type for change in changes for event in change.events]
    )
    desk.clock.advance(60)
    desk.done("work", 1)
    assert desk.run(run)["status"] == "completed"
    assert [events.count("step_done") for events in batches] == [3]
