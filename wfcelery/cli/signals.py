"""`wfcelery signal`."""

from __future__ import annotations

import click

from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    output_option,
    settings_of,
    user_option,
)


@click.command(
    cls=Command,
    examples=(
        "wfcelery signal 01k9z3n5m8q0r2t4v6x8y0a1b2 paid -i amount:=900",
        "wfcelery signal --flow order --key order-17 paid",
        "wfcelery signal --key 17 paid -i @payment.json",
    ),
)
@click.argument("words", nargs=-1, required=True, metavar="[RUN] NAME")
@click.option(
    "-i",
    "--input",
    "given",
    multiple=True,
    metavar="INPUT",
    help="The payload: key=text, key:=json or @file.json; repeatable.",
)
@click.option("--flow", metavar="NAME", help="With --key: the live run of this flow with this business key.")
@click.option("--key", metavar="KEY", help="Without --flow: everybody who waits for it with this key.")
@user_option
@database_option
@output_option("text", "json", "ids")
@debug_option
def signal(
    *,
    words: tuple[str, ...],
    given: tuple[str, ...],
    flow: str | None,
    key: str | None,
    user: str | None,
    database: str | None,
    output: str,
) -> int:
    """Tell a run something that it waits for.

    A run for which it comes too early keeps it. By key alone it reaches everybody who waits for it with that
    key, or is kept for a week if nobody does. RUN may be `-`: ids from stdin.
    """
    from wfcelery.cli.database import require
    from wfcelery.cli.desk import open_desk
    from wfcelery.cli.inputs import parse_input
    from wfcelery.cli.outcomes import Outcome, for_each, show
    from wfcelery.cli.targets import run_ids, run_with_key
    from wfcelery.core.messages import Principal, Signal
    from wfcelery.executor.answers import new_command_id
    from wfcelery.executor.messages import Broadcast

    settings = settings_of(database=database, user=user)
    by = Principal(settings.user)
    payload = parse_input(given) if given else None
    by_key = flow is not None or key is not None
    if len(words) != (1 if by_key else 2):
        raise click.UsageError("name a RUN and the signal's NAME; with --key the NAME only")
    name = words[-1]
    require(settings)
    if flow is None and key is not None:
        with open_desk(settings) as desk:
            reached = desk.ask(Broadcast(new_command_id(), name, key, by, payload)).data["reached"]
        found = list(map(str, reached)) if isinstance(reached, list) else []
        if not found:
            click.echo(f"nobody waits for {name} with key {key} now; it is kept for a week", err=True)
        return show([Outcome(run, f"told {name}") for run in found], output)
    wanted = [run_with_key(settings, flow, key)] if by_key else run_ids(words[:1])
    with open_desk(settings) as desk:

        def act(run: str) -> str:
            desk.ask(Signal(new_command_id(), run, name, by, payload))
            return f"told {name}"

        return show(for_each(wanted, act), output)
