"""What every page works with: the system behind it, the rights, the keys."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wfcelery.core.limits import DEFAULT
from wfcelery.core.messages import Principal
from wfcelery.errors import Refused
from wfcelery.executor.definitions import Definitions
from wfcelery.rights import SOMETHING, Authority, Permission, Resource
from wfcelery.rights.limiter import Limiter
from wfcelery.rights.loading import load_authority
from wfcelery.settings import Settings
from wfcelery.web.streams import Streams
from wfcelery.wire.keys import Keyring, keyring
from wfcelery.workflows import Workflows
from wfcelery.workflows.links import Links

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow
    from wfcelery.store import Connection

BAD_LINKS_A_MINUTE = 30
BAD_LOGINS_A_MINUTE = 10
BAD_HOOKS_A_MINUTE = 30
MOST_STREAMS = 200
MOST_STREAMS_OF_ONE = 40


@dataclass(frozen=True, slots=True)
class Desk:
    """One for each app; threads share it.

    `is_open`: nobody signs in, and everybody who reaches the app may do everything: for one machine only.
    `host_signs_in`: the application around ours says who comes.
    """

    settings: Settings
    workflows: Workflows
    links: Links
    authority: Authority
    ring: Keyring
    definitions: Definitions
    is_open: bool
    bad_links: Limiter
    bad_logins: Limiter
    bad_hooks: Limiter
    streams: Streams
    host_signs_in: bool = False
    one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def reading(self) -> AbstractContextManager[Connection]:
        """Read one consistent state of the tables."""
        return self.links.reading()

    def flow_of(self, conn: Connection, definition_id: str) -> Flow:
        """Give the flow of a definition; those in use are kept."""
        with self.one_at_a_time:
            return self.definitions.get(conn, definition_id).flow

    def may(self, who: Principal | None, permission: str, resource: Resource | None = None) -> bool:
        """Tell whether somebody may do something; without a resource, whether to anything at all."""
        if who is None:
            return False
        return self.authority.is_open or self.authority.allows(who, permission, resource or SOMETHING)

    def require(self, who: Principal, permission: Permission, resource: Resource) -> None:
        """Refuse, in words, what somebody may not do."""
        if not self.may(who, permission, resource):
            what = f"flow {resource.flow}" if resource.flow else "this"
            reason = f"{who.id} may not do this to {what}: the permission `{permission.value}` is missing"
            raise Refused(reason, "forbidden")

    @property
    def prefix(self) -> str:
        """Give the path under which the world sees the app, as the base URL says; no slash at its end."""
        return urlsplit(self.settings.base_url or "").path.rstrip("/")


def make_desk(settings: Settings, *, host_signs_in: bool = False) -> Desk:
    """Put together what the pages need. Nothing is connected yet."""
    authority = load_authority(settings)
    workflows = Workflows.from_settings(settings)
    return Desk(
        settings=settings,
        workflows=workflows,
        links=workflows.links,
        authority=authority,
        ring=keyring(settings.secret_key),
        definitions=Definitions(None, DEFAULT),
        is_open=authority.is_open and not host_signs_in,
        bad_links=Limiter(BAD_LINKS_A_MINUTE, per_s=60.0),
        bad_logins=Limiter(BAD_LOGINS_A_MINUTE, per_s=60.0),
        bad_hooks=Limiter(BAD_HOOKS_A_MINUTE, per_s=60.0),
        streams=Streams(workflows.links.reading, MOST_STREAMS, MOST_STREAMS_OF_ONE),
        host_signs_in=host_signs_in,
    )
