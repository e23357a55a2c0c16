"""`wfcelery start`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    output_option,
    see_modules_here,
    settings_of,
    tools_option,
    user_option,
)

if TYPE_CHECKING:
    from wfcelery.cli.starting import Begun
    from wfcelery.settings import Settings


@click.command(
    cls=Command,
    examples=(
        "wfcelery start order -i amount:=900 --key order-17",
        "wfcelery start flows/hello.yaml -i name=Ann --wait -o json",
        "wfcelery start report@3 --at 2030-01-31T06:00Z",
        "wfcelery watch $(wfcelery start order -o ids)",
    ),
)
@click.argument("flow")
@click.option(
    "-i",
    "--input",
    "given",
    multiple=True,
    metavar="INPUT",
    help="key=text, key:=json or @file.json; repeatable.",
)
@click.option("--key", metavar="KEY", help="Business key: one live run of a flow for each.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the run; repeatable.")
@click.option("--at", metavar="TIME", help="Begin later: +10m, or a time with its zone (2030-01-31T06:00Z).")
@click.option("--id", "run_id", metavar="RUN", help="The run's id; the same start again is harmless.")
@click.option(
    "--on-conflict",
    type=click.Choice(("return", "error")),
    default="return",
    show_default=True,
    help="When a live run has the key: give that run, or refuse.",
)
@click.option("--wait", is_flag=True, help="Wait for the end and print the output.")
@click.option("--timeout", type=click.FloatRange(0), metavar="SECONDS", help="With --wait: at most so long.")
@click.option("--no-confirm", is_flag=True, help="Do not wait until the start is in the database.")
@user_option
@tools_option
@database_option
@output_option("text", "json", "ids")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no hints.")
@debug_option
def start(
    *,
    flow: str,
    given: tuple[str, ...],
    key: str | None,
    tags: tuple[str, ...],
    at: str | None,
    run_id: str | None,
    on_conflict: str,
    wait: bool,
    timeout: float | None,
    no_confirm: bool,
    user: str | None,
    tools: str | None,
    database: str | None,
    output: str,
    quiet: bool,
) -> int:
    """Start a run in the running system.

    FLOW is the name of a flow that was defined (NAME or NAME@VERSION), or a file. Prints the run's id once
    the start is in the database.

    With --wait the exit code tells how the run ended: 0 completed, 1 failed or cancelled; 6 if it waits for a
    person or a signal when the time is over, 7 if it is not finished. Without: 5 database or broker out of
    reach, 7 not confirmed in time; then the same start with the same --id is safe.
    """
    from wfcelery.cli.inputs import parse_input
    from wfcelery.cli.moments import parse_moment
    from wfcelery.cli.starting import Wish, begin
    from wfcelery.core.ids import is_run_id

    if wait and no_confirm:
        raise click.UsageError("--wait waits for the end, --no-confirm not even for the beginning")
    if timeout is not None and not wait:
        raise click.UsageError("--timeout belongs to --wait")
    if run_id is not None and not is_run_id(run_id):
        raise click.UsageError(
            "--id must be 26 digits and small letters (without i, l, o, u), like those of `ps`"
        )
    settings = settings_of(database=database, tools=tools, user=user)
    see_modules_here()
    begun = begin(
        settings,
        Wish(
            flow=flow,
            input=parse_input(given),
            key=key,
            tags=tags,
            run_id=run_id,
            at=None if at is None else parse_moment(at, time.time(), "--at"),
            refuse_conflict=on_conflict == "error",
            confirm=not no_confirm,
        ),
    )
    if wait:
        return _wait(settings, begun, timeout, output=output, quiet=quiet)
    _tell(settings, begun, output=output, quiet=quiet)
    return 0


def _tell(settings: Settings, begun: Begun, *, output: str, quiet: bool) -> None:
    from wfcelery.cli.output import print_json

    url = f"{settings.base_url.rstrip('/')}/runs/{begun.run_id}" if settings.base_url else None
    if output == "json":
        print_json({"run_id": begun.run_id, "created": begun.created, "url": url})
        return
    click.echo(begun.run_id)
    if output == "ids" or quiet:
        return
    if begun.created is False:
        click.echo("a live run has this key already; nothing new was started", err=True)
    click.echo(f"  wfcelery watch {begun.run_id}", err=True)
    if url is not None:
        click.echo(f"  {url}", err=True)


def _wait(settings: Settings, begun: Begun, timeout: float | None, *, output: str, quiet: bool) -> int:
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.cli.watching import Watching, show_end

    if not quiet:
        click.echo(f"run {begun.run_id}", err=True)
    with Interrupt() as interrupt:
        run = Watching(begun.run_id, settings, is_quiet=quiet).until_end(timeout, interrupt)
    if output == "ids":
        click.echo(begun.run_id)
    return show_end(
        run,
        as_json=output == "json",
        stdout=None if output == "ids" else sys.stdout,
        stderr=None if quiet else sys.stderr,
    )
