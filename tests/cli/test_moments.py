"""Moments and lengths of time, as they are typed."""

from __future__ import annotations

import re

import pytest

from wfcelery.cli.moments import parse_moment, parse_since, parse_span
from wfcelery.errors import InvalidInput

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("10min", 600),
        ("2h", 7_200),
        ("1d", 86_400),
        ("1w", 604_800),
        ("1h30m", 5_400),
        ("0.5s", 0.5),
    ],
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert parse_span(text, "--since") == seconds
    assert parse_moment(f"+{text}", NOW, "--at") == NOW + seconds
    assert parse_since(text, NOW, "--since") == NOW - seconds


def test_a_moment_with_its_zone_is_read() -> None:
    for text in ("2023-11-14T22:13:20Z", "2023-11-15T00:13:20+02:00"):
        assert parse_moment(text, 0.0, "--at") == NOW
        assert parse_since(text, 0.0, "--since") == NOW


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tomorrow", "--at: 'tomorrow' is no moment; write +10m or 2030-01-31T12:00Z"),
        ("+soon", "--at: 'soon' is no length of time; write 90s, 10m, 2h, 1d or 1h30m"),
        (
            "2030-01-31",
            "--at: '2030-01-31' has no time zone; write 2030-01-31Z for UTC, or 2030-01-31+02:00",
        ),
    ],
)
def test_what_cannot_be_read_says_what_to_write(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        parse_moment(text, NOW, "--at")
