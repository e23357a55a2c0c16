"""`wfcelery up`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wfcelery.cli.failures import INTERRUPTED, SUCCESS
from wfcelery.cli.options import Command, database_option, debug_option, tools_option

if TYPE_CHECKING:
    from wfcelery.settings import Settings
    from wfcelery.shell.supervisor.flower import Credentials
    from wfcelery.shell.supervisor.process import Program
    from wfcelery.shell.supervisor.system import Workforce

FLOWER_PORT: Final = 5555
WEB_PORT: Final = 8765


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: the banner once the system is up, the logs unless quiet."""

    banner: str
    is_up: Callable[[], bool]
    quiet: bool


@click.command(
    cls=Command,
    examples=(
        "wfcelery up",
        "wfcelery up --tools mytools --concurrency 8",
        "wfcelery up --queues gpu,mail --flower",
        "WFCELERY_DATABASE_URL=postgresql://db/wfcelery WFCELERY_BROKER_URL=redis://broker wfcelery up",
    ),
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many steps are done at a time. Default: the number of cores, at most 4.",
)
@click.option(
    "--pool",
    type=click.Choice(["prefork", "threads"]),
    default="prefork",
    show_default=True,
    help="Do steps in processes, which can be stopped when their time is over, or in threads.",
)
@click.option(
    "--queues", metavar="NAMES", help="More queues to take steps from, besides wfcelery.steps; by commas."
)
@click.option(
    "--web-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help=f"Where the console listens, on this machine. Default: {WEB_PORT}, or another if that is taken.",
)
@click.option("--no-web", is_flag=True, help="Leave the console out.")
@click.option("--flower", is_flag=True, help="Start Flower too, for this machine and with a password.")
@click.option(
    "--flower-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    default=FLOWER_PORT,
    show_default=True,
    help="Where Flower listens.",
)
@tools_option
@database_option
@click.option("-q", "--quiet", is_flag=True, help="Show only what the supervisor itself has to say.")
@debug_option
def up(
    *,
    concurrency: int | None,
    pool: str,
    queues: str | None,
    web_port: int | None,
    no_web: bool,
    flower: bool,
    flower_port: int,
    tools: str | None,
    database: str | None,
    quiet: bool,
) -> int:
    """Run a whole system here: broker, executor, worker, beat and console.

    Nothing has to be installed or set up: the database is a file in .wfcelery, the broker is a Valkey on a
    private socket. Each part is a process of its own; one that dies is started again. The other commands
    find the system when they are called in the same folder. With WFCELERY_BROKER_URL or
    WFCELERY_DATABASE_URL that broker or database is used instead.

    Ctrl-C stops it: steps that have begun get 30 seconds to finish, and a second Ctrl-C kills. The next start
    goes on where this one was.
    """
    from wfcelery.settings import SYSTEM_FILE, load
    from wfcelery.shell.supervisor import flower as flowers
    from wfcelery.shell.supervisor import folder, system, valkey

    here = Path.cwd()
    # What an earlier `up` has noted tells others where the system is, not us where it should be.
    flags = {"database_url": database, "tools": tools}
    settings = load(flags, os.environ, here, system=False)
    workforce = system.Workforce(
        concurrency=concurrency or system.default_concurrency(),
        pool=pool,
        queues=tuple(name.strip() for name in (queues or "").split(",") if name.strip()),
    )
    port = None if no_web or not system.is_web_installed() else system.web_port(web_port, WEB_PORT)
    web = None if port is None else f"http://{system.WEB_HOST}:{port}"
    if web and not settings.base_url:
        settings = replace(settings, base_url=web)
    credentials = flowers.new_credentials(flower_port) if flower else None
    server = None if settings.broker_url else valkey.find_server()
    with ExitStack() as held:
        lock = held.enter_context(folder.locked(here))
        if not settings.secret_key:
            settings = replace(settings, secret_key=(folder.secret_of(here),))
        programs: list[Program] = []
        if server:
            path = held.enter_context(valkey.socket_path((here / SYSTEM_FILE).parent))
            settings = replace(settings, broker_url=valkey.url_of(path))
            programs.append(valkey.program(server, path, os.environ))
        programs += system.programs(settings, workforce, os.environ, web_port=port)
        if credentials:
            programs.append(flowers.program(settings, flower_port, credentials, os.environ))
        known = {"database_url": settings.database_url, "broker_url": settings.broker_url or ""}
        folder.note(here, **known, base_url=settings.base_url)
        show = View(
            banner="\n".join(
                [
                    *_banner(settings, workforce, web, flower_port, credentials),
                    *_left_out(is_web_wanted=not no_web),
                    "Start a flow from another terminal, in this folder:",
                    "  wfcelery start FLOW.yaml -i key=value",
                ]
            ),
            is_up=lambda: _has_tables(settings),
            quiet=quiet,
        )
        return _supervise(programs, lock, show)


def _supervise(programs: list[Program], lock: int, show: View) -> int:
    from wfcelery.cli.output import plain
    from wfcelery.cli.symbols import wants_colour
    from wfcelery.shell.supervisor.guard import Guard
    from wfcelery.shell.supervisor.log import Log
    from wfcelery.shell.supervisor.supervisor import Stop, Supervisor

    names = [program.name for program in programs]
    log = Log(sys.stderr, names, colour=wants_colour(sys.stderr), clean=plain)
    guard = Guard(lock)
    try:
        supervisor = Supervisor(
            programs,
            guard=guard,
            log=log,
            quiet=show.quiet,
            is_up=show.is_up,
            tell_up=lambda: click.echo(show.banner),
        )
        why = supervisor.run()
    finally:
        guard.stop()
    return INTERRUPTED if why is Stop.INTERRUPTED else SUCCESS


def _has_tables(settings: Settings) -> bool:
    """Tell whether the executor has come so far that commands find what they need."""
    from wfcelery.cli.database import reading
    from wfcelery.errors import WfceleryError

    try:
        with reading(settings, None):
            return True
    except WfceleryError:
        return False


def _banner(
    settings: Settings, workforce: Workforce, web: str | None, port: int, credentials: Credentials | None
) -> list[str]:
    from wfcelery.broker.names import STEPS_QUEUE
    from wfcelery.shell.supervisor import flower

    queues = ", ".join((STEPS_QUEUE, *workforce.queues))
    lines = [
        "wfcelery is up; Ctrl-C stops it.",
        f"  database  {_without_password(settings.database_url)}",
        f"  broker    {_without_password(settings.broker_url or '')}",
        f"  worker    {workforce.concurrency} at a time ({workforce.pool}), from {queues}",
    ]
    if web:
        is_open = settings.policy is None and settings.authorize is None
        lines.append(f"  console   {web}{'  (nobody signs in: for this machine only)' if is_open else ''}")
    if credentials:
        who = f"user {credentials.user}, password {credentials.password}"
        lines.append(f"  Flower    http://{flower.HOST}:{port}  ({who})")
    return lines


def _left_out(*, is_web_wanted: bool) -> list[str]:
    """Say what is not started because a package for it is not there."""
    from wfcelery.notify.post import is_installed
    from wfcelery.shell.supervisor import system

    lines = []
    if is_web_wanted and not system.is_web_installed():
        lines.append("  console   left out: `pip install 'wfcelery[web]'` brings it")
    if not is_installed():
        lines.append("  notices   nobody is told of gates: `pip install 'wfcelery[notify]'` brings that")
    return lines


def _without_password(url: str) -> str:
    return re.sub(r"(//[^/@:]*):[^/@]*@", r"\1:***@", url)
