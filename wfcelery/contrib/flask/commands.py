"""`flask wfcelery ...`: our own commands, with the settings of the application, and its relay."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final

import click
from flask import current_app
from flask.cli import with_appcontext

from wfcelery.cli import main
from wfcelery.cli.failures import NOT_CONFIRMED, REFUSED, SUCCESS, tell
from wfcelery.errors import NotReachable, WfceleryError
from wfcelery.workflows.outbox import EVERY_S, Delivery, Relay

if TYPE_CHECKING:
    from wfcelery.contrib.flask.host import Host
    from wfcelery.contrib.flask.table import OutboxRows

RELAY: Final = "relay"
NAME: Final = "wfcelery"
HELP: Final = f"""Run a command of wfcelery with the settings of this application.

`flask wfcelery --help` lists the commands; `flask wfcelery {RELAY} --help` is one of the application's own.
"""


@click.command(
    NAME,
    help=HELP,
    short_help="Run a command of wfcelery with the settings of this application.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
@with_appcontext
def wfcelery(ctx: click.Context, args: tuple[str, ...]) -> None:
    """Hand the words over; see `HELP`."""
    host: Host = current_app.extensions[NAME]
    if args[:1] == (RELAY,):
        with ctx.scope(cleanup=False):
            ctx.exit(
                relay.main(list(args[1:]), f"flask {NAME} {RELAY}", standalone_mode=False, obj=host) or 0
            )
    # Processes that a command starts know nothing of the application: what it has set reaches them like this.
    os.environ.update(host.config.environment())
    sys.argv = [NAME, *args]
    if args[:1] in (("--help",), ("-h",), ()):
        click.echo(f"In this application also: flask {NAME} {RELAY}, which sends starts from its outbox.\n")
    main()


@click.command(RELAY)
@click.option("--once", is_flag=True, help="Send what is due, say what came of it, and end.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_obj
def relay(host: Host, *, once: bool, debug: bool) -> int:
    """Send the starts that wait in the application's outbox, until told to stop.

    One is enough; more of them do no harm. With --once the exit code is 7 if starts still wait, and 4 if one
    was refused.
    """
    try:
        rows = host.rows()
        sender = host.relay()
        return _once(sender, rows) if once else _until_stopped(sender, rows)
    except WfceleryError as error:
        return tell(error, debug=debug)


def _once(sender: Relay, rows: OutboxRows) -> int:
    total = Delivery()
    while True:
        made = sender.once(rows)
        total = Delivery(
            (*total.answered, *made.answered),
            (*total.waiting, *made.waiting),
            (*total.refused, *made.refused),
        )
        if not made.answered:
            break
    waiting = rows.waiting()
    click.echo(f"started {len(total.answered)}, refused {len(total.refused)}, waiting {waiting}")
    for each in (*total.refused, *total.waiting):
        click.echo(f"{each.id}: {each.error}", err=True)
    if total.refused:
        return REFUSED
    return NOT_CONFIRMED if waiting else SUCCESS


def _until_stopped(sender: Relay, rows: OutboxRows) -> int:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    click.echo("the relay is ready.", err=True)
    said = ""
    while not stop.is_set():
        try:
            sender.run(rows, stop)
        except NotReachable as error:
            # The application's database is away: it will be back, and what is due is in it.
            if str(error) != said:
                said = str(error)
                click.echo(f"wfcelery: {said}", err=True)
            stop.wait(EVERY_S)
    return SUCCESS
