"""Which runs a command is about: ids as arguments, ids on stdin, or a flow and a business key."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from wfcelery.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from wfcelery.settings import Settings

STDIN: Final = "-"


def run_ids(given: Sequence[str]) -> list[str]:
    """Give the ids that were typed; those on stdin for `-`, or where none was typed and stdin is a pipe."""
    if not given:
        found = [] if sys.stdin.isatty() else _from_stdin()
        if not found:
            raise click.UsageError("name a RUN; `-` reads ids from stdin, one a line")
        return found
    ids: dict[str, None] = {}
    for each in given:
        ids |= dict.fromkeys(_from_stdin() if each == STDIN else [each])
    return list(ids)


def run_with_key(settings: Settings, flow: str | None, key: str | None) -> str:
    """Give the id of the live run of `flow` that has `key`."""
    from wfcelery.cli.database import reading
    from wfcelery.store import views

    if not flow or not key:
        raise click.UsageError("--flow and --key belong together: they name the live run with that key")
    # What is then done to the run is the executor's to allow.
    with reading(settings, None) as conn:
        found = views.runs(conn, status=("running", "paused"), name=flow, key=key, limit=2)
    if not found:
        raise NotFound("live run", f"of {flow} with key {key}", f"`wfcelery ps --flow {flow}` lists its runs")
    if len(found) > 1:
        # Only a flow whose keys are unique in a version, or not at all, can have several.
        named = ", ".join(str(run["id"]) for run in found)
        raise InvalidInput("--key", f"several live runs of {flow} have the key {key}, as {named}; name one")
    return str(found[0]["id"])


def _from_stdin() -> list[str]:
    return list(dict.fromkeys(sys.stdin.read().split()))
