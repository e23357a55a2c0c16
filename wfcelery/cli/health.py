"""`wfcelery health`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

import click

from wfcelery.cli.failures import FAILED, SUCCESS
from wfcelery.cli.options import Command, debug_option, settings_of

if TYPE_CHECKING:
    from wfcelery.settings import Settings

WITHIN_S: Final = 10.0
ROLES: Final = ("executor", "worker", "beat", "notifier")


@click.command(
    cls=Command,
    examples=(
        "wfcelery health executor",
        "wfcelery health beat",
        "wfcelery health worker --name worker@%h",
    ),
)
@click.argument("role", metavar="|".join(ROLES), type=click.Choice(ROLES))
@click.option(
    "--name",
    default="worker@%h",
    show_default=True,
    metavar="NAME@HOST",
    help="For a worker: the name that it was started with. %h is this machine.",
)
@debug_option
def health(*, role: str, name: str) -> int:
    """Say whether a process makes progress, for health checks.

    By what it does, not by its being there: the executor ticks, beat's messages arrive at the executor, a
    worker answers, a notifier takes messages. Needs the broker only. Exit code 1 if it makes none, 5 if the
    broker is out of reach.
    """
    from wfcelery.errors import NotReachable

    settings = settings_of()
    if settings.broker_url is None:
        raise NotReachable("the broker", "WFCELERY_BROKER_URL is not set")
    well, said = (
        _worker(settings, name)
        if role == "worker"
        else _pulse(settings.broker_url, settings.key_prefix, role)
    )
    click.echo(said)
    return SUCCESS if well else FAILED


def _pulse(broker_url: str, prefix: str, role: str) -> tuple[bool, str]:
    import time

    from wfcelery.broker.client import connect
    from wfcelery.broker.names import Names
    from wfcelery.broker.pulse import Pulse
    from wfcelery.insight.reasons import about

    who = role if role == "beat" else f"the {role}"
    with closing(connect(broker_url)) as client:
        seen = Pulse(client, Names(prefix)).pulses().get(role)
    if seen is None:
        return False, f"{who} was never heard on this broker"
    age = max(0.0, time.time() - seen)
    return age <= WITHIN_S, f"{who} was heard {about(age)} ago"


def _worker(settings: Settings, name: str) -> tuple[bool, str]:
    from wfcelery.shell.ping import answers, full_name

    if answers(settings, name, WITHIN_S / 2):
        return True, f"worker {full_name(name)} answers"
    return False, f"worker {full_name(name)} does not answer within {WITHIN_S / 2:g} s"
