"""`wfcelery graph`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wfcelery.cli.options import Command, database_option, debug_option, settings_of

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow
    from wfcelery.core.values import Json
    from wfcelery.settings import Settings


@click.command(
    cls=Command,
    examples=(
        "wfcelery graph flows/approval.yaml",
        "wfcelery graph order@3 --svg > order.svg",
        "wfcelery graph order@3 --mermaid > order.mmd",
        "wfcelery graph 01k9z3n5m8q0r2t4v6x8y0a1b2",
    ),
)
@click.argument("what", metavar="FLOW|RUN")
@click.option("--svg", is_flag=True, help="Draw it as an SVG image instead of the terminal.")
@click.option("--mermaid", is_flag=True, help="Draw it for Mermaid instead of the terminal.")
@database_option
@debug_option
def graph(*, what: str, svg: bool, mermaid: bool, database: str | None) -> None:
    """Draw a flow, or a run with the status of its steps.

    A file, the name of a flow that was defined (NAME or NAME@VERSION), or the id of a run.
    """
    from wfcelery.cli.graph_mermaid import mermaid as as_mermaid
    from wfcelery.cli.graph_tree import tree
    from wfcelery.cli.symbols import sign, signs_for, wants_colour
    from wfcelery.drawing.svg import svg as as_svg
    from wfcelery.insight.standing import Standing, standing

    if svg and mermaid:
        raise click.UsageError("--svg and --mermaid exclude each other; give one of them")
    flow, run = _found(what, settings_of(database=database))
    stands = Standing() if run is None else standing(flow, run)
    if svg:
        # An image is UTF-8, whatever the terminal speaks.
        picture = as_svg(flow, stands.drawn, tallies=stands.tallies, standalone=True)
        click.echo(picture.encode(), nl=False)
        return
    signs, colour = signs_for(sys.stdout), wants_colour(sys.stdout)

    def mark(step: str) -> str:
        if run is None:
            return signs.step
        drawn = sign(signs, stands.kinds.get(step, "waiting"), colour=colour)
        return f"{drawn} {stands.tallies[step]}" if step in stands.tallies else drawn

    if mermaid:
        marks = {name: sign(signs, kind) for name, kind in stands.kinds.items()}
        click.echo(as_mermaid(flow, stands.statuses, marks))
        return
    click.echo(flow.name)
    for line in tree(flow, signs, mark):
        click.echo(line)


def _found(what: str, settings: Settings) -> tuple[Flow, Mapping[str, Json] | None]:
    """Give the flow, and the run if it is one."""
    from wfcelery.cli.files import faults_in, is_file_name, read_flow
    from wfcelery.core import ids
    from wfcelery.core.document import compile_flow

    if is_file_name(what):
        file = read_flow(Path(what))
        with faults_in(file.path):
            return compile_flow(file.data, place=file.place, name=file.name), None
    from wfcelery.cli.database import Right, reading
    from wfcelery.core.limits import DEFAULT
    from wfcelery.errors import NotFound
    from wfcelery.executor.definitions import Definitions
    from wfcelery.store import views

    definitions = Definitions(None, DEFAULT)
    right = Right(run=what) if ids.is_run_id(what) else Right(flow=what.partition("@")[0])
    with reading(settings, right) as conn:
        run = views.run(conn, what) if ids.is_run_id(what) else None
        if run is None:
            try:
                return definitions.find(conn, what).flow, None
            except NotFound:
                if not ids.is_run_id(what):
                    raise
                raise NotFound("run", what, "`wfcelery ps` lists the runs") from None
        # The first event names the definition, also one that was deleted since.
        first = views.events(conn, what, limit=1)[0]["data"]
        definition = str(first["definition"]) if isinstance(first, Mapping) else ""
        flow = definitions.get(conn, definition).flow
    return flow, run
