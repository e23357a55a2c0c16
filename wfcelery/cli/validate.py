"""`wfcelery validate`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from wfcelery.cli.failures import INVALID, SUCCESS
from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    flow_paths_argument,
    output_option,
    see_modules_here,
    settings_of,
    tools_option,
)


@click.command(
    cls=Command,
    examples=(
        "wfcelery validate flows/",
        "wfcelery validate order.yaml --tools shop.tools",
        "wfcelery validate order.yaml -o json",
    ),
)
@flow_paths_argument
@tools_option
@database_option
@output_option("text", "json")
@debug_option
def validate(*, paths: tuple[Path, ...], tools: str | None, database: str | None, output: str) -> int:
    """Check flows and list every fault.

    Files and folders, YAML and JSON. Sub-flows are looked for in the same folder, then in the database.
    Exit code 2 if there is a fault.
    """
    from wfcelery.cli.checking import check_files
    from wfcelery.cli.files import lines_of, tally
    from wfcelery.cli.output import print_json
    from wfcelery.tools import Registry
    from wfcelery.tools.catalogue import Catalogue

    settings = settings_of(database=database, tools=tools)
    see_modules_here()
    checked = check_files(paths, Catalogue(Registry.load(settings.tools)), settings)
    if output == "json":
        several = checked.count > 1 or len(paths) > 1
        print_json(
            [
                {**asdict(fault), **({"file": each.file} if several else {})}
                for each in checked.faulty
                for fault in each.faults
            ]
        )
    else:
        for line in lines_of(checked.faulty):
            click.echo(line)
        click.echo(tally(checked.count, checked.faulty), err=True)
    return INVALID if checked.faulty else SUCCESS
