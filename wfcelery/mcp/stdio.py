"""Serving one client over stdin and stdout, until it goes."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server

from wfcelery.mcp.caller import Caller
from wfcelery.mcp.desk import make_desk
from wfcelery.mcp.server import make_server

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from wfcelery.core.messages import Principal
    from wfcelery.settings import Settings


def serve(settings: Settings, *, loglevel: str = "WARNING") -> int:
    """Serve until stdin ends; give the exit code. Raises `InvalidSettings` if nobody can be the caller."""
    logging.basicConfig(level=loglevel.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    desk = make_desk(settings)
    caller = Caller(settings, desk.authority)

    def who(_ctx: ServerRequestContext[Any, Any]) -> Principal:
        return caller.principal()

    server = make_server(desk, who)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl-C just ends us: nothing here is written, and a thread that reads stdin cannot be called back.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        desk.workflows.close()
    return 0
