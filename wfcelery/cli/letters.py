"""`wfcelery dead-letters`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.store.dead_letters import DeadLetter


@click.command(
    name="dead-letters",
    cls=Command,
    examples=(
        "wfcelery dead-letters",
        "wfcelery dead-letters --show 17",
        "wfcelery dead-letters -o json",
    ),
)
@click.option("--show", type=int, metavar="ID", help="Show one whole message.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@database_option
@output_option("table", "json", "ids")
@debug_option
def dead_letters(*, show: int | None, limit: int, database: str | None, output: str) -> None:
    """List messages that could not be handled.

    The executor sets them aside with the reason, the newest first, and forgets them after 30 days.
    """
    from wfcelery.cli.database import reading
    from wfcelery.cli.output import brief, print_json, print_table, short_time
    from wfcelery.errors import NotFound
    from wfcelery.store import dead_letters as stored
    from wfcelery.store.times import iso

    with reading(settings_of(database=database)) as conn:
        if show is not None:
            letter = stored.get(conn, show)
            if letter is None:
                raise NotFound("dead letter", str(show), "`wfcelery dead-letters` lists them")
            _print_one(letter, output)
            return
        found = stored.listing(conn, limit)
    if output == "json":
        print_json([_as_json(each) for each in found])
    elif output == "ids":
        for each in found:
            click.echo(str(each.id))
    else:
        rows = [
            (
                str(each.id),
                short_time(iso(each.at)),
                each.run_id or "",
                brief(each.error),
                brief(each.message),
            )
            for each in found
        ]
        print_table(("ID", "AT", "RUN", "ERROR", "MESSAGE"), rows)


def _print_one(letter: DeadLetter, output: str) -> None:
    from wfcelery.cli.output import plain, print_json, short_time
    from wfcelery.store.times import iso

    if output == "json":
        print_json(_as_json(letter))
    elif output == "ids":
        click.echo(str(letter.id))
    else:
        click.echo(f"dead letter {letter.id}")
        click.echo(f"  at     {short_time(iso(letter.at))} UTC")
        click.echo(f"  run    {letter.run_id or 'none'}")
        click.echo(f"  error  {plain(letter.error)}")
        click.echo(f"\n{plain(letter.message)}")


def _as_json(letter: DeadLetter) -> dict[str, Json]:
    from wfcelery.store.times import iso

    return {
        "id": letter.id,
        "at": iso(letter.at),
        "run_id": letter.run_id,
        "error": letter.error,
        "message": letter.message,
    }
