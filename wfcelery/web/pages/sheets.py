"""The style sheet of the picture, which belongs to the drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from wfcelery.core.values import digest
from wfcelery.drawing.style import CSS
from wfcelery.web.doors import Door

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG: Final = f'"{digest(CSS)[:16]}"'


def graph(request: Request) -> Response:
    """Serve it; a browser that has it is told so."""
    headers = {"Cache-Control": "no-cache", "ETag": _TAG}
    if request.headers.get("if-none-match") == _TAG:
        return Response(status_code=304, headers=headers)
    return Response(CSS, media_type="text/css", headers=headers)


DOORS: Final = (
    Door("GET", "/static/graph.css", graph, "graph_css", open_because="a style sheet tells nothing"),
)
