"""`-i key=text`, `-i key:=json`, `-i @file.json`."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfcelery.cli.inputs import parse_input, parse_signal
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput


def test_text_json_and_files_come_together_and_the_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "more.json"
    file.write_text('{"b": 2, "c": {"d": null}}')
    given = ["a=1", "b=x", f"@{file}", "a:=[true, 1.5]", "e=k=v", "f="]
    expected = {"a": [True, 1.5], "b": 2, "c": {"d": None}, "e": "k=v", "f": ""}
    assert parse_input(given) == expected


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("a", "-i a: is no input; write key=text, key:=json or @file.json"),
        ("=x", "-i =x: has no key; write key=text or key:=json"),
        (":=1", "-i :=1: has no key; write key=text or key:=json"),
        ("a:=", "-i a: is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            "a:={'x': 1}",
            "-i a: is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("a:=NaN", "-i a: is not JSON: NaN is not a JSON value"),
        ('a:={"x": 1, "x": 2}', "-i a: is not JSON: the key 'x' stands twice"),
        ("a:=99999999999999999999", "-i a: is an integer beyond 64 bits; write it as text"),
        ("a=\x00", "-i a: holds a NUL character"),
        ("@no-such.json", "-i @no-such.json: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(part: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_input([part])
    assert str(caught.value) == said


def test_a_file_must_hold_an_object(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text("[1]")
    with pytest.raises(InvalidInput) as caught:
        parse_input([f"@{file}"])
    assert str(caught.value) == f"-i @{file}: must hold a JSON object, not a list"


def test_json_nested_without_end_is_refused() -> None:
    with pytest.raises(InvalidInput):
        parse_input([f"a:={'[' * 100_000}"])


@pytest.mark.parametrize(
    ("text", "expected"), [("paid", ("paid", None)), ('paid={"by": "ann"}', ("paid", {"by": "ann"}))]
)
def test_a_signal_has_a_name_and_perhaps_a_payload(text: str, expected: tuple[str, Json]) -> None:
    assert parse_signal(text) == expected


def test_a_signal_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no name; write NAME or NAME=json"):
        parse_signal("=1")
