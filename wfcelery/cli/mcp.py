"""`wfcelery mcp`."""

from __future__ import annotations

import click

from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    see_modules_here,
    settings_of,
    tools_option,
)
from wfcelery.cli.processes import LEVELS, with_broker


@click.command(
    cls=Command,
    examples=(
        "wfcelery mcp",
        "WFCELERY_POLICY=people.toml WFCELERY_TOKEN=wfc_... wfcelery mcp --tools shop.tools",
    ),
)
@tools_option
@database_option
@click.option(
    "--loglevel",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="WARNING",
    show_default=True,
    help="What to log, to stderr.",
)
@debug_option
def mcp(*, tools: str | None, database: str | None, loglevel: str) -> int:
    """Serve workflows to an agent over stdin and stdout (MCP).

    Needs the database (to read), the broker and the secret key. The agent acts as whom WFCELERY_TOKEN stands
    for; without a policy as an agent of WFCELERY_USER. An agent never decides a gate.
    """
    import importlib.util

    from wfcelery.errors import InvalidSettings, NotReachable

    if importlib.util.find_spec("mcp") is None:
        raise NotReachable("MCP", "it is not installed; `pip install 'wfcelery[mcp]'` does that")
    settings = with_broker(settings_of(database=database, tools=tools))
    if not settings.secret_key:
        hint = "give it as WFCELERY_SECRET_KEY, the same as the executor's"
        raise InvalidSettings("secret_key", f"is not set; {hint}")
    see_modules_here()
    from wfcelery.mcp.stdio import serve

    return serve(settings, loglevel=loglevel)
