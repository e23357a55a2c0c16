"""Serving over streamable HTTP: each request by itself, as who its sender has shown to be."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from wfcelery.core.messages import Principal
from wfcelery.mcp.server import make_server

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from starlette.types import Receive, Scope, Send

    from wfcelery.mcp.desk import Desk

CALLER: Final = "wfcelery.caller"
"""Where in the scope of a request it stands who its sender is; whoever passes it on has asked for a token."""


class Endpoint:
    """Answers requests that somebody else has let in.

    No session outlives its request: there is none to steal, any process can answer, and nothing has to run
    beside the app, which may be a part of another.
    """

    def __init__(self, desk: Desk) -> None:
        # It tells of the beginning and end of each manager, which here is each request.
        logging.getLogger(StreamableHTTPSessionManager.__module__).setLevel(logging.WARNING)
        self._server = make_server(desk, _caller)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        manager = StreamableHTTPSessionManager(self._server, stateless=True, json_response=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def _caller(ctx: ServerRequestContext[Any, Any]) -> Principal:
    """Give who has sent this request. None without a request: then nobody is let in."""
    found = cast("Any", ctx.request).scope[CALLER]
    if not isinstance(found, Principal):
        message = "a request has come in without its sender"
        raise TypeError(message)
    return found
