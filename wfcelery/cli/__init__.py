"""The command line. `main` is the one door: every error leaves through it as a sentence and an exit code."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from wfcelery.cli.state import State


def main() -> NoReturn:
    """Answer the command that this process was started with, and end."""
    _fill_closed_streams()
    code = answer(sys.argv[1:])
    if threading.active_count() > 1:
        # A tool that hangs in its thread must neither keep us nor trip over an interpreter that shuts down.
        os._exit(code)
    sys.exit(code)


def answer(args: Sequence[str]) -> int:
    """Do what `args` ask for and give the exit code; nothing is raised."""
    import click

    from wfcelery.cli.commands import cli
    from wfcelery.cli.failures import INTERRUPTED, tell

    state = State()
    try:
        code = cli.main(list(args), prog_name="wfcelery", standalone_mode=False, obj=state)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # click ends the process by itself for one reason only: a pipe that nobody reads any more.
        return _without_reader()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last door: a user sees a sentence, never a traceback
        return tell(error, debug=state.debug)
    return code if isinstance(code, int) else 0


def _fill_closed_streams() -> None:
    """Put nothing where a stream was closed (`>&-`): else the next file, a database, takes its place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != descriptor:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def _without_reader() -> int:
    """Whoever read our output has gone (`| head`): say nothing, not even when the streams are closed."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            os.dup2(nowhere, stream.fileno())
    return 0
