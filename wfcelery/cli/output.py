"""What commands print: one JSON document, a table, or ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TextIO

import click

from wfcelery.core.values import Json


def print_json(value: Json, file: TextIO | None = None) -> None:
    """Print one JSON document."""
    click.echo(as_json(value), file=file)


def as_json(value: Json) -> str:
    """Write JSON for people and programs alike."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns as wide as they must be; the last may be any length."""
    lines = [tuple(head), *(tuple(map(plain, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def brief(value: Json, width: int = 60) -> str:
    """Write a value in one line of at most `width` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = plain(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def plain(text: str) -> str:
    """Leave out what a terminal would obey instead of showing: words of tools and people are not commands."""
    kept = (each if each.isprintable() or each in "\n\t" else " " * each.isspace() for each in text)
    return "".join(kept)


def short_time(moment: Json) -> str:
    """Write an ISO moment for a table: to the second, in UTC as it is."""
    return str(moment)[:19].replace("T", " ") if moment else ""
