"""The folder of a system, `.wfcelery`: its lock, and the note by which commands find the system."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from wfcelery.errors import NotReachable, Refused
from wfcelery.settings import SYSTEM_FILE, from_file

LOCK: Final = "up.lock"
_HEAD: Final = (
    "# Written by `wfcelery up`, so that the commands in this folder find the system.\n"
    "# The key signs what they say: keep it to yourself.\n"
)
_LEFTOVERS_S: Final = 10.0
_LOOK_S: Final = 0.02


@contextlib.contextmanager
def locked(here: Path) -> Iterator[int]:
    """Hold the system of this folder; give the descriptor of the lock. Raises `Refused` if another does."""
    path = _system_folder(here) / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def secret_of(here: Path) -> str:
    """Give the secret of this folder's system; it is made on the first call and kept for ever."""
    noted = from_file(here, SYSTEM_FILE)
    if "secret_key" not in noted:
        noted["secret_key"] = secrets.token_hex(32)
        _note(here, noted)
    return noted["secret_key"]


def note(here: Path, **found: str | None) -> None:
    """Note where the system is; what was noted before under other names stays, and None takes a name away."""
    noted = from_file(here, SYSTEM_FILE) | found
    _note(here, {name: value for name, value in noted.items() if value is not None})


def _note(here: Path, noted: Mapping[str, str]) -> None:
    path = _system_folder(here).parent / SYSTEM_FILE
    # JSON's way to write a text is also TOML's.
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in noted.items())
    # A new file in the place of the old: nobody reads half of it, and nobody but us can read it.
    descriptor, new = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("".join((_HEAD, *lines)))
            file.flush()
            os.fsync(file.fileno())
        Path(new).replace(path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise


def _system_folder(here: Path) -> Path:
    folder = (here / SYSTEM_FILE).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotReachable(f"the folder {folder}", error.strerror or str(error)) from error
    return folder


def _lock(descriptor: int) -> None:
    """Take the lock. One whose owner is gone is in the hands of its guard, who is about to let it go."""
    deadline = time.monotonic() + _LEFTOVERS_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode().strip()
            if _lives(owner) or time.monotonic() > deadline:
                said = f"a system is already running in this folder (process {owner or 'unknown'})"
                raise Refused(f"{said}; stop it first, or start this one in another folder") from None
            time.sleep(_LOOK_S)
        else:
            return


def _lives(pid: str) -> bool:
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
