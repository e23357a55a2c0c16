"""`wfcelery up`, as a real system."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.cli.calling import ROOT, WFCELERY, Said, call, environment, process
from wfcelery.settings import load
from wfcelery.shell.supervisor import folder

SLOW = """
name: slow
start: first
steps:
  first: {tool: echo, args: {value: 1}, next: nap}
  nap: {delay: 3, next: last}
  last: {tool: echo, args: {value: awake}, done: true}
"""


@dataclass(frozen=True)
class System:
    """A system that is up, with what it has said on stdout."""

    here: Path
    process: subprocess.Popen[str]
    banner: str

    @property
    def log(self) -> str:
        """Give what it has said on stderr so far."""
        return (self.here / "up.log").read_text()

    def call(self, *args: str) -> Said:
        """Call a command in another process, in the same folder."""
        return process(*args, cwd=self.here, WFCELERY_USER="bo")

    def worker(self) -> int:
        """Give the process id of the newest worker."""
        deadline = time.monotonic() + 60
        while not (found := re.findall(r"worker-(\d+)@\S+ ready", self.log)):
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)
        return int(found[-1])

    def stop(self, number: signal.Signals) -> int:
        """Ask it to stop; give its exit code."""
        self.process.send_signal(number)
        return self.process.wait(90)


@contextmanager
def system(here: Path, *options: str, **more: str) -> Iterator[System]:
    """A system in a folder, without the console unless its port is given; everything is gone in the end."""
    web = () if "--web-port" in options else ("--no-web",)
    with (here / "up.log").open("w") as errors:
        running = subprocess.Popen(
            [WFCELERY, "up", "--concurrency", "2", *web, *options],
            cwd=here,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with running:
        try:
            banner = ""
            while "wfcelery start" not in banner:
                line = running.stdout.readline() if running.stdout else ""
                assert line, (here / "up.log").read_text()
                banner += line
            yield System(here, running, banner)
        finally:
            running.kill()
            running.wait()
    with folder.locked(here):
        pass


def serves(address: str) -> bool:
    """Wait for a page."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - of our own
                return answer.status == 200 and b"<h1>" in answer.read()
        except urllib.error.URLError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_system_does_work_survives_a_dead_worker_and_stops(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with system(tmp_path, "--web-port", str(port)) as up:
        console = f"http://127.0.0.1:{port}"
        assert up.banner == (
            "wfcelery is up; Ctrl-C stops it.\n"
            "  database  sqlite:///.wfcelery/wfcelery.db\n"
            f"  broker    redis+socket://{tmp_path}/.wfcelery/valkey.sock\n"
            "  worker    2 at a time (prefork), from wfcelery.steps\n"
            f"  console   {console}  (nobody signs in: for this machine only)\n"
            "Start a flow from another terminal, in this folder:\n"
            "  wfcelery start FLOW.yaml -i key=value\n"
        )
        hello = (
            "start",
            f"{ROOT}/flows/hello.yaml",
            "-i",
            "name=Ann",
            "--wait",
            "--timeout",
            "60",
            "-o",
            "json",
        )
        first = up.call(*hello)
        assert (first.code, json.loads(first.out)["output"]) == (0, {"greeting": "Hello, Ann!"}), first.err
        assert load({}, {}, tmp_path).base_url == console
        assert serves(f"{console}/runs/{json.loads(first.out)['id']}")
        again = process("up", cwd=tmp_path)
        assert again == Said(
            4,
            "",
            f"wfcelery: a system is already running in this folder (process {up.process.pid}); "
            "stop it first, or start this one in another folder\n",
        )
        os.kill(up.worker(), signal.SIGKILL)
        assert up.call(*hello).code == 0
        assert "up       | worker was killed by SIGKILL; it is started again in 0.5 s\n" in up.log
        assert up.stop(signal.SIGTERM) == 0
    after = up.call("start", f"{ROOT}/flows/hello.yaml", "-i", "name=Bo")
    assert (after.code, after.err.partition(":")[2].partition(":")[0]) == (5, " the broker is out of reach")
    assert up.call("check").code == 0


def test_the_next_start_goes_on_where_the_last_was(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SLOW)
    with system(tmp_path, "--quiet") as up:
        run = up.call("start", "slow.yaml", "-o", "ids").out.strip()
        secret = load({}, {}, tmp_path).secret_key
        assert up.stop(signal.SIGINT) == 130
        assert up.log == "up       | stopping (Ctrl-C again kills)\n"
    with system(tmp_path) as up:
        ended = up.call("watch", run, "--timeout", "60", "-o", "json")
        assert (ended.code, json.loads(ended.out)["output"]) == (0, "awake"), ended.err
        assert load({}, {}, tmp_path).secret_key == secret


def test_a_broker_and_a_database_that_are_there_are_used(tmp_path: Path, valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url) as client:
        client.flushall()
        with system(
            tmp_path, "--database", "my.db", "--pool", "threads", WFCELERY_BROKER_URL=valkey_url
        ) as up:
            assert f"  database  sqlite:///my.db\n  broker    {valkey_url}\n" in up.banner
            done = up.call(
                "start", f"{ROOT}/flows/parallel_join.yaml", "-i", "city=Oslo", "--wait", "--timeout", "60"
            )
            assert (done.code, json.loads(done.out)["city"]) == (0, "Oslo"), done.err
            assert up.stop(signal.SIGTERM) == 0
            assert [line for line in up.log.splitlines() if line.startswith("valkey")] == []
        client.flushall()
    assert not (tmp_path / ".wfcelery" / "wfcelery.db").exists()


def test_a_port_for_the_console_that_is_taken_is_told_before_anything_starts(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = call(capsys, "up", "--web-port", str(port))
    assert said.code == 5
    assert f"port {port} cannot be used" in said.err
    assert "--no-web" in said.err


def test_a_port_that_is_taken_is_told_before_anything_starts(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = call(capsys, "up", "--flower", "--flower-port", str(port))
    assert said == Said(
        5,
        "",
        f"wfcelery: Flower is out of reach: port {port} cannot be used (Address already in use); "
        "choose another with --flower-port\n",
    )
    assert list(here.iterdir()) == []
