"""Words of tools and people, made fit to be shown."""

from __future__ import annotations

import json

from wfcelery.core.values import Json

_LAST_ASCII = 0x7F


def brief(value: Json, width: int = 60) -> str:
    """Write a value in one line of at most `width` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = plain(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def plain(text: str) -> str:
    """Leave out what a terminal would obey instead of showing: words of tools and people are not commands."""
    kept = (each if each.isprintable() or each in "\n\t" else " " * each.isspace() for each in text)
    return "".join(kept)


def visible(text: str) -> str:
    """Show what would not be seen: signs that turn the direction of writing, take no room, or are no text.

    For words on which somebody decides: nothing may hide in them, and nothing is left out.
    """
    return "".join(each if each.isprintable() or each in "\n\t" else _name(each) for each in text)


def _name(sign: str) -> str:
    if sign == "\r":
        return "␍"
    # Spaces of other widths look like spaces; those that end a line do not.
    return (
        " "
        if sign.isspace() and ord(sign) > _LAST_ASCII and sign not in "\x85\u2028\u2029"
        else f"[U+{ord(sign):04X}]"
    )
