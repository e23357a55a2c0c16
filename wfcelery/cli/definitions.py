"""`wfcelery define` and `wfcelery definitions`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    flow_paths_argument,
    output_option,
    see_modules_here,
    settings_of,
    tools_option,
    user_option,
)

if TYPE_CHECKING:
    from wfcelery.cli.files import FlowFile
    from wfcelery.core.values import Json


@click.command(
    cls=Command,
    examples=(
        "wfcelery define flows/",
        "wfcelery define order.yaml --tools shop.tools",
        "wfcelery run $(wfcelery define order.yaml -o ids)",
    ),
)
@flow_paths_argument
@user_option
@tools_option
@database_option
@output_option("table", "json", "ids")
@debug_option
def define(
    *, paths: tuple[Path, ...], user: str | None, tools: str | None, database: str | None, output: str
) -> None:
    """Keep flows in the database under their names.

    A flow that is kept never changes: a changed file becomes the next version, the same file stays the same
    version. All files are checked before any is kept. Flows that they call are taken from the same folder.
    """
    from wfcelery.cli.checking import check_files
    from wfcelery.cli.desk import open_desk
    from wfcelery.cli.files import FaultyFiles
    from wfcelery.cli.siblings import in_order
    from wfcelery.core.messages import Principal
    from wfcelery.executor.answers import new_command_id
    from wfcelery.executor.messages import Define
    from wfcelery.tools import Registry
    from wfcelery.tools.catalogue import Catalogue

    settings = settings_of(database=database, tools=tools, user=user)
    see_modules_here()
    registry = Registry.load(settings.tools)
    checked = check_files(paths, Catalogue(registry), settings)
    if checked.faulty:
        raise FaultyFiles(checked.faulty, checked.count)
    wanted: dict[Path, FlowFile] = {}
    for file in checked.good:
        for each in (*in_order(file), file):
            wanted.setdefault(each.path.resolve(), each)
    made: list[dict[str, Json]] = []
    with open_desk(settings, registry) as desk:
        for each in wanted.values():
            answer = desk.ask(Define(new_command_id(), each.data, Principal(settings.user), each.name))
            made.append(
                {"name": answer.data["name"], "version": answer.data["version"], "id": answer.data["id"]}
            )
    _print(made, output)


@click.command(
    cls=Command,
    examples=(
        "wfcelery definitions",
        "wfcelery definitions order -o json",
    ),
)
@click.argument("name", required=False)
@database_option
@output_option("table", "json", "ids")
@debug_option
def definitions(*, name: str | None, database: str | None, output: str) -> None:
    """List the flows that are kept.

    The newest version of each; with NAME, every version of that flow, the newest first.
    """
    from wfcelery.cli.database import Right, reading
    from wfcelery.errors import NotFound
    from wfcelery.store import definitions as stored
    from wfcelery.store import views
    from wfcelery.store.times import iso

    with reading(settings_of(database=database), Right(flow=name or "")) as conn:
        if name is None:
            found = views.definitions(conn)
        else:
            found = [
                {
                    "id": each.id,
                    "name": each.name,
                    "version": each.version,
                    "created_by": each.created_by,
                    "created_at": iso(each.created_at),
                }
                for each in stored.versions(conn, name)
            ]
            if not found:
                raise NotFound("definition", name, "`wfcelery definitions` lists what there is")
    _print(found, output)


def _print(found: list[dict[str, Json]], output: str) -> None:
    from wfcelery.cli.output import print_json, print_table, short_time

    if output == "json":
        print_json(found)
    elif output == "ids":
        for each in found:
            click.echo(f"{each['name']}@{each['version']}")
    else:
        rows = [
            (
                str(each["name"]),
                str(each["version"]),
                str(each.get("created_by", "")),
                short_time(each.get("created_at")),
                str(each["id"])[:12],
            )
            for each in found
        ]
        if found and "created_at" not in found[0]:
            print_table(
                ("NAME", "VERSION", "ID"), [(name, version, id_) for name, version, _, _, id_ in rows]
            )
        else:
            print_table(("NAME", "VERSION", "BY", "AT", "ID"), rows)
