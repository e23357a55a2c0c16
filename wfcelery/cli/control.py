"""`wfcelery cancel`, `pause`, `resume` and `retry`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wfcelery.cli.options import (
    Command,
    database_option,
    debug_option,
    output_option,
    settings_of,
    user_option,
)

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.executor.messages import Asked

F = TypeVar("F", bound=Callable[..., Any])


def _options(command: F) -> F:
    """Add what these commands have in common."""
    for option in (
        debug_option,
        output_option("text", "json", "ids"),
        database_option,
        user_option,
        click.argument("runs", nargs=-1, metavar="RUN..."),
    ):
        command = option(command)
    return command


@click.command(
    cls=Command,
    examples=(
        "wfcelery cancel 01k9z3n5m8q0r2t4v6x8y0a1b2",
        'wfcelery ps --flow order --status paused -o ids | wfcelery cancel - --reason "sold out"',
    ),
)
@_options
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the run.")
def cancel(*, runs: tuple[str, ...], reason: str, user: str | None, database: str | None, output: str) -> int:
    """Stop runs for good.

    Steps that have not begun are cancelled, running ones are asked to stop. RUN may be `-`: ids from stdin.
    """
    from wfcelery.core.messages import Cancel

    def request(command: str, run: str, by: Principal) -> Asked:
        return Cancel(command, run, by, reason)

    return _ask(runs, request, "cancelled", user=user, database=database, output=output)


@click.command(
    cls=Command,
    examples=(
        "wfcelery pause 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery ps --flow order --status running -o ids | wfcelery pause -",
    ),
)
@_options
def pause(*, runs: tuple[str, ...], user: str | None, database: str | None, output: str) -> int:
    """Let nothing new start in runs.

    What runs may end, decisions are taken, timers wait for `resume`. RUN may be `-`: ids from stdin.
    """
    from wfcelery.core.messages import Hold

    return _ask(runs, Hold, "paused", user=user, database=database, output=output)


@click.command(
    cls=Command,
    examples=(
        "wfcelery resume 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery ps --flow order --status paused -o ids | wfcelery resume -",
    ),
)
@_options
def resume(*, runs: tuple[str, ...], user: str | None, database: str | None, output: str) -> int:
    """Let paused runs go on.

    Only what `pause` has held: a gate is opened by `approve`. RUN may be `-`: ids from stdin.
    """
    from wfcelery.core.messages import Resume

    return _ask(runs, Resume, "goes on", user=user, database=database, output=output)


@click.command(
    cls=Command,
    examples=(
        "wfcelery retry 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery ps --status failed --since 2h -o ids | wfcelery retry -",
    ),
)
@_options
def retry(*, runs: tuple[str, ...], user: str | None, database: str | None, output: str) -> int:
    """Reopen failed runs from where they failed.

    What was done stays done: only failed steps, and those cancelled with them, get a new attempt. RUN may be
    `-`: ids from stdin.
    """
    from wfcelery.core.messages import RetryRun

    return _ask(runs, RetryRun, "tries again", user=user, database=database, output=output)


def _ask(
    given: tuple[str, ...],
    request: Callable[[str, str, Principal], Asked],
    done: str,
    *,
    user: str | None,
    database: str | None,
    output: str,
) -> int:
    """Send the request for each run; without a broker, say of those that must go on how they do."""
    from wfcelery.cli.database import require
    from wfcelery.cli.desk import open_desk
    from wfcelery.cli.outcomes import for_each, show
    from wfcelery.cli.targets import run_ids
    from wfcelery.core.messages import Principal
    from wfcelery.executor.answers import new_command_id

    settings = settings_of(database=database, user=user)
    wanted = run_ids(given)
    require(settings)
    with open_desk(settings) as desk:

        def act(run: str) -> str:
            desk.ask(request(new_command_id(), run, Principal(settings.user)))
            return done

        return show(for_each(wanted, act), output)
