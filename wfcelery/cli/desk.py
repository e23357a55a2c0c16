"""Where requests go: through the broker to the executor, or, without a broker, to one in this process.

In this process a request is written and nothing else happens: no tool is called, no timer fires. What has
become ready waits in the tables for `wfcelery run --resume` or for an executor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from wfcelery.cli.options import see_modules_here
from wfcelery.core.limits import DEFAULT
from wfcelery.embedded.mailbox import LocalMailbox
from wfcelery.errors import Refused
from wfcelery.executor.answers import new_run_id, raise_refusal
from wfcelery.executor.clock import SystemClock
from wfcelery.executor.executor import Executor
from wfcelery.rights.loading import load_authority
from wfcelery.store import commands, lease
from wfcelery.store.database import open_database
from wfcelery.tools import Registry
from wfcelery.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from wfcelery.core.effects import Dispatch
    from wfcelery.core.state import StepRef
    from wfcelery.executor.messages import Asked
    from wfcelery.rights import Authority
    from wfcelery.settings import Settings
    from wfcelery.store.commands import Command
    from wfcelery.store.database import Database
    from wfcelery.workflows.links import Links

LEASE_S: Final = 15.0
CONFIRMED_WITHIN_S: Final = 4.0
BUSY: Final = (
    "an executor is at work on this database; set WFCELERY_BROKER_URL, so that this command can reach it"
)


class Desk(Protocol):
    """Takes requests. `is_remote`: an executor goes on with the run by itself."""

    is_remote: bool

    def ask(self, request: Asked) -> Command:
        """Give the answer once it is in the database; a refusal is raised, and so is no answer in time."""


@contextmanager
def open_desk(settings: Settings, tools: Registry | None = None) -> Iterator[Desk]:
    """Give the desk to which the settings lead; beside a live executor and without a broker, `Refused`."""
    if settings.broker_url is not None:
        with closing(links_of(settings)) as links:
            yield RemoteDesk(links)
        return
    with closing(open_database(settings.database_url)) as database:
        held = lease.acquire(database, f"command {os.getpid()}", ttl_s=LEASE_S, now=time.time())
        if held is None:
            raise Refused(_who_is_busy(database))
        try:
            see_modules_here()
            yield LocalDesk(database, held, tools or Registry.with_builtins(), load_authority(settings))
        finally:
            held.release()


def _who_is_busy(database: Database) -> str:
    with database.reading() as conn:
        holder = lease.holder(conn) or ""
    if holder.startswith("in-process "):
        process = holder.removeprefix("in-process ")
        return f"a flow is run here on this database, by process {process}; wait for its end, or stop it"
    return BUSY


def links_of(settings: Settings) -> Links:
    """Give the ways to the system that the settings name; nothing is opened yet."""
    from wfcelery.workflows.links import Links
    from wfcelery.workflows.place import Place

    return Links(
        Place(
            database_url=settings.database_url,
            broker_url=settings.broker_url,
            secret_key=settings.secret_key,
            key_prefix=settings.key_prefix,
        )
    )


class RemoteDesk:
    """Sends requests to the executor and reads its answers."""

    is_remote = True

    def __init__(self, links: Links) -> None:
        self._links = links

    def ask(self, request: Asked) -> Command:
        """Send a request, and give its answer."""
        from wfcelery.workflows import asking

        [answer] = asking.ask(self._links, [request], CONFIRMED_WITHIN_S)
        raise_refusal(answer)
        return answer


class LocalDesk:
    """Writes requests itself, as long as it holds the lease."""

    is_remote = False

    def __init__(
        self, database: Database, held: lease.Lease, tools: Registry, authority: Authority | None = None
    ) -> None:
        self._authority = authority
        self._database = database
        self._lease = held
        self._tools = Catalogue(tools)

    def ask(self, request: Asked) -> Command:
        """Write a request, and give its answer."""
        mailbox = LocalMailbox()
        mailbox.push(request)
        # One executor for each request: what it would mark as handed over later was handed to nobody. It is
        # bound to a run that does not exist, for it is not its business to fire timers.
        executor = Executor(
            self._database,
            self._lease,
            mailbox,
            _Nobody(),
            SystemClock(),
            tools=self._tools,
            limits=DEFAULT,
            only=new_run_id(time.time()),
            hands_over=False,
            authority=self._authority,
        )
        executor.run_once()
        with self._database.reading() as conn:
            answer = commands.get_many(conn, [request.command_id])[request.command_id]
        raise_refusal(answer)
        return answer


class _Nobody:
    """Hands steps to nobody: they stay `ready` in the tables."""

    def send(self, steps: Sequence[Dispatch]) -> None:
        """Leave them where they are."""

    def stop(self, refs: Sequence[StepRef]) -> None:
        """There is nobody to ask."""
