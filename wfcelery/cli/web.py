"""`wfcelery web`."""

from __future__ import annotations

import click

from wfcelery.cli.options import Command, database_option, debug_option, settings_of
from wfcelery.cli.processes import log_format_option, loglevel_option, with_broker

HOST = "127.0.0.1"
PORT = 8765


@click.command(
    cls=Command,
    examples=(
        "wfcelery web",
        "wfcelery web --port 8080",
        "WFCELERY_BASE_URL=https://flows.example.org WFCELERY_POLICY=policy.toml wfcelery web --host 0.0.0.0",
    ),
)
@click.option("--host", default=HOST, show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    show_default=True,
    metavar="PORT",
    help="Where to listen.",
)
@database_option
@loglevel_option
@log_format_option
@debug_option
def web(*, host: str, port: int, database: str | None, loglevel: str, log_format: str | None) -> int:
    """Serve the console, approval pages and the JSON API.

    Needs the database, the broker and the secret key; it reads the tables and sends requests, and writes
    nothing. Without a policy (WFCELERY_POLICY) everybody may do everything: it then serves this machine only.
    Behind a proxy set WFCELERY_BASE_URL to the address that people use.
    """
    import importlib.util

    from wfcelery.errors import NotReachable

    if not all(importlib.util.find_spec(each) for each in ("starlette", "uvicorn", "jinja2")):
        raise NotReachable("the web", "it is not installed; `pip install 'wfcelery[web]'` does that")
    settings = with_broker(settings_of(database=database, log_format=log_format))
    from wfcelery.web.serving import serve

    return serve(settings, host=host, port=port, loglevel=loglevel)
