"""The outbox over a real executor, broker and tables; the application's own table is a plain list here."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.workflows.system import SECRET, System, eventually
from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.workflows import Workflows
from wfcelery.workflows.outbox import Delivery, Entry, Relay, entry, postponed, renewed

GREET: Json = {
    "name": "greet",
    "start": "say",
    "steps": {"say": {"tool": "echo", "args": {"value": "hello"}, "done": True}},
}


@dataclass(slots=True)
class Table:
    """Where an application keeps its rows."""

    rows: dict[str, Entry] = field(default_factory=dict)

    def add(self, *entries: Entry) -> None:
        self.rows |= {each.id: each for each in entries}

    def due(self, now: float, limit: int) -> Sequence[Entry]:
        waiting = [each for each in self.rows.values() if each.next_at is not None and each.next_at <= now]
        return sorted(waiting, key=lambda each: each.created_at)[:limit]

    def remove(self, ids: Sequence[str]) -> None:
        for each in ids:
            self.rows.pop(each, None)

    def keep(self, entries: Sequence[Entry]) -> None:
        self.rows |= {each.id: each for each in entries if each.id in self.rows}


@pytest.fixture
def table() -> Table:
    return Table()


def test_a_row_is_sent_confirmed_and_removed(workflows: Workflows, table: Table) -> None:
    row = entry(GREET, by="ann", now=time.time())
    table.add(row)
    assert Relay(workflows.links, 10.0).once(table) == Delivery(answered=(row.id,))
    assert table.rows == {}
    assert workflows.wait(row.id, 10.0)["created_by"] == "ann"


def test_a_row_that_is_sent_by_many_at_once_is_one_run(workflows: Workflows, table: Table) -> None:
    rows = [entry(GREET, by="ann", now=time.time()) for _ in range(20)]
    table.add(*rows)
    relays = [
        threading.Thread(target=Relay(workflows.links, 10.0).deliver, args=(rows, time.time()))
        for _ in range(4)
    ]
    for each in relays:
        each.start()
    for each in relays:
        each.join()
    made = Relay(workflows.links, 10.0).once(table)
    assert sorted(made.answered) == sorted(each.id for each in rows)
    assert sorted(str(run["id"]) for run in workflows.list()) == sorted(each.id for each in rows)


def test_what_was_answered_after_all_is_not_sent_again(workflows: Workflows, table: Table) -> None:
    row = entry(GREET, by="ann", now=time.time())
    impatient = Relay(workflows.links, 0.0).deliver([row], time.time())
    workflows.wait(row.id, 10.0)
    table.add(replace(row, tries=1))
    made = Relay(workflows.links, 0.0).once(table)
    assert made.answered == (row.id,)
    assert len(workflows.list()) == 1
    assert impatient.refused == ()


def test_without_an_executor_a_row_waits_longer_each_time_and_begins_once(
    broker_url: str, sqlite_url: str, table: Table
) -> None:
    row = entry(GREET, by="ann", now=1_000.0)
    table.add(row)
    with Workflows(None, sqlite_url, broker_url=broker_url, secret_key=SECRET) as workflows:
        relay = Relay(workflows.links, 0.01)
        for now, due in ((1_000.0, 1_001.0), (1_001.0, 1_003.0), (1_003.0, 1_007.0)):
            [kept] = relay.once(table, now).waiting
            assert kept.next_at == due
            assert "has no tables of wfcelery yet" in kept.error
        assert table.rows[row.id].tries == 3
        with System(broker_url, sqlite_url):
            relay.patience_s = 10.0
            assert relay.once(table, 2_000.0).answered == (row.id,)
            workflows.wait(row.id, 10.0)
            assert len(workflows.list()) == 1


def test_a_broker_that_is_away_keeps_the_row_and_says_why(sqlite_url: str, table: Table) -> None:
    row = entry(GREET, by="ann", now=1_000.0)
    table.add(row)
    with Workflows(None, sqlite_url, broker_url="redis://127.0.0.1:1/0", secret_key=SECRET) as workflows:
        [kept] = Relay(workflows.links).once(table, 1_000.0).waiting
    assert "is out of reach" in kept.error
    assert table.rows == {row.id: kept}


def test_a_refused_row_stays_with_the_reason_and_is_not_sent_again(
    workflows: Workflows, table: Table
) -> None:
    row = entry("nosuch", by="ann", now=time.time())
    table.add(row)
    relay = Relay(workflows.links, 10.0)
    [kept] = relay.once(table).refused
    assert kept.next_at is None
    assert "nosuch" in kept.error
    assert not relay.once(table, time.time() + 1e9)
    assert workflows.list() == []


def test_a_refused_row_gets_another_chance_under_the_same_run(workflows: Workflows, table: Table) -> None:
    row = entry("greet", by="ann", now=time.time())
    table.add(row)
    relay = Relay(workflows.links, 10.0)
    [kept] = relay.once(table).refused
    workflows.define(GREET)
    table.add(renewed(kept, time.time()))
    assert relay.once(table).answered == (row.id,)
    assert [run["id"] for run in workflows.list()] == [row.id]


def test_a_row_that_cannot_be_read_is_refused_and_holds_nobody_up(workflows: Workflows, table: Table) -> None:
    good, bad = entry(GREET, by="ann", now=2.0), replace(entry(GREET, by="ann", now=1.0), request="{}")
    table.add(bad, good)
    made = Relay(workflows.links, 10.0).once(table)
    assert made.answered == (good.id,)
    assert [(each.id, each.error) for each in made.refused] == [
        (bad.id, "kind: None is not a message that travels")
    ]


def test_a_row_of_another_run_is_refused(workflows: Workflows) -> None:
    one, other = entry(GREET, by="ann", now=1.0), entry(GREET, by="ann", now=1.0)
    [kept] = Relay(workflows.links).deliver([replace(one, request=other.request)], 2.0).refused
    assert kept.error == f"request: is not the start of run {one.id}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"flow": ""}, "flow: must be the name of a flow, a document, or the path of one"),
        ({"input": {"x": float("nan")}}, "input.x: is nan, which JSON does not have"),
        ({"input": {"x": object()}}, "input.x: is of type object, which is not JSON"),
        ({"at": dt.datetime(2030, 1, 1)}, "at: has no time zone; write datetime(..., tzinfo=UTC)"),  # noqa: DTZ001
        ({"on_conflict": "what"}, 'on_conflict: must be "return" or "error", not \'what\''),
    ],
)
def test_what_could_never_be_sent_is_refused_before_it_is_written(
    given: dict[str, object], message: str
) -> None:
    wish: dict[str, object] = {"flow": "greet", "by": Principal("ann"), "now": 1.0} | given
    with pytest.raises(InvalidInput) as caught:
        entry(**wish)  # type: ignore[arg-type] # wrong on purpose
    assert str(caught.value) == message


def test_the_longest_pause_is_a_minute() -> None:
    row = replace(entry("greet", by="ann", now=1.0), tries=5_000)
    assert postponed(row, 10.0, "x").next_at == 70.0


def test_a_relay_goes_on_until_it_is_told_to_stop(workflows: Workflows, table: Table) -> None:
    over = threading.Event()
    relay = threading.Thread(target=Relay(workflows.links).run, args=(table, over, 0.01))
    relay.start()
    try:
        row = entry(GREET, by="ann", now=time.time())
        table.add(row)
        eventually(lambda: not table.rows)
        eventually(workflows.list)
    finally:
        over.set()
        relay.join(10)
    assert not relay.is_alive()
