"""Serving the app with uvicorn. Without rights it serves this machine only, and says so."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

import uvicorn

from wfcelery.errors import InvalidSettings, NotReachable
from wfcelery.shell import logs
from wfcelery.web.app import LOOPBACK, make_app

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from wfcelery.settings import Settings

HOST: Final = "127.0.0.1"
PORT: Final = 8765


def serve(settings: Settings, *, host: str = HOST, port: int = PORT, loglevel: str = "INFO") -> int:
    """Serve until told to stop; give the exit code. Raises `NotReachable` if nobody can listen there."""
    server = make_server(settings, host=host, port=port, loglevel=loglevel)
    try:
        server.run()
    except SystemExit as end:  # So uvicorn gives up, and has logged why.
        reason = f"{host} port {port} cannot be used, as logged above; choose another with --host and --port"
        raise NotReachable("the web", reason) from end
    return 0 if server.started else 1


def make_server(settings: Settings, *, host: str, port: int, loglevel: str = "INFO") -> uvicorn.Server:
    """Make what serves. Raises `InvalidSettings` for what must not be served there."""
    app = make_app(settings, hosts=LOOPBACK | {host.lower()})
    desk = app.state.desk
    if desk.is_open and not is_loopback(host):
        reason = "is needed to serve other machines: without rights everybody could do everything"
        raise InvalidSettings("policy", f"{reason}; `wfcelery policy init` prints a sample")
    in_json = settings.log_format == logs.JSON
    if in_json:
        logs.configure(logs.JSON, loglevel)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=loglevel.lower(),
        log_config=None if in_json else uvicorn.config.LOGGING_CONFIG,
        access_log=False,  # Addresses hold the tokens of approval links.
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=3,
    )
    return _Server(config, desk.streams.stop)


class _Server(uvicorn.Server):
    """Lets streams end when it is told to stop: it would wait for them else."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal."""
        self._stopping()
        super().handle_exit(sig, frame)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach what listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
