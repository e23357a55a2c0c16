"""`wfcelery explain`."""

from __future__ import annotations

import time

import click

from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of


@click.command(
    cls=Command,
    examples=(
        "wfcelery explain 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery explain 01k9z3n5m8q0r2t4v6x8y0a1b2 -o json",
    ),
)
@click.argument("run", metavar="RUN")
@database_option
@output_option("text", "json")
@debug_option
def explain(*, run: str, database: str | None, output: str) -> None:
    """Say why a run is not moving.

    One sentence for each thing that it waits for: a person, a signal, a retry, a worker, a queue, the clock.
    """
    from wfcelery.cli.database import Right, reading
    from wfcelery.cli.output import plain, print_json
    from wfcelery.insight import explaining

    settings = settings_of(database=database)
    status, found = explaining.explain(settings, lambda: reading(settings, Right(run=run)), run, time.time())
    if output == "json":
        print_json({"run_id": run, "status": status, "reasons": [each.as_json() for each in found]})
    else:
        for each in found:
            click.echo(plain(each.message))
