"""Where servers live and as whom they run."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOCKET_PATH_LIMIT = 100  # of 104 to 108 bytes, the file's name included
ROOM_FOR_DATABASES = 2 * 2**30
LONGEST_NAME = len("/wfc-xxxxxxxx/.s.PGSQL.5432.lock")


@dataclass(frozen=True, slots=True)
class User:
    """Whom a server runs as; `None` for ourselves."""

    uid: int
    gid: int


def unprivileged() -> User | None:
    """`nobody` when we are root, for servers that refuse to be root; else ourselves."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return User(65534, 65534)
    return User(nobody.pw_uid, nobody.pw_gid)


def new_home(user: User | None, *, in_memory: bool = False) -> Path:
    """A new folder that `user` owns and can reach, with a path short enough for a socket in it."""
    for parent in (*_memory(wanted=in_memory), Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):  # noqa: S108 - mkdtemp makes it ours
        short = len(os.fsencode(parent)) + LONGEST_NAME <= SOCKET_PATH_LIMIT
        if short and os.access(parent, os.W_OK) and (user is None or others_reach(parent)):
            home = Path(tempfile.mkdtemp(prefix="wfc-", dir=parent))
            if user:
                os.chown(home, user.uid, user.gid)
            return home
    raise FileNotFoundError("no short temporary folder that everybody can reach: set TMPDIR to one")


def _memory(*, wanted: bool) -> list[Path]:
    """A temporary folder in memory: there a new database takes a tenth of the time."""
    memory = Path("/dev/shm")  # noqa: S108 - same
    return (
        [memory] if wanted and memory.is_dir() and shutil.disk_usage(memory).free > ROOM_FOR_DATABASES else []
    )


def others_reach(path: Path) -> bool:
    """Whether a stranger may walk down to `path` and read there."""
    resolved = path.resolve()
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (resolved, *resolved.parents))


def remove(home: Path) -> None:
    """Remove a server's folder; a file that vanishes meanwhile is no trouble."""
    shutil.rmtree(home, ignore_errors=True)
