"""`wfcelery check`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from wfcelery.cli.failures import FAILED, SUCCESS
from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow


@click.command(
    cls=Command,
    examples=(
        "wfcelery check",
        "wfcelery check --database postgresql://db/wfcelery -o json",
    ),
)
@database_option
@output_option("text", "json")
@debug_option
def check(*, database: str | None, output: str) -> int:
    """Prove that the history of every run gives its rows.

    Folds the events of each run and compares them with the tables; looks for tokens, votes and payloads
    that do not agree. Changes nothing. Exit code 1 if anything is wrong.
    """
    from wfcelery.cli.database import reading
    from wfcelery.cli.output import print_json
    from wfcelery.core.limits import DEFAULT
    from wfcelery.executor.definitions import Definitions
    from wfcelery.store import check as checking

    definitions = Definitions(None, DEFAULT)
    with reading(settings_of(database=database)) as conn:

        def flow_of(definition_id: str) -> Flow:
            return definitions.get(conn, definition_id).flow

        problems = checking.check(conn, flow_of)
    if output == "json":
        print_json([asdict(problem) for problem in problems])
    else:
        for problem in problems:
            click.echo(str(problem))
        count = len(problems)
        said = "everything agrees" if not count else "1 problem" if count == 1 else f"{count} problems"
        click.echo(said, err=True)
    return FAILED if problems else SUCCESS
