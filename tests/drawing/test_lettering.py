"""Text of others can neither hide nor turn nor overflow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcelery.drawing.lettering import shortened, visible, width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\n\n lines\t", "two lines"),
        ("pay\u202eeno", "pay�eno"),
        ("\u2066a\u2069b\u200b", "�a�b�"),
        ("bell\x07null\x00", "bell�null�"),
        ("e\u0301\u0302\u0303\u0304\u0305", "e\u0301\u0302"),
        ("lone\ud800", "lone�"),
        ("größe 日本", "größe 日本"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_long_text_is_cut_without_being_read_whole() -> None:
    assert visible("a" * 5_000_000, 10) == "aaaaaaaaa…"
    assert visible("x" + " " * 5_000_000 + "y", 10) == "x…"


@given(st.text(), st.integers(20, 300))
def test_shortened_text_fits_its_room(text: str, room: int) -> None:
    fitted = shortened(visible(text), room, 11)
    assert width(fitted, 11) <= room
    assert fitted == visible(text) or fitted.endswith("…")
