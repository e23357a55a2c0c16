"""XML that cannot be broken out of: every attribute and every text passes here."""

from __future__ import annotations

import re
from typing import Final

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_ATTRIBUTE: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def element(name: str, attributes: dict[str, str | float | None] | None = None, *inside: str) -> str:
    """Write an element around markup that is already written; attributes that are None are left out."""
    said = "".join(
        f' {key}="{number(value) if isinstance(value, int | float) else attribute(value)}"'
        for key, value in (attributes or {}).items()
        if value is not None
    )
    return f"<{name}{said}>{''.join(inside)}</{name}>" if inside else f"<{name}{said}/>"


def text(value: str) -> str:
    """Write text; what XML cannot hold becomes �."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value).translate(_IN_TEXT)


def attribute(value: str) -> str:
    """Write the value of an attribute, so that it is read back as it is."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value).translate(_IN_ATTRIBUTE)


def number(value: float) -> str:
    """Write a number with at most one decimal place."""
    return f"{value:.1f}".removesuffix(".0")
