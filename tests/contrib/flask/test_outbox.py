"""A start in the application's transaction: committed with the order, begun exactly once, or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, create_engine, insert, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests.contrib.flask import shop
from tests.contrib.flask.conftest import config_of
from tests.system.system import ROOT, System
from wfcelery.contrib.flask import WfceleryFlask
from wfcelery.contrib.flask.table import OutboxRows
from wfcelery.errors import InvalidInput, InvalidSettings
from wfcelery.workflows.outbox import Relay

RELAY = ("-m", "flask", "--app", "tests.contrib.flask.shop:make_app()", "wfcelery", "relay")


def rows(engine: Engine) -> list[tuple[object, ...]]:
    with engine.connect() as conn:
        return [tuple(row) for row in conn.execute(select(shop.outbox.c.id, shop.outbox.c.error))]


def orders(engine: Engine) -> int:
    with engine.connect() as conn:
        return len(conn.execute(select(shop.orders)).all())


def runs_of(system: System, run: str) -> list[tuple[object, ...]]:
    return system.query(f"SELECT status FROM workflows WHERE id = '{run}'")  # noqa: S608 - an id of ours


def all_runs(system: System) -> int:
    return sum(system.statuses().values())


def environment(system: System, engine: Engine) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WFCELERY_")}
    return inherited | {
        "PYTHONPATH": str(ROOT),
        shop.DATABASE: str(engine.url),
        shop.SYSTEM: system.database_url,
        shop.BROKER: system.broker_url,
    }


def relay_once(system: System, engine: Engine) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *RELAY, "--once"],
        cwd=system.folder,
        env=environment(system, engine),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_is_committed_begins_at_once_and_its_row_is_gone(
    flask_system: System, engine: Engine, flows: WfceleryFlask
) -> None:
    with Session(engine) as db:
        run = shop.order(flows, db)
        assert runs_of(flask_system, run) == []
        db.commit()
    flask_system.until(lambda: runs_of(flask_system, run), "the run")
    flask_system.until(lambda: rows(engine) == [], "the row to go")
    assert orders(engine) == 1


def test_what_is_rolled_back_never_was(flask_system: System, engine: Engine, flows: WfceleryFlask) -> None:
    before = all_runs(flask_system)
    with Session(engine) as db:
        gone = shop.order(flows, db)
        db.rollback()
        with suppress(ZeroDivisionError), db.begin():
            shop.order(flows, db)
            raise ZeroDivisionError
        # What comes after it is not held back by it, and is what the broker hears of first.
        kept = shop.order(flows, db)
        db.commit()
    flask_system.until(lambda: runs_of(flask_system, kept), "the run that was committed")
    assert (runs_of(flask_system, gone), all_runs(flask_system), orders(engine)) == ([], before + 1, 1)


def test_a_savepoint_that_is_released_starts_nothing_before_the_commit(
    flask_system: System, engine: Engine, flows: WfceleryFlask
) -> None:
    before = all_runs(flask_system)
    with Session(engine) as db:
        db.execute(insert(shop.orders).values(item="first"))
        with db.begin_nested():
            kept = shop.order(flows, db)
        with suppress(ZeroDivisionError), db.begin_nested():
            shop.order(flows, db)
            raise ZeroDivisionError
        assert all_runs(flask_system) == before
        db.commit()
    flask_system.until(lambda: runs_of(flask_system, kept), "the run")
    flask_system.until(lambda: rows(engine) == [], "the row to go")
    assert (all_runs(flask_system), orders(engine)) == (before + 1, 2)


def test_a_scoped_session_and_a_bare_connection_carry_a_start_as_well(
    flask_system: System, engine: Engine, flows: WfceleryFlask
) -> None:
    scoped = scoped_session(sessionmaker(engine))
    first = flows.start(shop.FLOW, {"order": "B1"}, by="ann", outbox=scoped)
    scoped.commit()
    scoped.remove()
    with engine.begin() as conn:
        second = flows.start(shop.FLOW, {"order": "B2"}, by="ann", outbox=conn)
    with engine.connect() as conn:
        third = flows.start(shop.FLOW, {"order": "B3"}, by="ann", outbox=conn)
        conn.rollback()
    both = (first.id, second.id)
    flask_system.until(lambda: all(runs_of(flask_system, run) for run in both), "both runs")
    flask_system.until(lambda: rows(engine) == [], "the rows to go")
    assert runs_of(flask_system, third.id) == []


def test_what_the_executor_refuses_stays_in_the_table_with_the_reason(
    flask_system: System, engine: Engine, flows: WfceleryFlask
) -> None:
    with Session(engine) as db:
        run = flows.start("no-such-flow", outbox=db)
        db.commit()
    flask_system.until(lambda: rows(engine)[0][1], "the refusal")
    reason = "no definition no-such-flow; `wfcelery definitions` lists what there is"
    assert rows(engine) == [(run.id, reason)]
    assert OutboxRows(engine, shop.outbox).due(time.time() + 1_000, 10) == []


def test_what_could_never_be_sent_is_refused_before_it_is_written(
    hosted: tuple[Flask, WfceleryFlask], engine: Engine
) -> None:
    _, flows = hosted
    with Session(engine) as db:
        with pytest.raises(InvalidInput, match="flow: must be the name of a flow"):
            flows.start("", outbox=db)
        with pytest.raises(
            InvalidInput, match="outbox: must be an SQLAlchemy Session or Connection, not str"
        ):
            flows.start(shop.FLOW, outbox="db")  # type: ignore[arg-type] # the point
        db.commit()
    assert rows(engine) == []


def test_without_a_table_there_is_no_outbox(flask_system: System, engine: Engine) -> None:
    app = Flask("bare")
    app.config["WFCELERY"] = config_of(flask_system)
    flows = WfceleryFlask(app)
    with Session(engine) as db, pytest.raises(InvalidSettings, match="setting outbox_table: is not set"):
        flows.start(shop.FLOW, outbox=db)


def test_killed_between_commit_and_sending_it_begins_once_when_the_relay_comes(
    flask_system: System, engine: Engine
) -> None:
    before = all_runs(flask_system)
    killed = subprocess.run(
        [sys.executable, "-m", "tests.contrib.flask.shop"],
        cwd=flask_system.folder,
        env=environment(flask_system, engine),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    run = killed.stdout.strip()
    assert (rows(engine), orders(engine)) == ([(run, "")], 1)
    assert all_runs(flask_system) == before
    table = OutboxRows(engine, shop.outbox)
    flask_system.until(lambda: table.due(time.time(), 1), "the relay's turn")
    done = relay_once(flask_system, engine)
    assert (done.returncode, done.stdout) == (0, "started 1, refused 0, waiting 0\n"), done.stderr
    assert (rows(engine), len(runs_of(flask_system, run))) == ([], 1)
    assert all_runs(flask_system) == before + 1


def test_a_row_that_two_relays_send_is_one_run(
    flask_system: System, engine: Engine, flows: WfceleryFlask
) -> None:
    before = all_runs(flask_system)
    with engine.begin() as conn:
        run = flows.start(shop.FLOW, {"order": "C1"}, by="ann", outbox=conn)
    table = OutboxRows(engine, shop.outbox)
    later = time.time() + 60
    for relay in (Relay(flows.workflows.links), Relay(flows.workflows.links)):
        relay.once(table, later)
    flask_system.until(lambda: rows(engine) == [], "the row to go")
    assert (len(runs_of(flask_system, run.id)), all_runs(flask_system)) == (1, before + 1)


def test_committed_while_the_broker_is_down_it_begins_once_when_the_broker_is_back(
    tmp_path: Path, sqlite_url: str
) -> None:
    system = System(tmp_path, sqlite_url)
    engine = create_engine(f"sqlite:///{tmp_path}/shop.sqlite")
    _, flows = shop.create_app(engine, config_of(system))
    try:
        system.executor()
        system.stop_broker()
        with Session(engine) as db:
            run = shop.order(flows, db)
            db.commit()
        assert orders(engine) == 1
        system.until(lambda: rows(engine)[0][1], "the trouble to be written down")
        assert "the broker is out of reach" in str(rows(engine))
        log = tmp_path / "relay.log"
        with log.open("wb") as out:
            relay = subprocess.Popen(
                [sys.executable, *RELAY],
                cwd=tmp_path,
                env=environment(system, engine),
                stdout=out,
                stderr=out,
            )
        try:
            system.until(lambda: "the relay is ready." in log.read_text(), "the relay")
            assert all_runs(system) == 0
            system.start_broker()
            system.until(lambda: rows(engine) == [], "the relay to send and remove the row")
            assert [row[0] for row in system.query("SELECT id FROM workflows")] == [run]
            relay.send_signal(signal.SIGTERM)
            assert relay.wait(20) == 0, log.read_text()
        finally:
            relay.kill()
            relay.wait()
    except BaseException:
        print(system.report())  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        flows.workflows.close()
        engine.dispose()
        system.close()
    system.check()
