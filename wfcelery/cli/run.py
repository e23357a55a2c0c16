"""`wfcelery run`: its arguments. The work is in `running` and `session`, the words in `run_words`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from wfcelery.cli.failures import INTERRUPTED
from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    output_option,
    see_modules_here,
    settings_of,
    tools_option,
    user_option,
)

if TYPE_CHECKING:
    from wfcelery.cli.run_request import Request


@click.command(
    cls=Command,
    examples=(
        "wfcelery run flows/hello.yaml -i name=Ann",
        "wfcelery run order.yaml -i amount:=900 -i @customer.json --tools shop.tools",
        'wfcelery run order@3 --key order-17 --approve review --comment "as agreed"',
        "wfcelery run --resume 01k9z3n5m8q0r2t4v6x8y0a1b2 --deny review",
    ),
)
@click.argument("flow", required=False)
@click.option(
    "-i",
    "--input",
    "given",
    multiple=True,
    metavar="INPUT",
    help="key=text, key:=json or @file.json; repeatable.",
)
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted or waits.")
@click.option("--approve", multiple=True, metavar="STEP", help="Approve this gate when it opens; repeatable.")
@click.option("--deny", multiple=True, metavar="STEP", help="Deny this gate when it opens; repeatable.")
@click.option("--comment", default="", metavar="TEXT", help="What to say with --approve and --deny.")
@click.option(
    "--signal",
    "signals",
    multiple=True,
    metavar="NAME[=JSON]",
    help="Answer a wait for this signal; repeatable.",
)
@click.option("--no-wait-gates", is_flag=True, help="Stop at a gate with exit code 6 instead of asking.")
@click.option("--key", metavar="KEY", help="Business key: one live run of a flow for each.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the run; repeatable.")
@click.option(
    "--workers", type=click.IntRange(1, 1000), default=8, show_default=True, help="Tools that run at a time."
)
@user_option
@tools_option
@database_option
@output_option("text", "json")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@debug_option
def run(
    *,
    flow: str | None,
    given: tuple[str, ...],
    resume: str | None,
    approve: tuple[str, ...],
    deny: tuple[str, ...],
    comment: str,
    signals: tuple[str, ...],
    no_wait_gates: bool,
    key: str | None,
    tags: tuple[str, ...],
    workers: int,
    user: str | None,
    tools: str | None,
    database: str | None,
    output: str,
    quiet: bool,
) -> int:
    """Run a flow to its end, here and now.

    FLOW is a file (YAML or JSON), or the name of a flow that was defined: NAME or NAME@VERSION. Every step is
    written to the database before the next begins: stop it with Ctrl-C, kill it, pull the plug, and --resume
    goes on from there. Gates are asked on the terminal, or answered by --approve and --deny.

    Exit codes: 0 completed, 1 failed or cancelled, 2 flow or input not valid, 3 not found, 4 refused,
    5 database out of reach, 6 waits for a person or a signal, 130 interrupted.
    """
    from wfcelery.cli.inputs import parse_input, parse_signal
    from wfcelery.cli.run_request import Request
    from wfcelery.cli.session import Answers

    if (flow is None) == (resume is None):
        raise click.UsageError("name a FLOW, or a run to --resume; not both")
    if resume is not None and (given or key or tags):
        raise click.UsageError(
            "--resume goes on with what was given at the start: leave -i, --key and --tag out"
        )
    both = sorted(set(approve) & set(deny))
    if both:
        raise click.UsageError(f"--approve and --deny both name {both[0]}")
    settings = settings_of(database=database, tools=tools, user=user)
    see_modules_here()
    request = Request(
        flow=flow,
        input=parse_input(given),
        resume=resume,
        answers=Answers(frozenset(approve), frozenset(deny), comment, dict(map(parse_signal, signals))),
        may_ask=not no_wait_gates and sys.stdin.isatty() and sys.stderr.isatty(),
        key=key,
        tags=tags,
        workers=workers,
        settings=settings,
        # What must be said again for the next command to find the same things.
        flags={"--database": database, "--tools": tools, "--user": user},
        as_json=output == "json",
        is_quiet=quiet,
    )
    return _answer(request)


def _answer(request: Request) -> int:
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.cli.run_words import Words
    from wfcelery.cli.running import Running

    running = Running(request, Words(request, sys.stderr))
    with Interrupt() as interrupt:
        try:
            return running.answer(interrupt)
        except KeyboardInterrupt:
            running.words.interrupted(running.run_id if running.has_begun else None)
            return INTERRUPTED
