"""The outbox as a table of the application, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, MetaData, StaticPool, create_engine
from sqlalchemy.orm import Session

from tests.contrib.flask import shop
from wfcelery.contrib.flask.table import OutboxRows, outbox_table, put
from wfcelery.errors import NotReachable
from wfcelery.workflows.outbox import Entry, entry


@pytest.fixture
def rows(database_url: str) -> Iterator[OutboxRows]:
    metadata = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_name)s"})
    engine = create_engine(database_url)
    table = outbox_table(metadata, "starts")
    metadata.create_all(engine)
    yield OutboxRows(engine, table)
    engine.dispose()


def put_all(rows: OutboxRows, *entries: Entry) -> None:
    with rows.engine.begin() as conn:
        for each in entries:
            put(conn, rows.table, each)


def made(now: float) -> Entry:
    return entry("order", {"word": "ž\x1f"}, by="ann", now=now, key="A7")


def test_rows_are_due_in_their_order_and_refused_ones_never(rows: OutboxRows) -> None:
    late, early, future = made(20.0), made(10.0), made(99.0)
    refused = replace(made(5.0), next_at=None, error="no such flow")
    put_all(rows, late, early, future, refused)
    assert rows.due(50.0, 10) == [early, late]
    assert rows.due(50.0, 1) == [early]
    assert rows.committed([refused.id, "unknown"]) == [refused]
    assert rows.waiting() == 3


def test_what_came_of_rows_is_kept_and_what_is_gone_is_no_trouble(rows: OutboxRows) -> None:
    first, gone = made(1.0), made(2.0)
    put_all(rows, first)
    changed = replace(first, tries=3, next_at=40.5, error="the broker is away")
    rows.keep([changed, gone])
    assert rows.due(41.0, 10) == [changed]
    rows.remove([first.id, gone.id])
    rows.remove([])
    assert rows.committed([first.id, gone.id]) == []


def test_a_database_that_does_not_answer_is_out_of_reach_and_no_value_is_told(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/empty.sqlite")
    rows = OutboxRows(engine, shop.outbox)
    with pytest.raises(NotReachable) as caught:
        rows.committed(["a secret id"])
    engine.dispose()
    assert str(caught.value) == "the outbox wfcelery_outbox is out of reach: no such table: wfcelery_outbox"


def test_where_all_share_one_connection_the_row_is_left_to_the_relay() -> None:
    engine: Engine = create_engine("sqlite://", poolclass=StaticPool)
    config = {"broker_url": "redis+socket:///nowhere", "database_url": "sqlite:///nowhere.db"}
    _, flows = shop.create_app(engine, config | {"secret_key": shop.SECRET})
    with Session(engine) as db:
        run = shop.order(flows, db)
        db.commit()
    assert [each.id for each in OutboxRows(engine, shop.outbox).committed([run])] == [run]
    engine.dispose()
