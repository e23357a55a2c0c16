"""`manage.py wfcelery ...`: our command line with this project's settings, and `relay`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

import click
from django.core.management.base import BaseCommand
from django.db import connections, router

from wfcelery.cli import answer
from wfcelery.cli.failures import tell
from wfcelery.contrib.django import conf, discovery
from wfcelery.contrib.django.models import Outbox
from wfcelery.contrib.django.place import workflows
from wfcelery.contrib.django.relay import Rows
from wfcelery.errors import WfceleryError
from wfcelery.workflows.outbox import EVERY_S, Relay

# Django has taken them from the command line already, and leaves them there.
_DJANGOS: Final = ("--settings", "--pythonpath")
_HELP: Final = """
In this project also:
  relay [--once] [--database ALIAS] [--every SECONDS]   Send what waits in the outbox.
  define                                                Without files: keep the flows of all installed apps.
"""


class Command(BaseCommand):  # type: ignore[misc] # Django ships no types
    """Passes everything on; `manage.py wfcelery --help` lists the commands."""

    help = "Workflows: executor, worker, up, define, ps, show, relay and more."

    def run_from_argv(self, argv: list[str]) -> None:
        """Answer the words after `wfcelery`, options and all."""
        sys.exit(self._answer(_own(argv[2:])))

    def add_arguments(self, parser: Any) -> None:  # noqa: ANN401 - Django's signature
        """Take the same words from `call_command`."""
        parser.add_argument("words", nargs=argparse.REMAINDER)

    def handle(self, *_: object, words: list[str], **__: object) -> None:
        """Answer what `call_command` asks for."""
        code = self._answer(words)
        if code:
            sys.exit(code)

    def _answer(self, words: list[str]) -> int:
        try:
            if words[:1] == ["relay"]:
                return int(
                    relay.main(words[1:], prog_name="manage.py wfcelery relay", standalone_mode=False) or 0
                )
            # What an earlier `up` has noted tells others where the system is, not `up` where it should be.
            os.environ.update(conf.environment(system=words[:1] != ["up"]))
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except (KeyboardInterrupt, click.Abort):
            return 130
        except WfceleryError as error:
            return tell(error, debug=False)
        _let_children_find_the_project()
        # What forks must not share a connection with its parent.
        connections.close_all()
        if words == ["define"]:
            words = [*words, *map(str, discovery.flow_folders())]
        code = answer(words or ["--help"])
        if not words or words == ["--help"]:
            self.stdout.write(_HELP)
        return code


@click.command()
@click.option("--once", is_flag=True, help="Send what is due, and end.")
@click.option(
    "--database", metavar="ALIAS", help="The database whose outbox it is. Default: where Django writes it."
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.05),
    default=EVERY_S,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
def relay(*, once: bool, database: str | None, every: float) -> int:
    """Send what waits in the outbox, and remove what was answered. Any number of relays may run."""
    rows = Rows(database or router.db_for_write(Outbox))
    sender = Relay(workflows().links)
    if once:
        made = sender.once(rows)
        click.echo(f"{len(made.answered)} sent, {len(made.waiting)} wait, {len(made.refused)} refused")
        for each in (*made.waiting, *made.refused):
            click.echo(f"  {each.id}  {each.error}")
        return 1 if made.waiting or made.refused else 0
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    click.echo("relay: ready.")
    sender.run(rows, over, every)
    return 0


def _own(words: list[str]) -> list[str]:
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in _DJANGOS:
            skip = True
        elif not word.startswith(tuple(f"{each}=" for each in _DJANGOS)):
            kept.append(word)
    return kept


def _let_children_find_the_project() -> None:
    """Let processes that are not `manage.py` import what it can."""
    here = str(Path(sys.path[0] or ".").resolve())
    known = os.environ.get("PYTHONPATH", "")
    if here not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, known)))
