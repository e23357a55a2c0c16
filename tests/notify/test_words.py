from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcelery.notify import words

AT = "\N{FULLWIDTH COMMERCIAL AT}"
LT = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, and more: äß漢字 😀", "plain words, and more: äß漢字 😀"),
        ("two\nlines\r\nand\ttabs", "two\\nlines\\r\\nand\\ttabs"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("pay \u202e0021\u202c", "pay \\u202e0021\\u202c"),
        ("a\u200bb\u2028c\u2066d", "a\\u200bb\\u2028c\\u2066d"),
        ("@everyone, @here and @ann", f"{AT}everyone, {AT}here and {AT}ann"),
        ("ann@example.org", "ann@example.org"),
        (
            "<!channel> <@U123> <https://evil|x> <b>",
            f"{LT}!channel> {LT}{AT}U123> {LT}https://evil|x> {LT}b>",
        ),
        ("1 < 2", "1 < 2"),
        ("[Decide here](https://evil)", "[Decide here] (https://evil)"),
    ],
)
def test_foreign_words_are_shown_and_do_nothing(text: str, shown: str) -> None:
    assert words.harmless(text) == shown


@given(st.text())
def test_no_text_leaves_its_line_or_hides_anything(text: str) -> None:
    for shown in (words.name(text), words.remark(text), words.value(text)):
        assert shown.isprintable()
        assert len(shown) <= words.LONGEST_VALUE


def test_what_is_long_is_shortened() -> None:
    assert words.name("x" * 200) == "x" * 99 + "…"
    assert words.value(["x" * 1000]) == '["' + "x" * 297 + "…"


def test_a_value_is_shown_as_json() -> None:
    assert words.value({"a": [1, None, True, "b\n"]}) == '{"a": [1, null, true, "b\\n"]}'
