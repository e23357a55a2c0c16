"""`wfcelery executor`, `worker`, `notifier` and `beat`: the processes of a running system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    see_modules_here,
    settings_of,
    tools_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfcelery.settings import Settings

F = TypeVar("F", bound="Callable[..., Any]")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def loglevel_option(command: F) -> F:
    """Add `--loglevel`."""
    return click.option(
        "--loglevel",
        type=click.Choice(LEVELS, case_sensitive=False),
        default="INFO",
        show_default=True,
        help="What to log, to stderr.",
    )(command)


def log_format_option(command: F) -> F:
    """Add `--log-format`."""
    return click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        help="How to log: for people, or a JSON object per line. Default: WFCELERY_LOG_FORMAT, or text.",
    )(command)


def _name_option(command: F) -> F:
    return click.option(
        "--name", metavar="NAME@HOST", help="What it is called; different for each. Default: from its number."
    )(command)


@click.command(
    cls=Command,
    examples=(
        "wfcelery executor",
        "WFCELERY_DATABASE_URL=postgresql://db/wfcelery WFCELERY_BROKER_URL=redis://broker wfcelery executor",
    ),
)
@_name_option
@tools_option
@database_option
@loglevel_option
@log_format_option
@debug_option
def executor(
    *, name: str | None, tools: str | None, database: str | None, loglevel: str, log_format: str | None
) -> int:
    """Be the executor: the one process that writes.

    Needs the database, the broker, the secret key and the tools. A second one stands by and takes over when
    the first is gone. It makes and upgrades the tables by itself.
    """
    settings = with_broker(settings_of(database=database, tools=tools, log_format=log_format))
    see_modules_here()
    from wfcelery.shell.processes import run_executor

    return run_executor(settings, loglevel=loglevel, name=name)


@click.command(
    cls=Command,
    examples=(
        "wfcelery worker --tools shop.tools",
        "wfcelery worker --queues gpu --concurrency 2",
        "WFCELERY_WORKER_KEY=$(wfcelery keys) wfcelery worker --queues wfcelery.steps,mail",
    ),
)
@click.option(
    "--queues",
    default="wfcelery.steps",
    show_default=True,
    metavar="NAMES",
    help="Take steps from these queues, separated by commas.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    metavar="N",
    help="Steps at a time. Default: the number of cores.",
)
@click.option(
    "--pool",
    type=click.Choice(("prefork", "threads", "solo")),
    default="prefork",
    show_default=True,
    help="Do steps in processes, which can be stopped when their time is over, in threads, or one at a time.",
)
@_name_option
@tools_option
@loglevel_option
@log_format_option
@debug_option
def worker(
    *,
    queues: str,
    concurrency: int | None,
    pool: str,
    name: str | None,
    tools: str | None,
    loglevel: str,
    log_format: str | None,
) -> int:
    """Run steps.

    Needs the broker, the worker key (`wfcelery keys` prints it) and the tools, and no database. Start as many
    as there is work for, on as many machines.
    """
    settings = with_broker(settings_of(tools=tools, log_format=log_format))
    see_modules_here()
    wanted = tuple(each.strip() for each in queues.split(",") if each.strip())
    if not wanted:
        raise click.UsageError("--queues names no queue")
    from wfcelery.shell.processes import run_worker

    return run_worker(
        settings, queues=wanted, concurrency=concurrency, pool=pool, loglevel=loglevel, name=name
    )


@click.command(
    cls=Command,
    examples=(
        "WFCELERY_BASE_URL=https://flows.example.org wfcelery notifier",
        "WFCELERY_POLICY=people.toml wfcelery notifier --loglevel WARNING",
    ),
)
@_name_option
@database_option
@loglevel_option
@log_format_option
@debug_option
def notifier(*, name: str | None, database: str | None, loglevel: str, log_format: str | None) -> int:
    """Tell people: of gates, with a link for who may decide, and of how runs end.

    Needs the database (to read), the broker, the secret key, apprise (`wfcelery[notify]`), the policy that
    says where people are reached, and WFCELERY_BASE_URL for links. One is enough; more share the work.
    """
    settings = with_broker(settings_of(database=database, log_format=log_format))
    see_modules_here()
    from wfcelery.shell.notifier_role import check
    from wfcelery.shell.processes import run_notifier

    check(settings)
    return run_notifier(settings, loglevel=loglevel, name=name)


@click.command(
    cls=Command,
    examples=(
        "wfcelery beat",
        "wfcelery beat --schedule /var/lib/wfcelery/beat-schedule",
    ),
)
@click.option(
    "--schedule",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where Celery's beat keeps its notes. Default: .wfcelery/beat-schedule.",
)
@loglevel_option
@log_format_option
@debug_option
def beat(*, schedule: Path | None, loglevel: str, log_format: str | None) -> int:
    """Wake the executor every second.

    Needs the broker. One is enough; without any the executor still ticks by itself, and `doctor` says so.
    """
    settings = with_broker(settings_of(log_format=log_format))
    from wfcelery.shell.processes import run_beat

    return run_beat(settings, schedule=schedule, loglevel=loglevel)


def with_broker(settings: Settings) -> Settings:
    """Refuse to start without a broker: there would be nothing to listen to."""
    from wfcelery.errors import NotReachable

    if settings.broker_url is None:
        reason = "WFCELERY_BROKER_URL is not set; `wfcelery up` starts a whole system with its own"
        raise NotReachable("the broker", reason)
    return settings
