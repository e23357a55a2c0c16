"""A run as a page of text: its head, its steps, its output or error."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import click

from wfcelery.cli.output import as_json, brief, plain, print_table, short_time
from wfcelery.cli.progress import span
from wfcelery.cli.symbols import Signs, sign, signs_for
from wfcelery.core.values import Json
from wfcelery.insight.standing import kind_of_status

MOST_ITEMS: Final = 20
_HEAD: Final = ("status", "created_by", "key", "tags", "created_at", "completed_at")


def print_run(run: Mapping[str, Json], *, everything: bool) -> None:
    """Print the page; a foreach of many items is counted, unless `everything` is wanted."""
    signs = signs_for(sys.stdout)
    click.echo(f"{run['name']}@{run['version']}  {run['id']}")
    for name in _HEAD:
        value = run[name]
        if value:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            mark = f"{sign(signs, kind_of_status(shown))} " if name == "status" else ""
            shown = short_time(value) + " UTC" if name.endswith("_at") else shown
            click.echo(f"  {name.replace('_', ' '):<13} {mark}{plain(shown)}")
    click.echo(f"  {'input':<13} {brief(run['input'], 80)}")
    click.echo()
    steps = run["steps"]
    rows = list(_rows(steps if isinstance(steps, list) else [], signs, everything=everything))
    print_table(("  STEP", "ATTEMPT", "STATUS", "TOOK", "RESULT"), rows)
    error = run["error"]
    if isinstance(error, Mapping):
        click.echo(plain(f"\nerror: {error['type']}: {error['message']}"))
    if run["status"] == "completed":
        click.echo(f"\noutput: {as_json(run['output'])}")


def _rows(steps: Sequence[Mapping[str, Json]], signs: Signs, *, everything: bool) -> Iterator[Sequence[str]]:
    items = Counter(str(step["name"]) for step in steps if step["item"] is not None)
    counted: set[str] = set()
    for step in steps:
        name = str(step["name"])
        if step["item"] is not None and items[name] > MOST_ITEMS and not everything:
            if name not in counted:
                counted.add(name)
                yield (f"    {name}[…]", "", _tally(steps, name), "", "`--all` lists them")
            continue
        place = name if step["item"] is None else f"  {name}[{step['item']}]"
        mark = sign(signs, kind_of_status(str(step["status"])))
        yield (f"{mark} {place}", str(step["attempt"]), str(step["status"]), _took(step), _outcome(step))


def _tally(steps: Sequence[Mapping[str, Json]], name: str) -> str:
    counts = Counter(
        str(step["status"]) for step in steps if step["name"] == name and step["item"] is not None
    )
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _took(step: Mapping[str, Json]) -> str:
    began, ended = step["started_at"] or step["ready_at"], step["completed_at"]
    if not began or not ended:
        return ""
    length = datetime.fromisoformat(str(ended)) - datetime.fromisoformat(str(began))
    return span(max(0.0, length.total_seconds()))


def _outcome(step: Mapping[str, Json]) -> str:
    error = step["error"]
    if isinstance(error, Mapping):
        return brief(f"{error['type']}: {error['message']}", 80)
    if step["status"] == "pending" and step["due_at"]:
        return f"until {short_time(step['due_at'])} UTC"
    return brief(step["result"], 80) if step["status"] == "done" else ""
