"""One server for many test processes, stopped when the last of them is gone, however it went.

Every user holds a shared `flock` on the file `users`; the guard, a process of its own, starts the server and
then waits for the exclusive lock. The kernel drops the lock of a process that dies, so a killed pytest stops
its servers like one that ends well. By the file `start` users take turns at looking whether there is one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]


class ServiceMissing(Exception):
    """A server that the tests need cannot be had. Never a skip: at home as in CI it fails the test."""


class Running(Protocol):
    """What a launcher gives to the guard."""

    @property
    def url(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to use a server for as long as the lease is held."""

    url: str
    pid: int


@contextlib.contextmanager
def lease(launcher: str, directory: Path, options: Mapping[str, bool] | None = None) -> Iterator[Lease]:
    """Use the server of `launcher` (a module here, with `start(**options)`) that belongs to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory / "start", fcntl.LOCK_EX) as turn, _locked(directory / "users", fcntl.LOCK_SH):
        if not (directory / "server.json").exists():
            _start_guard(launcher, directory, options or {})
        told = json.loads((directory / "server.json").read_text())
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield Lease(told["url"], told["pid"])


def wait_until_stopped(directory: Path) -> None:
    """Return when the server of `directory`, which nobody uses any more, is gone with all that it wrote."""
    while directory.exists():
        # Granted before the guard's turn, and then again, or after its work.
        with _locked(directory / "users", fcntl.LOCK_EX):
            if not (directory / "server.json").exists():
                return


def guard(server: Running, directory: Path, ready: int) -> None:
    """Keep a started server until nobody uses it, then stop it. Runs in the guard's process."""
    told = directory / "server.json"
    try:
        told.write_text(json.dumps({"url": server.url, "pid": server.pid}))
        os.write(ready, b"ready")
        os.close(ready)
        with _locked(directory / "users", fcntl.LOCK_EX):
            told.unlink()
            server.stop()
    finally:  # also when the guard itself is told to end
        told.unlink(missing_ok=True)
        server.stop()


def _start_guard(launcher: str, directory: Path, options: Mapping[str, bool]) -> None:
    """Start the guard and wait until its server answers."""
    log = directory / "guard.log"
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    command = [
        sys.executable,
        "-m",
        "tests.services.guard",
        launcher,
        str(directory),
        str(writer),
        json.dumps(options),
    ]
    out = [
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # Not a Popen: whoever starts the guard ends before it, and must not be asked to wait for it.
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    pid = os.posix_spawn(sys.executable, command, os.environ | {"PYTHONPATH": path}, file_actions=out)
    os.close(writer)
    with open(reader, "rb") as answer:  # noqa: PTH123 - a descriptor, not a path
        if answer.read() != b"ready":
            os.waitpid(pid, 0)
            raise ServiceMissing(f"{launcher} did not start:\n{log.read_text()}")


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield descriptor
    finally:
        os.close(descriptor)


def stop(process: subprocess.Popen[bytes], gently: int, seconds: float = 10) -> None:
    """End a server: ask, wait, insist. Harmless when it has ended."""
    if process.poll() is None:
        process.send_signal(gently)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
