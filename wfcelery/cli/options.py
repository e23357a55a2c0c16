"""Options that several commands share, and the settings that come of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wfcelery.cli.state import State

if TYPE_CHECKING:
    from wfcelery.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose help ends with examples, written as they are typed."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, unwrapped."""
        write_examples(formatter, self.examples)
        super().format_epilog(ctx, formatter)


def write_examples(formatter: click.HelpFormatter, examples: tuple[str, ...]) -> None:
    """Write lines that nobody may wrap: they are meant to be copied."""
    with formatter.section("Examples"):
        for line in examples:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _set_debug(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click calls it
    if wanted:
        ctx.ensure_object(State).debug = True


def debug_option(command: F) -> F:
    """Add `--debug`."""
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_set_debug,
        help="Show the traceback of an error.",
    )(command)


def flow_paths_argument(command: F) -> F:
    """Add the files and folders of flows. What cannot be read is told beside the faults of the others."""
    kind = click.Path(path_type=Path, readable=False)
    return click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...", type=kind)(command)


def database_option(command: F) -> F:
    """Add `--database`."""
    return click.option(
        "--database",
        metavar="URL",
        help="Database: sqlite:///FILE, postgresql://HOST/NAME, or the path of an SQLite file. "
        "Default: WFCELERY_DATABASE_URL, or .wfcelery/wfcelery.db.",
    )(command)


def tools_option(command: F) -> F:
    """Add `--tools`."""
    return click.option(
        "--tools",
        metavar="MODULES",
        help="Python modules with your tools, separated by commas. Default: WFCELERY_TOOLS.",
    )(command)


def user_option(command: F) -> F:
    """Add `--user`."""
    return click.option(
        "--user", metavar="NAME", help="Who you are. Default: WFCELERY_USER, or your name on this machine."
    )(command)


def output_option(*formats: str) -> Callable[[F], F]:
    """Add `-o`; the first format is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Form of the output.",
    )


def settings_of(
    *,
    database: str | None = None,
    tools: str | None = None,
    user: str | None = None,
    log_format: str | None = None,
) -> Settings:
    """Put flags, environment and `wfcelery.toml` of the current folder together."""
    from wfcelery.settings import load

    flags = {"database_url": database, "tools": tools, "user": user, "log_format": log_format}
    return load(flags, os.environ, Path.cwd())


def see_modules_here() -> None:
    """Let `--tools mytools` find `mytools.py` in the current folder, as `python -m` would."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
