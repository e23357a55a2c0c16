"""The door for agents: the Model Context Protocol over HTTP, for who sends a token with every request.

It is no page and no part of the JSON API, and stands apart from their doors: a cookie opens it for nobody,
and each tool behind it asks for its own permission.
"""

from __future__ import annotations

import importlib.util
import time
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from wfcelery.errors import NotReachable, WfceleryError
from wfcelery.web import identity
from wfcelery.web.desk import Desk
from wfcelery.web.failures import NoSuchMethod, NotSignedIn, as_problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from wfcelery.core.messages import Principal
    from wfcelery.mcp.endpoint import Endpoint

METHOD: Final = "POST"


class AgentDoor:
    """Lets in whom a token stands for. What is behind it is loaded when it is first asked for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._endpoint: Endpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        request.state.desk = self._desk
        try:
            if request.method != METHOD:
                raise NoSuchMethod(request.method)  # Nothing is streamed, and no session need be ended.
            who = self._who(request)
            if self._endpoint is None:
                self._endpoint = await run_in_threadpool(_load, self._desk)
        except WfceleryError as error:
            headers = {"Allow": METHOD} if isinstance(error, NoSuchMethod) else None
            await as_problem(request, error, headers=headers)(scope, receive, send)
            return
        from wfcelery.mcp.endpoint import CALLER  # noqa: PLC0415 - slow to load, and by now it is

        scope[CALLER] = who
        await self._endpoint(scope, receive, send)

    def _who(self, request: Request) -> Principal:
        seen = identity.visitor(self._desk, request, time.time())
        if not seen.by_token or seen.who is None:
            raise NotSignedIn
        return seen.who


def _load(desk: Desk) -> Endpoint:
    if importlib.util.find_spec("mcp") is None:
        raise NotReachable("MCP", "it is not installed; `pip install 'wfcelery[mcp]'` does that")
    from wfcelery.mcp.desk import make_desk  # noqa: PLC0415 - the SDK is slow to load, and not always there
    from wfcelery.mcp.endpoint import Endpoint  # noqa: PLC0415 - same

    return Endpoint(make_desk(desk.settings, workflows=desk.workflows, authority=desk.authority))
