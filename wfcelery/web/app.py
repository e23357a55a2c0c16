"""The app: doors behind guards, in an order that nothing can walk around."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Match, Mount, Route
from starlette.staticfiles import StaticFiles

from wfcelery.errors import NotFound, Refused, WfceleryError
from wfcelery.web.agent_door import AgentDoor
from wfcelery.web.desk import Desk, make_desk
from wfcelery.web.doors import all_doors
from wfcelery.web.failures import Broken, NoSuchMethod, as_page, as_problem
from wfcelery.web.guard import Guard
from wfcelery.web.headers import ALWAYS, NO_STORE, Headers, KnownHost
from wfcelery.web.prefix import Prefix

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.settings import Settings

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
STATIC: Final = Path(__file__).parent / "static"
API: Final = "/api/"


def make_app(
    settings: Settings, *, hosts: frozenset[str] | None = LOOPBACK, trust_host_user: bool = False
) -> Starlette:
    """Make the web app. It answers to `hosts` and to the host of the base URL; None: to every name.

    With `trust_host_user` it stands inside an application that signs people in: see `identity`.
    """
    desk = make_desk(settings, host_signs_in=trust_host_user)
    middleware = [Middleware(Headers)]
    if hosts is not None:
        named = urlsplit(settings.base_url or "").hostname
        known = hosts | ({f"[{named}]" if ":" in named else named} if named else frozenset())
        middleware.append(Middleware(KnownHost, hosts=known))
    if desk.prefix:
        middleware.append(Middleware(Prefix, prefix=desk.prefix))
    routes: list[Route | Mount] = [
        Route(door.path, Guard(desk, door).answer, methods=[door.method], name=door.name)
        for door in all_doors()
    ]
    routes.append(Route("/mcp", AgentDoor(desk), name="mcp"))
    routes.append(Mount("/static", _Static(directory=STATIC), name="static"))
    app = Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=_lifespan,
        exception_handlers={HTTPException: _unknown, Exception: _broken},
    )
    app.state.desk = desk
    app.state.routes = {route.name: route for route in routes}
    return app


class _Static(StaticFiles):
    """Files that browsers keep, and ask each time whether they are still the same."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - Starlette's signature
        """Answer with a file, or that it has not changed."""
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    yield
    desk: Desk = app.state.desk
    desk.workflows.close()


def _unknown(request: Request, error: Exception) -> Response:
    """Answer for what is not there, and for methods that are not."""
    request.state.desk = request.app.state.desk
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers: dict[str, str] = {}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        failure: WfceleryError = NoSuchMethod(request.method)
        headers["Allow"] = ", ".join(_methods(request))
    elif status == HTTPStatus.NOT_FOUND:
        failure = NotFound("page", request.url.path)
    else:
        failure = Refused(f"{request.method} is not possible here")
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    if path.startswith(API):
        return as_problem(request, failure, status, headers)
    page = as_page(request, failure, status)
    page.headers.update(headers)
    return page


def _methods(request: Request) -> list[str]:
    """Name the methods that doors of this path have; the first of them alone is what the router tells."""
    return sorted(
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    )


def _broken(request: Request, error: Exception) -> Response:
    """Answer for what we did not think of; the log has the rest. Nothing else has a hand in this answer."""
    request.state.desk = request.app.state.desk
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    failure = Broken(type(error).__name__)
    response = (as_problem if path.startswith(API) else as_page)(request, failure, 500)
    response.headers.update({**ALWAYS, "Cache-Control": NO_STORE})
    return response
