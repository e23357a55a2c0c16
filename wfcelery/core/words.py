"""Words of tools and people, made fit to be shown."""

from __future__ import annotations

import json

from wfcelery.core.values import Json


def brief(value: Json, width: int = 60) -> str:
    """Write a value in one line of at most `width` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = plain(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def plain(text: str) -> str:
    """Leave out what a terminal would obey instead of showing: words of tools and people are not commands."""
    kept = (each if each.isprintable() or each in "\n\t" else " " * each.isspace() for each in text)
    return "".join(kept)
