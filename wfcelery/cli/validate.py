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
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...", type=click.Path(path_type=Path))
@tools_option
@database_option
@output_option("text", "json")
@debug_option
def validate(*, paths: tuple[Path, ...], tools: str | None, database: str | None, output: str) -> int:
    """Check flows and list every fault.

    Files and folders, YAML and JSON. Sub-flows are looked for in the same folder, then in the database.
    Exit code 2 if there is a fault.
    """
    from wfcelery.cli.checking import check_file
    from wfcelery.cli.files import FaultyFile, fault_line, flow_paths, read_flow
    from wfcelery.cli.output import print_json
    from wfcelery.errors import InvalidInput
    from wfcelery.tools import Registry
    from wfcelery.tools.catalogue import Catalogue

    settings = settings_of(database=database, tools=tools)
    see_modules_here()
    catalogue = Catalogue(Registry.load(settings.tools))
    files = list(flow_paths(paths))
    if not files:
        raise InvalidInput(str(paths[0]), "holds no flows; they end in .yaml, .yml or .json")
    faulty: list[FaultyFile] = []
    for path in files:
        try:
            check_file(read_flow(path), catalogue, settings)
        except FaultyFile as error:
            faulty.append(error)
    if output == "json":
        several = len(files) > 1
        print_json(
            [
                {**asdict(fault), **({"file": each.file} if several else {})}
                for each in faulty
                for fault in each.faults
            ]
        )
    else:
        for each in faulty:
            for fault in each.faults:
                click.echo(fault_line(each.file, fault))
        click.echo(_summary(len(files), [len(each.faults) for each in faulty]), err=True)
    return INVALID if faulty else SUCCESS


def _summary(files: int, faults: list[int]) -> str:
    checked = "1 flow" if files == 1 else f"{files} flows"
    if not faults:
        return f"{checked}, no faults"
    count = "1 fault" if sum(faults) == 1 else f"{sum(faults)} faults"
    return f"{checked}, {count} in {len(faults)}"
