"""What every tool works with: the system, the rights, the keys; and what is theirs to see."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wfcelery.core import ids
from wfcelery.core.limits import DEFAULT
from wfcelery.errors import InvalidFlow, InvalidInput, NotFound
from wfcelery.executor.definitions import Defined, Definitions
from wfcelery.mcp.quota import Quota
from wfcelery.rights import SOMETHING, Permission, Resource
from wfcelery.rights.loading import load_authority
from wfcelery.store import pages
from wfcelery.tools import Registry
from wfcelery.tools.catalogue import Catalogue
from wfcelery.wire.keys import Keyring, keyring
from wfcelery.wire.signed import BadToken, read_signed, write_signed
from wfcelery.workflows import Workflows

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow
    from wfcelery.core.messages import Principal
    from wfcelery.core.reading import Place
    from wfcelery.core.values import Json
    from wfcelery.rights import Authority
    from wfcelery.settings import Settings
    from wfcelery.store import Connection

CURSOR: Final = "mcp-cursor"


@dataclass(slots=True)
class Desk:
    """One for each server; threads share it."""

    settings: Settings
    workflows: Workflows
    authority: Authority
    ring: Keyring
    quota: Quota = field(default_factory=Quota)
    _definitions: Definitions = field(default_factory=lambda: Definitions(None, DEFAULT))
    _registry: Registry | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reading(self) -> AbstractContextManager[Connection]:
        """Read one consistent state of the tables."""
        return self.workflows.links.reading()

    def may(self, who: Principal, permission: Permission, resource: Resource = SOMETHING) -> bool:
        """Tell whether somebody may do something; without a resource, whether to anything at all."""
        return self.authority.is_open or self.authority.allows(who, permission, resource)

    def run_of(self, conn: Connection, who: Principal, run_id: str) -> pages.Place:
        """Find a run. Who may not read it learns nothing of it, not even that it is."""
        found = pages.place(conn, run_id) if ids.is_run_id(run_id) else None
        if found is None or not self.may(who, Permission.READ, resource_of(found)):
            raise NotFound("run", run_id, "workflow_list_runs lists those that you may read")
        return found

    def get(self, conn: Connection, definition_id: str) -> Defined:
        """Give a definition; those in use are kept."""
        with self._lock:
            return self._definitions.get(conn, definition_id)

    def flow_of(self, conn: Connection, definition_id: str) -> Flow:
        """Give the flow of a definition."""
        return self.get(conn, definition_id).flow

    def check(self, conn: Connection, document: Json, name: str | None, place: Place | None) -> None:
        """Say of a flow what can be said here, with lines. Raises `InvalidFlow` with every fault.

        Which tools there are is for the executor to judge: this process may know fewer of them.
        """
        try:
            Definitions(None, DEFAULT).check(conn, document, name, place)
        except InvalidFlow:
            if self.settings.tools:
                Definitions(Catalogue(self.registry()), DEFAULT).check(conn, document, name, place)
            raise

    def registry(self) -> Registry:
        """Give the tools that flows may call; their modules are imported once, when first wanted."""
        with self._lock:
            if self._registry is None:
                self._registry = Registry.load(self.settings.tools)
            return self._registry

    def write_cursor(self, what: str, place: Json) -> str:
        """Write where the next page of something begins: signed, so that nobody need check what it holds."""
        return write_signed(self.ring, CURSOR, [what, place])

    def read_cursor(self, what: str, text: str) -> Json:
        """Give what was written for the same thing."""
        try:
            match read_signed(self.ring, CURSOR, text):
                case [str(meant), place] if meant == what:
                    return place
        except BadToken:
            pass
        raise InvalidInput("cursor", "is not one of ours; give what `next` of the page before says")


def make_desk(
    settings: Settings, *, workflows: Workflows | None = None, authority: Authority | None = None
) -> Desk:
    """Put together what the tools need, around what there is already. Nothing is connected yet."""
    return Desk(
        settings,
        workflows or Workflows.from_settings(settings),
        authority or load_authority(settings),
        keyring(settings.secret_key),
    )


def resource_of(run: pages.Place) -> Resource:
    """Say what somebody asks for who asks for a run."""
    return Resource(run.name, run.id, run.created_by)
