"""`wfcelery ps` and `show`: reading runs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of

if TYPE_CHECKING:
    from wfcelery.core.values import Json

STATUSES: Final = ("running", "paused", "completed", "failed", "cancelled")


@click.command(
    cls=Command,
    examples=(
        "wfcelery ps",
        "wfcelery ps --status failed --flow order --since 2h",
        "wfcelery ps --key order-17 -o ids",
        "wfcelery ps --status failed -o ids | wfcelery retry -",
    ),
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Only runs with this status; repeatable.",
)
@click.option("--flow", metavar="NAME", help="Only runs of this flow.")
@click.option("--key", metavar="KEY", help="Only runs with this business key.")
@click.option("--user", metavar="NAME", help="Only runs started by this user.")
@click.option("--tag", metavar="TAG", help="Only runs with this tag.")
@click.option(
    "--since", metavar="TIME", help="Only runs started since: 30m, 2h, 1d ago, or a time with its zone."
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@database_option
@output_option("table", "json", "ids")
@debug_option
def ps(
    *,
    statuses: tuple[str, ...],
    flow: str | None,
    key: str | None,
    user: str | None,
    tag: str | None,
    since: str | None,
    limit: int,
    database: str | None,
    output: str,
) -> None:
    """List runs, the newest first."""
    from wfcelery.cli.database import Right, reading
    from wfcelery.cli.moments import parse_since
    from wfcelery.cli.output import brief, print_json, print_table, short_time
    from wfcelery.store import views

    earliest = None if since is None else parse_since(since, time.time(), "--since")
    with reading(settings_of(database=database), Right(flow=flow or "")) as conn:
        found = views.runs(
            conn,
            status=statuses,
            name=flow,
            key=key,
            created_by=user,
            tag=tag,
            since=earliest,
            limit=limit,
        )
    if output == "json":
        print_json(found)
    elif output == "ids":
        for run in found:
            click.echo(str(run["id"]))
    else:
        rows = [
            (
                str(run["id"]),
                f"{run['name']}@{run['version']}",
                f"{_sign(str(run['status']))} {run['status']}",
                str(run["created_by"]),
                short_time(run["created_at"]),
                str(run["key"] or ""),
                brief(_reason(run["error"])),
            )
            for run in found
        ]
        print_table(("RUN", "FLOW", "STATUS", "BY", "STARTED", "KEY", "ERROR"), rows)


@click.command(
    cls=Command,
    examples=(
        "wfcelery show 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery show 01k9z3n5m8q0r2t4v6x8y0a1b2 -o json",
    ),
)
@click.argument("run", metavar="RUN")
@click.option("--all", "everything", is_flag=True, help="List every item of a foreach.")
@database_option
@output_option("text", "json", "ids")
@debug_option
def show(*, run: str, everything: bool, database: str | None, output: str) -> None:
    """Show a run and its steps.

    With -o ids: the ids of its steps.
    """
    from wfcelery.cli.database import Right, reading
    from wfcelery.cli.output import print_json
    from wfcelery.cli.run_page import print_run
    from wfcelery.errors import NotFound
    from wfcelery.store import views

    with reading(settings_of(database=database), Right(run=run)) as conn:
        found = views.run(conn, run)
    if found is None:
        raise NotFound("run", run, "`wfcelery ps` lists the runs")
    steps = found["steps"]
    if output == "json":
        print_json(found)
    elif output == "ids":
        for step in steps if isinstance(steps, list) else []:
            click.echo(step["id"])
    else:
        print_run(found, everything=everything)


def _reason(error: Json) -> str:
    from collections.abc import Mapping

    return f"{error['type']}: {error['message']}" if isinstance(error, Mapping) else ""


def _sign(status: str) -> str:
    from wfcelery.cli.symbols import sign, signs_for
    from wfcelery.insight.standing import kind_of_status

    return sign(signs_for(sys.stdout), kind_of_status(status))
