"""`wfcelery watch`."""

from __future__ import annotations

import sys

import click

from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of


@click.command(
    cls=Command,
    examples=(
        "wfcelery watch 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery watch 01k9z3n5m8q0r2t4v6x8y0a1b2 --timeout 60 -o json",
    ),
)
@click.argument("run", metavar="RUN")
@click.option(
    "--timeout", type=click.FloatRange(0), metavar="SECONDS", help="Stop watching after so long; 0: at once."
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@database_option
@output_option("text", "json")
@debug_option
def watch(*, run: str, timeout: float | None, quiet: bool, database: str | None, output: str) -> int:
    """Watch a run until it ends.

    On a terminal its steps are redrawn in place, elsewhere every change is a line. Only the database is
    read: Ctrl-C ends the watching, the run goes on. At the end its output is printed, as `run` does.

    Exit codes: 0 completed, 1 failed or cancelled, 6 it waits for a person or a signal when the time is
    over, 7 it is not finished when the time is over.
    """
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.cli.watching import Watching, show_end
    from wfcelery.errors import NotFound

    watching = Watching(run, settings_of(database=database), is_quiet=quiet)
    with Interrupt() as interrupt:
        if not watching.is_there():
            raise NotFound("run", run, "`wfcelery ps` lists the runs")
        found = watching.until_end(timeout, interrupt)
    return show_end(found, as_json=output == "json", stdout=sys.stdout, stderr=None if quiet else sys.stderr)
