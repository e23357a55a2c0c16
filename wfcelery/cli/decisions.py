"""`wfcelery approve` and `deny`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    output_option,
    settings_of,
    user_option,
)

F = TypeVar("F", bound=Callable[..., Any])


def _options(command: F) -> F:
    """Add what both commands have in common."""
    for option in (
        debug_option,
        output_option("text", "json", "ids"),
        database_option,
        user_option,
        click.option("--key", metavar="KEY", help="With --flow: its live run with this business key."),
        click.option("--flow", metavar="NAME", help="With --key: instead of RUN."),
        click.option("--comment", default="", metavar="TEXT", help="What to say with it."),
        click.argument("words", nargs=-1, metavar="RUN [STEP]"),
    ):
        command = option(command)
    return command


@click.command(
    cls=Command,
    examples=(
        "wfcelery approve 01k9z3n5m8q0r2t4v6x8y0a1b2 review",
        'wfcelery approve 01k9z3n5m8q0r2t4v6x8y0a1b2 --comment "as agreed" --form limit:=500',
        "wfcelery approve --flow order --key order-17 review",
    ),
)
@_options
@click.option(
    "--form",
    multiple=True,
    metavar="FIELD",
    help="Fill in the gate's form: key=text, key:=json or @file.json; repeatable.",
)
def approve(
    *,
    words: tuple[str, ...],
    comment: str,
    form: tuple[str, ...],
    flow: str | None,
    key: str | None,
    user: str | None,
    database: str | None,
    output: str,
) -> int:
    """Approve a gate.

    STEP may be left out when exactly one gate is open; gates of sub-runs count. A step that lost its worker
    and waits for a person runs again. RUN may be `-`: ids from stdin.
    """
    from wfcelery.cli.deciding import Said, decide
    from wfcelery.cli.inputs import parse_input
    from wfcelery.core.messages import Principal

    settings = settings_of(database=database, user=user)
    filled = parse_input(form, "--form") if form else None
    said = Said(Principal(settings.user), approve=True, comment=comment, form=filled)
    return decide(settings, words, said, flow=flow, key=key, output=output)


@click.command(
    cls=Command,
    examples=(
        "wfcelery deny 01k9z3n5m8q0r2t4v6x8y0a1b2 review",
        'wfcelery deny --flow order --key order-17 --comment "too expensive"',
    ),
)
@_options
def deny(
    *,
    words: tuple[str, ...],
    comment: str,
    flow: str | None,
    key: str | None,
    user: str | None,
    database: str | None,
    output: str,
) -> int:
    """Deny a gate.

    The run takes the way `on_deny`, or is cancelled. STEP may be left out when exactly one gate is open. RUN
    may be `-`: ids from stdin.
    """
    from wfcelery.cli.deciding import Said, decide
    from wfcelery.core.messages import Principal

    settings = settings_of(database=database, user=user)
    said = Said(Principal(settings.user), approve=False, comment=comment)
    return decide(settings, words, said, flow=flow, key=key, output=output)
