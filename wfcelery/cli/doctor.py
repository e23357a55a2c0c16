"""`wfcelery doctor`."""

from __future__ import annotations

import sys

import click

from wfcelery.cli.failures import FAILED, SUCCESS
from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    output_option,
    see_modules_here,
    settings_of,
    tools_option,
)


@click.command(
    cls=Command,
    examples=(
        "wfcelery doctor",
        "wfcelery doctor -o json",
    ),
)
@tools_option
@database_option
@output_option("text", "json")
@debug_option
def doctor(*, tools: str | None, database: str | None, output: str) -> int:
    """Look whether the system is well, and say what to do.

    Broker, database, keys, executor, beat, workers and their queues, clocks, tools, dead letters. Changes
    nothing. Exit code 1 if anything is broken; warnings do not count.
    """
    from wfcelery.cli import allowed
    from wfcelery.cli.database import reading
    from wfcelery.cli.output import plain, print_json
    from wfcelery.cli.symbols import sign, signs_for, wants_colour
    from wfcelery.insight.examining import examine
    from wfcelery.insight.findings import Level

    settings = settings_of(database=database, tools=tools)
    see_modules_here()
    allowed.require(settings, allowed.READ)
    kinds = {Level.OK: "done", Level.WARN: "gate", Level.FAIL: "failed"}
    found = []
    for each in examine(settings, lambda: reading(settings)):
        found.append(each)
        if output != "json":
            mark = sign(signs_for(sys.stdout), kinds[each.level], colour=wants_colour(sys.stdout))
            advice = f"; {each.advice}" if each.advice else ""
            click.echo(f"{mark} {each.level.value:<4}  {plain(each.message)}{advice}")
    if output == "json":
        print_json([each.as_json() for each in found])
    return FAILED if any(each.level is Level.FAIL for each in found) else SUCCESS
