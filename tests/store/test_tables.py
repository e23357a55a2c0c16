"""The small tables: definitions, commands, signals, votes, dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.book import CHAIN, GATE, NOW, WAIT, Book
from wfcelery.core.effects import CastVote, KeepSignal
from wfcelery.core.state import StoredSignal, Vote
from wfcelery.errors import StaleState, StoreError
from wfcelery.store import commands, dead_letters, definitions, signals, votes
from wfcelery.store.commands import Command

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.store import Connection, Database

pytestmark = pytest.mark.corrupts  # rows are planted by hand


def add(conn: Connection, name: str, document: str, **more: object) -> definitions.Definition:
    return definitions.add(
        conn,
        f"id-of-{name}-{document}",
        name=name,
        document=document,
        created_by="ann",
        now=NOW,
        **more,  # type: ignore[arg-type]
    )


def test_versions_are_numbered_per_name(database: Database) -> None:
    with database.transaction() as conn:
        made = [add(conn, name, document) for name, document in (("x", "1"), ("y", "1"), ("x", "2"))]
        assert [(one.name, one.version) for one in made] == [("x", 1), ("y", 1), ("x", 2)]
        assert definitions.find(conn, "x") == made[2]
        assert definitions.find(conn, "x", 1) == made[0]
        assert definitions.find(conn, "x", 3) is None
        assert definitions.versions(conn, "x") == [made[2], made[0]]
        assert definitions.listing(conn) == [made[2], made[1]]


def test_the_same_definition_again_is_the_same_row(database: Database) -> None:
    with database.transaction() as conn:
        first = add(conn, "x", "1", pins={"sub": "id1", "sub@2": "id2"}, depth=2)
        assert add(conn, "x", "1", pins={}) == first
        assert definitions.get(conn, first.id) == first
        assert (first.pins, first.depth) == ({"sub": "id1", "sub@2": "id2"}, 2)


def test_a_deleted_definition_is_found_only_by_those_who_point_at_it(database: Database) -> None:
    with database.transaction() as conn:
        first, second = add(conn, "x", "1"), add(conn, "x", "2")
        assert definitions.delete(conn, "x", 2, now=NOW) == 1
        assert definitions.delete(conn, "x", 2, now=NOW) == 0
        assert definitions.find(conn, "x") == first
        assert definitions.find(conn, "x", 2) is None
        kept = definitions.get(conn, second.id)
        assert kept is not None
        assert kept.deleted_at == NOW
        assert add(conn, "x", "2") == second
        assert definitions.delete(conn, "x", now=NOW) == 2
        assert definitions.listing(conn) == []
        assert add(conn, "x", "3").version == 3


def test_answers_are_kept_by_the_id_of_their_request(database: Database) -> None:
    done = Command("c1", "Start", "r1", ok=True, at=NOW, data={"run_id": "r1", "created": True})
    refused = Command("c2", "Cancel", None, ok=False, at=NOW + 1, code="refused", reason="no such run")
    with database.transaction() as conn:
        commands.put_many(conn, [done, refused])
        assert commands.get_many(conn, ["c2", "c1", "c3"]) == {"c1": done, "c2": refused}
        assert commands.get_many(conn, []) == {}
        assert commands.forget(conn, NOW + 0.5) == 1
        assert commands.get_many(conn, ["c1", "c2"]) == {"c2": refused}


def test_a_request_is_answered_once(database: Database) -> None:
    answer = Command("c1", "Start", "r1", ok=True, at=NOW)
    with database.transaction() as conn:
        commands.put_many(conn, [answer])
    with pytest.raises(StoreError, match="refused a statement"), database.transaction() as conn:
        commands.put_many(conn, [answer])


def test_signals_to_a_run_keep_their_order_until_they_are_used(database: Database) -> None:
    with database.transaction() as conn:
        signals.keep(conn, [KeepSignal(name, "r1", "go", None, name) for name in ("b", "a", "c")], now=NOW)
        signals.keep(conn, [KeepSignal("d", "r2", "go", "k", None)], now=NOW)
        signals.use(conn, ["a"], now=NOW)
        assert signals.of_runs(conn, ["r1", "r2", "r3"]) == {
            "r1": (StoredSignal("b", "go", None, "b"), StoredSignal("c", "go", None, "c")),
            "r2": (StoredSignal("d", "go", "k", None),),
        }
        assert signals.of_runs(conn, []) == {}


def test_a_signal_is_used_once(database: Database) -> None:
    with database.transaction() as conn:
        signals.keep(conn, [KeepSignal("a", "r1", "go", None, None)], now=NOW)
        signals.use(conn, ["a"], now=NOW)
    with pytest.raises(StaleState) as caught, database.transaction() as conn:
        signals.use(conn, ["a"], now=NOW)
    assert caught.value.args == ("signals", 1, 0)


def test_a_signal_by_key_waits_for_its_taker_until_it_expires(database: Database) -> None:
    with database.transaction() as conn:
        for name in ("s1", "s2"):
            kept = StoredSignal(name, "paid", "order-1", {"from": name})
            signals.keep_for_key(conn, kept, now=NOW, expires_at=NOW + 60)
        assert signals.find(conn, "paid", "order-1", now=NOW) == StoredSignal(
            "s1", "paid", "order-1", {"from": "s1"}
        )
        assert signals.find(conn, "paid", "order-2", now=NOW) is None
        signals.use(conn, ["s1"], now=NOW)
        found = signals.find(conn, "paid", "order-1", now=NOW)
        assert found is not None
        assert found.id == "s2"
        assert signals.find(conn, "paid", "order-1", now=NOW + 60) is None
        assert (signals.expire(conn, NOW + 59), signals.expire(conn, NOW + 60)) == (0, 2)


def test_the_runs_that_wait_for_a_signal_with_a_key_are_found(book: Book) -> None:
    document: Json = {
        "start": "w",
        "steps": {"w": {"wait": {"signal": "paid", "key": "{{input.order}}"}, "done": True}},
    }
    waiting = book.start(document, {"order": "o1"})
    book.start(document, {"order": "o2"})
    book.start(WAIT)
    with book.database.reading() as conn:
        assert signals.waiting(conn, "paid", "o1") == [waiting]
        assert signals.waiting(conn, "paid", "o3") == []


def test_a_person_votes_once_at_an_attempt(book: Book) -> None:
    run_id = book.start(GATE)
    cast = CastVote(run_id, "ask", 1, "bob", approve=True, comment="fine", form={"amount": 3})
    with book.database.transaction() as conn:
        votes.put_many(conn, [cast], now=NOW)
        expected = Vote("ask", 1, "bob", approve=True, comment="fine", form={"amount": 3})
        assert votes.of_runs(conn, [run_id]) == {run_id: (expected,)}
        assert votes.of_runs(conn, []) == {}
    with pytest.raises(StoreError, match="refused a statement"), book.database.transaction() as conn:
        votes.put_many(conn, [cast], now=NOW)


def test_dead_letters_are_listed_newest_first_and_hold_any_text(database: Database) -> None:
    with database.transaction() as conn:
        dead_letters.put(conn, at=NOW, run_id="r1", message="{}", error="KeyError: 'x'")
        dead_letters.put(conn, at=NOW + 1, run_id=None, message="a\x00b\ud800", error="unreadable")
        listed = dead_letters.listing(conn)
        assert [(one.at, one.run_id, one.message, one.error) for one in listed] == [
            (NOW + 1, None, "a\\x00b\\ud800", "unreadable"),
            (NOW, "r1", "{}", "KeyError: 'x'"),
        ]
        assert dead_letters.listing(conn, 1) == listed[:1]
        assert dead_letters.forget(conn, NOW + 1) == 1


def test_a_run_cannot_lose_its_definition(book: Book) -> None:
    book.start(CHAIN)
    with pytest.raises(StoreError, match="refused a statement"), book.database.transaction() as conn:
        conn.exec_driver_sql("DELETE FROM workflow_definitions")
