"""`wfcelery events`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wfcelery.cli.database import Reader
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.core.values import Json

PAGE: Final = 1000
LOOK_EVERY_S: Final = 0.2
HEAD: Final = ("SEQ", "AT", "EVENT", "STEP", "BY", "DATA")
# What follows a run cannot know how wide its columns will be.
WIDTHS: Final = (5, 23, 16, 16, 10, 0)


@click.command(
    cls=Command,
    examples=(
        "wfcelery events 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery events 01k9z3n5m8q0r2t4v6x8y0a1b2 -f",
        "wfcelery events 01k9z3n5m8q0r2t4v6x8y0a1b2 --after 12 -o json",
    ),
)
@click.argument("run", metavar="RUN")
@click.option(
    "--after", type=click.IntRange(0), default=0, metavar="SEQ", help="Only what came after this event."
)
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens, until the run ends.")
@database_option
@output_option("table", "json")
@debug_option
def events(
    *, run: str, after: int, limit: int | None, follow: bool, database: str | None, output: str
) -> None:
    """Show what happened in a run.

    Who did what and when, from the first event to the last. With -f -o json the list is written as it grows
    and closed when the run ends.
    """
    from itertools import islice

    from wfcelery.cli.database import Right, reading_again
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.cli.output import print_json, print_table
    from wfcelery.errors import NotFound
    from wfcelery.store import views

    with reading_again(settings_of(database=database), Right(run=run)) as reader:
        with reader.reading() as conn:
            if not views.events(conn, run, limit=1):
                raise NotFound("run", run, "`wfcelery ps` lists the runs")
        if follow:
            with Interrupt() as interrupt:
                stream = islice(_followed(reader, run, after, interrupt), limit)
                (_stream_json if output == "json" else _stream_lines)(stream)
            return
        found = list(islice(_read(reader, run, after), limit))
    if output == "json":
        print_json(found)
    else:
        print_table(HEAD, map(_row, found))


def _read(reader: Reader, run: str, after: int) -> Iterator[dict[str, Json]]:
    from wfcelery.store import views

    while True:
        with reader.reading() as conn:
            page = views.events(conn, run, after_seq=after, limit=PAGE)
        yield from page
        if len(page) < PAGE:
            return
        after = int(str(page[-1]["seq"]))


def _followed(reader: Reader, run: str, after: int, interrupt: Interrupt) -> Iterator[dict[str, Json]]:
    """Give the events as they come, until the run has ended; raise `KeyboardInterrupt` when asked to stop."""
    import time

    from wfcelery.core.state import LIVE
    from wfcelery.store import runs

    while True:
        interrupt.check()
        # Asked before the events are read: what ends the run is then among them.
        with reader.reading() as conn:
            standing = runs.standing(conn, run)
        for event in _read(reader, run, after):
            after = int(str(event["seq"]))
            yield event
        if standing is None or standing.status not in LIVE:
            return
        time.sleep(LOOK_EVERY_S)


def _stream_lines(found: Iterable[Mapping[str, Json]]) -> None:
    _line(HEAD)
    for event in found:
        _line(_row(event))


def _line(cells: Iterable[str]) -> None:
    from wfcelery.cli.output import plain

    padded = (plain(cell).ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    click.echo("  ".join(padded).rstrip())


def _stream_json(found: Iterable[Mapping[str, Json]]) -> None:
    """Write a list while it grows; it is whole even when the reading is interrupted."""
    import textwrap

    from wfcelery.cli.output import as_json

    before = "[\n"
    try:
        for event in found:
            click.echo(before + textwrap.indent(as_json(event), "  "), nl=False)
            before = ",\n"
    finally:
        click.echo("[]" if before == "[\n" else "\n]")


def _row(event: Mapping[str, Json]) -> tuple[str, ...]:
    from wfcelery.cli.output import brief

    return (
        str(event["seq"]),
        str(event["at"])[:23].replace("T", " "),
        str(event["type"]),
        _place(event),
        str(event["actor"] or ""),
        brief(event["data"], 80) if event["data"] else "",
    )


def _place(event: Mapping[str, Json]) -> str:
    if event["step"] is None:
        return ""
    item = "" if event["item"] is None else f"[{event['item']}]"
    attempt = f" #{event['attempt']}" if event["attempt"] not in (None, 1) else ""
    return f"{event['step']}{item}{attempt}"
