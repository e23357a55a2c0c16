"""What commands print: one JSON document, a table, or ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TextIO

import click

from wfcelery.core.values import Json
from wfcelery.core.words import brief, plain

__all__ = ["as_json", "brief", "plain", "print_json", "print_table", "short_time"]


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


def short_time(moment: Json) -> str:
    """Write an ISO moment for a table: to the second, in UTC as it is."""
    return str(moment)[:19].replace("T", " ") if moment else ""
