"""Where something stands in a document: as a path, and as line and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""

_LONGEST: Final = 64

LineColumn: TypeAlias = tuple[int, int]
"""Both count from 1."""

Place: TypeAlias = Callable[[Path], LineColumn | None]
"""Finds the place of a path, or of what is nearest above it."""


def nowhere(_path: Path) -> None:
    """Know no place: for data that was never text."""


def spell(path: Path) -> str:
    """Write a path as people read it: `steps.fetch.branch[0].then`; long or unprintable parts are cut."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_shown(part)}" for part in path)
    return text.removeprefix(".")


def _shown(part: str) -> str:
    if len(part) > _LONGEST:
        part = f"{part[:_LONGEST]}…"
    return part if part.isprintable() else ascii(part)[1:-1]
