"""Text of others, made fit to be drawn: nothing invisible, nothing that turns the reading, not too long.

No font is at hand where this runs, so widths are judged from the safe side: by those of a wide common font.
"""

from __future__ import annotations

import unicodedata
from typing import Final

ELLIPSIS: Final = "…"
UNSHOWN: Final = "\N{REPLACEMENT CHARACTER}"

_MARKS_IN_A_ROW: Final = 2
_NARROW: Final = frozenset("fijlrtI.,:;'|!()[]{}/\\- \"`")
_WIDE: Final = frozenset("mwMWOQ@%&#→…—")
_NARROW_EM, _PLAIN_EM, _CAPITAL_EM, _WIDE_EM, _FULL_EM = 0.38, 0.61, 0.7, 0.9, 1.05


def visible(text: str, longest: int = 300) -> str:
    """Give one line of `text` in which each character shows: controls and marks of direction become �.

    White space becomes single spaces; of accents on accents only two stay; the rest is cut at `longest`.
    """
    cut = text[: 4 * longest]
    shown: list[str] = []
    marks = 0
    for character in " ".join(cut.split()):
        is_mark = unicodedata.combining(character) > 0 or unicodedata.category(character) in {"Mn", "Me"}
        marks = marks + 1 if is_mark else 0
        if marks <= _MARKS_IN_A_ROW:
            shown.append(character if character.isprintable() else UNSHOWN)
    if len(shown) > longest or len(cut) < len(text):
        return "".join(shown[: longest - 1]).rstrip() + ELLIPSIS
    return "".join(shown)


def width(text: str, size: float) -> float:
    """Judge how wide `text` is in a font of `size` pixels."""
    return size * sum(map(_em, text))


def shortened(text: str, room: float, size: float) -> str:
    """Give `text` if it fits into `room` pixels, else its beginning and an ellipsis."""
    if width(text, size) <= room:
        return text
    left = room - size * _em(ELLIPSIS)
    kept = 0
    for character in text:
        left -= size * _em(character)
        if left < 0:
            break
        kept += 1
    return text[:kept].rstrip() + ELLIPSIS


def _em(character: str) -> float:
    if character in _NARROW:
        return _NARROW_EM
    if character in _WIDE:
        return _WIDE_EM
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return _FULL_EM
    if not character.isascii():
        return _WIDE_EM
    return _CAPITAL_EM if character.isupper() else _PLAIN_EM
