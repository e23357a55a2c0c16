"""The inbox: gates that wait, those first that the visitor can decide. A new one appears without a reload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfcelery.core import values
from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.insight import gates
from wfcelery.insight.gates import GateView
from wfcelery.rights import Permission
from wfcelery.web import asking
from wfcelery.web.doors import Door
from wfcelery.web.failures import NotSignedIn
from wfcelery.web.guard import desk_of, visitor_of
from wfcelery.web.rendering import render
from wfcelery.web.streams import Sight

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.store import Connection
    from wfcelery.web.desk import Desk

PAGE: Final = 50
AT_ONCE: Final = 200
MOST_LOOKS: Final = 10
"""How often the tables are asked for more when most gates are of flows that the visitor may not read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A gate that waits; `objection` says why the visitor cannot decide it."""

    view: GateView
    objection: str | None


def show(request: Request) -> Response:
    """Show a page of gates."""
    desk, who = desk_of(request), _who(request)
    before = request.query_params.get("before")
    with desk.reading() as conn:
        found = _readable(desk, conn, who, before, PAGE + 1)
    page = [Entry(view, asking.objection(desk, view, who)) for view in found[:PAGE]]
    return render(
        request,
        "inbox.html",
        mine=[entry for entry in page if entry.objection is None],
        others=[entry for entry in page if entry.objection is not None],
        older=page[-1].view.cursor if len(found) > PAGE else None,
        is_first=before is None,
        seen=_position(found),
    )


async def stream(request: Request) -> Response:
    """Tell when the first page is not what it was."""
    desk, who = desk_of(request), _who(request)

    def look(conn: Connection) -> Sight:
        return Sight(_position(_readable(desk, conn, who, None, PAGE + 1)))

    return await desk.streams.response(request, f"inbox:{who.kind.value}:{who.id}", look)


def _who(request: Request) -> Principal:
    who = visitor_of(request).who
    if who is None:
        raise NotSignedIn
    return who


def _readable(desk: Desk, conn: Connection, who: Principal, before: str | None, most: int) -> list[GateView]:
    """List the newest gates of flows that somebody may read."""
    found: list[GateView] = []
    for _ in range(MOST_LOOKS):
        views = gates.open_gates(conn, desk.definitions, AT_ONCE, before)
        found += [view for view in views if desk.may(who, Permission.READ, asking.resource_of(view))]
        if len(found) >= most or len(views) < AT_ONCE:
            break
        before = views[-1].cursor
    return found[:most]


def _position(views: list[GateView]) -> str:
    seen: list[Json] = [[view.id, view.attempt.escalated, len(view.votes)] for view in views]
    return values.digest(values.canonical(seen))[:16]


DOORS: Final = (
    Door("GET", "/approvals", show, "inbox", Permission.READ),
    Door("GET", "/approvals/stream", stream, "inbox_stream", Permission.READ),
)
