"""Words of tools and people, made fit to be shown."""

from __future__ import annotations

import pytest

from wfcelery.core.words import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with ümläut and 漢字 and עברית", "plain, with ümläut and 漢字 and עברית"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\u202egnp.exe", "[U+202E]gnp.exe"),
        ("\u2066x\u2069", "[U+2066]x[U+2069]"),
        ("ad\u200bmin\ufeff", "ad[U+200B]min[U+FEFF]"),
        ("\x1b[31mred\x00", "[U+001B][31mred[U+0000]"),
        ("a\r\nb", "a␍\nb"),
        ("a\u2028b\x85c", "a[U+2028]b[U+0085]c"),
        ("a\u00a0b\u3000c", "a b c"),
        ("\ud800", "[U+D800]"),
    ],
)
def test_nothing_hides_in_words_that_somebody_decides_on(text: str, shown: str) -> None:
    assert visible(text) == shown
