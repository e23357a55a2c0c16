"""`/metrics`, for Prometheus: by a token of somebody who may read everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from wfcelery.errors import Refused
from wfcelery.insight.exposition import CONTENT_TYPE, text
from wfcelery.insight.metrics import gather
from wfcelery.rights import Permission, Resource
from wfcelery.web.doors import Door
from wfcelery.web.guard import desk_of, visitor_of

if TYPE_CHECKING:
    from starlette.requests import Request


def show(request: Request) -> Response:
    """Tell everything that is counted. It is about all flows, so who reads some of them is refused."""
    desk, who = desk_of(request), visitor_of(request).who
    if not desk.may(who, Permission.READ, Resource()):
        raise Refused("metrics are about all flows: they take the permission `read` for all", "forbidden")
    return Response(text(gather(desk.settings, desk.reading)), headers={"Content-Type": CONTENT_TYPE})


DOORS: Final = (Door("GET", "/metrics", show, "metrics", Permission.READ, for_programs=True),)
