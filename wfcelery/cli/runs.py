"""`wfcelery ps`, `show` and `events`: reading runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfcelery.core.values import Json

PAGE: Final = 1000
STATUSES: Final = ("running", "paused", "completed", "failed", "cancelled")


@click.command(
    cls=Command,
    examples=(
        "wfcelery ps",
        "wfcelery ps --status failed --flow order",
        "wfcelery ps --key order-17 -o ids",
    ),
)
@click.option("--status", type=click.Choice(STATUSES), help="Only runs with this status.")
@click.option("--flow", metavar="NAME", help="Only runs of this flow.")
@click.option("--key", metavar="KEY", help="Only runs with this business key.")
@click.option("--user", metavar="NAME", help="Only runs started by this user.")
@click.option("--tag", metavar="TAG", help="Only runs with this tag.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@database_option
@output_option("table", "json", "ids")
@debug_option
def ps(
    *,
    status: str | None,
    flow: str | None,
    key: str | None,
    user: str | None,
    tag: str | None,
    limit: int,
    database: str | None,
    output: str,
) -> None:
    """List runs, the newest first."""
    from wfcelery.cli.database import reading
    from wfcelery.cli.output import brief, print_json, print_table, short_time
    from wfcelery.store import views

    with reading(settings_of(database=database)) as conn:
        found = views.runs(conn, status=status, name=flow, key=key, created_by=user, tag=tag, limit=limit)
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
    from wfcelery.cli.database import reading
    from wfcelery.cli.output import print_json
    from wfcelery.cli.run_page import print_run
    from wfcelery.errors import NotFound
    from wfcelery.store import views

    with reading(settings_of(database=database)) as conn:
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


@click.command(
    cls=Command,
    examples=(
        "wfcelery events 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery events 01k9z3n5m8q0r2t4v6x8y0a1b2 --after 12 -o json",
    ),
)
@click.argument("run", metavar="RUN")
@click.option(
    "--after", type=click.IntRange(0), default=0, metavar="SEQ", help="Only what came after this event."
)
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@database_option
@output_option("table", "json")
@debug_option
def events(*, run: str, after: int, limit: int | None, database: str | None, output: str) -> None:
    """Show what happened in a run.

    Who did what and when, from the first event to the last.
    """
    from wfcelery.cli.database import reading
    from wfcelery.cli.output import brief, print_json, print_table
    from wfcelery.errors import NotFound
    from wfcelery.store import views

    found: list[dict[str, Json]] = []
    with reading(settings_of(database=database)) as conn:
        if not views.events(conn, run, limit=1):
            raise NotFound("run", run, "`wfcelery ps` lists the runs")
        while limit is None or len(found) < limit:
            wanted = PAGE if limit is None else min(PAGE, limit - len(found))
            page = views.events(conn, run, after_seq=after, limit=wanted)
            found += page
            if len(page) < wanted:
                break
            after = int(str(page[-1]["seq"]))
    if output == "json":
        print_json(found)
        return
    rows = [
        (
            str(event["seq"]),
            str(event["at"])[:23].replace("T", " "),
            str(event["type"]),
            _place(event),
            str(event["actor"] or ""),
            brief(event["data"], 80) if event["data"] else "",
        )
        for event in found
    ]
    print_table(("SEQ", "AT", "EVENT", "STEP", "BY", "DATA"), rows)


def _place(event: Mapping[str, Json]) -> str:
    if event["step"] is None:
        return ""
    item = "" if event["item"] is None else f"[{event['item']}]"
    attempt = f" #{event['attempt']}" if event["attempt"] not in (None, 1) else ""
    return f"{event['step']}{item}{attempt}"


def _reason(error: Json) -> str:
    from collections.abc import Mapping

    return f"{error['type']}: {error['message']}" if isinstance(error, Mapping) else ""


def _sign(status: str) -> str:
    from wfcelery.cli.symbols import kind_of_status, sign, signs_for

    return sign(signs_for(sys.stdout), kind_of_status(status))
