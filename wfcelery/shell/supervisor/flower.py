"""Flower, for this machine only and behind a password."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wfcelery.errors import NotReachable
from wfcelery.settings import Settings, load
from wfcelery.shell.supervisor.process import Program
from wfcelery.shell.supervisor.system import without_settings

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who may look at Flower."""

    user: str
    password: str = field(repr=False)


def new_credentials(port: int) -> Credentials:
    """Make a password for Flower. Raises `NotReachable` if it is not installed or cannot have its port."""
    if importlib.util.find_spec("flower") is None:
        raise NotReachable("Flower", "it is not installed; `pip install 'wfcelery[flower]'` does that")
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except OSError as error:
            said = f"port {port} cannot be used ({error.strerror}); choose another with --flower-port"
            raise NotReachable("Flower", said) from error
    return Credentials("wfcelery", secrets.token_urlsafe(12))


def program(settings: Settings, port: int, credentials: Credentials, environ: Mapping[str, str]) -> Program:
    """Describe Flower's process."""
    command, told = flower_command(settings, port, credentials)
    return Program(name="flower", command=command, environ=without_settings(environ) | told)


def flower_command(
    settings: Settings, port: int, credentials: Credentials
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Give the command that starts Flower on our Celery app, and what it is told by its environment."""
    command = (
        sys.executable,
        "-m",
        "wfcelery.shell.supervisor.flower",
        f"--address={HOST}",
        f"--port={port}",
    )
    # Not in the command: everybody on this machine can read that.
    secret = {"FLOWER_BASIC_AUTH": f"{credentials.user}:{credentials.password}"}
    return command, {"PYTHONUNBUFFERED": "1", "WFCELERY_BROKER_URL": settings.broker_url or "", **secret}


def main() -> None:
    """Be Flower: `celery flower` with our app, which is made from the settings."""
    from wfcelery.shell.celery_app import make_app  # noqa: PLC0415 - the supervisor loads no Celery

    app = make_app(load({}, os.environ, Path.cwd(), system=False))
    app.start(["flower", *sys.argv[1:]])


if __name__ == "__main__":
    main()
