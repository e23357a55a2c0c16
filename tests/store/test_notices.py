"""Notices: written once, due when their moment comes, ended for good."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from wfcelery.store import notices
from wfcelery.store.notices import Notice, NoticeStatus

if TYPE_CHECKING:
    from wfcelery.store import Database

NOW = 1_700_000_000.123
ONE = Notice("n1", "r1", "ask", 1, "gate_opened", "bob", NOW, NOW + 60, {"shown": {"x": [1, "é"]}})
TWO = Notice("n2", "r1", None, 0, "run_failed", "group:ops", NOW + 1, NOW + 30)


def test_a_notice_is_read_as_it_was_written(database: Database) -> None:
    with database.transaction() as conn:
        notices.put_many(conn, [ONE, TWO])
    with database.reading() as conn:
        assert notices.get(conn, "n1") == ONE
        assert notices.get(conn, "n3") is None
        assert notices.of_run(conn, "r1") == [TWO, ONE]
        assert notices.of_run(conn, "r2") == []
        assert notices.untold(conn, NOW + 100) == []  # There is no gate that waits.


def test_a_notice_that_is_written_again_stays_as_it_is(database: Database) -> None:
    with database.transaction() as conn:
        notices.put_many(conn, [ONE])
        notices.put_many(conn, [replace(ONE, recipient="eve"), TWO])
        assert notices.get_many(conn, ["n1", "n2", "n3"]) == {"n1": ONE, "n2": TWO}


def test_notices_are_due_when_their_moment_has_come_and_only_while_they_wait(database: Database) -> None:
    with database.transaction() as conn:
        notices.put_many(conn, [ONE, TWO])
        assert notices.due(conn, NOW, 10) == []
        assert notices.due(conn, NOW + 30, 10) == [TWO]
        assert notices.due(conn, NOW + 60, 10) == [TWO, ONE]
        assert notices.due(conn, NOW + 60, 1) == [TWO]
        notices.save(conn, replace(TWO, next_at=NOW + 90))
        assert notices.due(conn, NOW + 60, 10) == [ONE]
        notices.save(conn, replace(ONE, status=NoticeStatus.SENT, sent_at=NOW + 61))
        assert notices.due(conn, NOW + 61, 10) == []
        assert notices.any_waits(conn)
        notices.save(conn, replace(TWO, status=NoticeStatus.FAILED, error="no such address"))
        assert not notices.any_waits(conn)


def test_what_has_ended_never_changes_and_is_forgotten_in_time(database: Database) -> None:
    sent = replace(ONE, status=NoticeStatus.SENT, tries=1, sent_at=NOW + 2, reached=("json://there",))
    with database.transaction() as conn:
        notices.put_many(conn, [ONE, TWO])
        notices.save(conn, sent)
        notices.save(conn, replace(ONE, status=NoticeStatus.FAILED, error="late"))
        assert notices.get(conn, "n1") == sent
        assert notices.forget(conn, NOW) == 0
        assert notices.forget(conn, NOW + 100) == 1
        assert notices.of_run(conn, "r1") == [TWO]
