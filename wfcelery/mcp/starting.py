"""Which flow is meant by who wants to start one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wfcelery.errors import NotFound
from wfcelery.executor.definitions import MAX_DIGITS
from wfcelery.rights import Permission, Resource
from wfcelery.store import definitions

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.mcp.desk import Desk
    from wfcelery.store import Connection

_HINT: Final = "workflow_list_definitions lists those that you may read; workflow_define keeps a new one"


def flow_named(desk: Desk, conn: Connection, who: Principal, flow: str) -> str:
    """Give the name of a flow. One that somebody may neither start nor read is not there for them.

    Whether they may start it is for the executor to say, and to write down.
    """
    name, _, version = flow.partition("@")
    is_number = version.isascii() and version.isdecimal() and len(version) <= MAX_DIGITS
    found = None
    if flow.isprintable() and (not version or is_number):
        found = definitions.find(conn, name, int(version) if version else None)
    if found is None or not any(
        desk.may(who, each, Resource(flow=found.name)) for each in (Permission.START, Permission.READ)
    ):
        raise NotFound("definition", flow, _HINT)
    return found.name
