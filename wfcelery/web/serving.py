"""Serving the app with uvicorn. Without rights it serves this machine only, and says so."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

import uvicorn

from wfcelery.errors import InvalidSettings
from wfcelery.web.app import LOOPBACK, make_app

if TYPE_CHECKING:
    from wfcelery.settings import Settings

HOST: Final = "127.0.0.1"
PORT: Final = 8765


def serve(settings: Settings, *, host: str = HOST, port: int = PORT, loglevel: str = "INFO") -> int:
    """Serve until told to stop; give the exit code."""
    app = make_app(settings, hosts=LOOPBACK | {host.lower()})
    desk = app.state.desk
    if desk.is_open and not is_loopback(host):
        reason = "is needed to serve other machines: without rights everybody could do everything"
        raise InvalidSettings("policy", f"{reason}; `wfcelery policy init` prints a sample")
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        root_path=desk.prefix,
        log_level=loglevel.lower(),
        access_log=False,  # Addresses hold the tokens of approval links.
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    server = uvicorn.Server(config)
    server.run()
    return 0 if server.started else 1


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach what listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
