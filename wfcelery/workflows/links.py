"""The two ways to the system: the broker to push requests, the tables to read. Opened when first used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wfcelery.broker.client import connect
from wfcelery.broker.names import Names
from wfcelery.broker.sender import Sender
from wfcelery.errors import InvalidSettings, NotReachable
from wfcelery.executor.messages import Asked
from wfcelery.store import migrations
from wfcelery.store.database import Database, open_database
from wfcelery.wire.seal import Seal
from wfcelery.workflows.place import Place

if TYPE_CHECKING:
    import redis

    from wfcelery.store import Connection


class NoTables(NotReachable):
    """The database answers, and no executor has made its tables yet."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "it has no tables of wfcelery yet; the executor makes them when it starts")
        self.args = (what,)


@dataclass(slots=True)
class _Tables:
    database: Database
    known: bool = False


@dataclass(frozen=True, slots=True)
class _Post:
    client: redis.Redis
    sender: Sender
    seal: Seal


@dataclass(slots=True)
class Links:
    """Threads may share it. A fork opens its own, and leaves what its parent has open alone."""

    place: Place
    _tables: dict[int, _Tables] = field(default_factory=dict)
    _posts: dict[int, _Post] = field(default_factory=dict)

    def push(self, requests: Sequence[Asked]) -> None:
        """Seal requests and put them into the executor's mailbox; what cannot travel is refused before."""
        post = self._post()
        post.sender.push([post.seal.write(request) for request in requests])

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read one consistent state of the tables. Raises `NotReachable`, and `NoTables` of its kind."""
        tables = self._opened()
        database = tables.database
        if database.path is not None and not tables.known and not database.path.exists():
            raise NoTables(f"database {database.path}")  # and do not make an empty file of that name
        with database.reading() as conn:
            if not tables.known:
                if migrations.version(conn) is None:
                    raise NoTables(f"database {database.path or database.name}")
                migrations.require_known(conn)
                tables.known = True
            yield conn

    def close(self) -> None:
        """Let go of what this process has open; it is opened again when it is needed."""
        tables = self._tables.pop(os.getpid(), None)
        if tables is not None:
            tables.database.close()
        post = self._posts.pop(os.getpid(), None)
        if post is not None:
            post.client.close()

    def _opened(self) -> _Tables:
        found = self._tables.get(os.getpid())
        if found is not None:
            return found
        made = _Tables(open_database(self.place.database()))
        if made.database.in_memory:
            reason = "is in memory, where no executor can see it; name a file or a server"
            raise InvalidSettings("database_url", reason)
        # No lock: one that another thread holds while the process forks would never be free in the child.
        kept = self._tables.setdefault(os.getpid(), made)
        if kept is not made:
            made.database.close()
        return kept

    def _post(self) -> _Post:
        found = self._posts.get(os.getpid())
        if found is not None:
            return found
        seal = Seal(self.place.ring())
        broker = self.place.broker()
        client = connect(broker.url, broker.options)
        made = _Post(client, Sender(client, Names(broker.prefix)), seal)
        kept = self._posts.setdefault(os.getpid(), made)
        if kept is not made:
            client.close()
        return kept
