"""Text in, plain data with places out; anything else is `InvalidFlow`."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from wfcelery.core.faults import Fault
from wfcelery.core.reading import faults_of_values, read
from wfcelery.errors import InvalidFlow

KIB = 1024


def faults(text: str | bytes) -> tuple[Fault, ...]:
    with pytest.raises(InvalidFlow) as caught:
        read(text)
    return caught.value.faults


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_yaml_and_json_say_the_same() -> None:
    yaml = (
        "start: a\nsteps:\n  a: {tool: echo, args: {n: 1, x: 1.5, t: text, b: true, z: null}, done: true}\n"
    )
    data = {
        "start": "a",
        "steps": {
            "a": {
                "tool": "echo",
                "args": {"n": 1, "x": 1.5, "t": "text", "b": True, "z": None},
                "done": True,
            }
        },
    }
    assert read(yaml).data == read(json.dumps(data)).data == data


def test_yaml_is_of_version_1_2() -> None:
    text = "on: yes\noff: no\nday: 2024-01-01\nclock: 12:30:00\nold: 0o14\nzero: 012\nhex: 0x1F\n"
    assert read(text + "nothing: ~\nquoted: '3'\n").data == {
        "on": "yes",
        "off": "no",
        "day": "2024-01-01",
        "clock": "12:30:00",
        "old": 12,
        "zero": 12,
        "hex": 31,
        "nothing": None,
        "quoted": "3",
    }


def test_a_byte_order_mark_is_dropped() -> None:
    assert read(b"\xef\xbb\xbf" + b'{"a": 1}').data == {"a": 1}
    assert read("\ufeffa: 1").data == {"a": 1}


def test_minus_zero_and_the_largest_integers_pass() -> None:
    assert read('{"a": -0, "b": 9223372036854775807}').data == {"a": 0, "b": 9223372036854775807}


@pytest.mark.parametrize(
    "text",
    [
        'start: a\nsteps:\n  a:\n    branch:\n      - {if: "x", then: b}\n',
        '{"start": "a",\n"steps":\n  {"a":\n    {"branch":\n      [{"if": "x", "then": "b"}]}}}',
    ],
)
def test_every_path_has_its_place(text: str) -> None:
    place = read(text).place
    assert place(("steps", "a")) is not None
    line, column = place(("steps", "a", "branch", 0, "then")) or (0, 0)
    shown = text.splitlines()[line - 1][column - 1 :]
    assert shown.startswith(("then: b", '"then": "b"'))


def test_a_path_that_is_not_there_has_the_place_of_what_is_above_it() -> None:
    place = read("start: a\nsteps:\n  a: {done: true}\n").place
    assert place(("steps", "a", "next")) == (3, 3)
    assert place(("nowhere",)) == (1, 1)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        pytest.param("", ["empty"], id="empty file"),
        pytest.param(" \n\t\n", ["empty"], id="only space"),
        pytest.param("# nothing\n", ["empty"], id="only a comment"),
        pytest.param(b"\xff\xfe{\x00}\x00", ["not-text"], id="UTF-16 with mark"),
        pytest.param("{}".encode("utf-16-le"), ["not-text"], id="UTF-16 without mark"),
        pytest.param(gzip.compress(b"{}"), ["not-text"], id="gzip"),
        pytest.param("x" * (256 * KIB + 1), ["too-large"], id="256 KiB and one"),
        pytest.param(b"\xff" * (256 * KIB + 1), ["too-large"], id="256 KiB of no text"),
        pytest.param(nested(33), ["too-deep"], id="JSON depth 33"),
        pytest.param("a: " + nested(32), ["too-deep"], id="YAML depth 33"),
        pytest.param("- " * 33 + "x", ["too-deep"], id="YAML block depth 33"),
        pytest.param("[" * 100_000, ["too-deep"], id="100,000 brackets"),
        pytest.param("a: " + "[" * 100_000, ["too-deep"], id="100,000 brackets in YAML"),
        pytest.param("a: " + "[{" * 50_000, ["too-deep"], id="brackets and braces in YAML"),
        pytest.param('{"a":' * 40_000, ["too-deep"], id="40,000 maps"),
        pytest.param('{"' + '\\"' * 100_000, ["bad-syntax"], id="text that never ends"),
        pytest.param("{} {}", ["several-documents"], id="two JSON documents"),
        pytest.param("a: 1\n---\nb: 1\n", ["several-documents"], id="two YAML documents"),
        pytest.param('{"a": 1,}', ["bad-syntax"], id="trailing comma"),
        pytest.param('{"a": 1 /* no */}', ["bad-syntax"], id="comment in JSON"),
        pytest.param("{'a': 1}", ["bad-syntax"], id="single quotes in JSON"),
        pytest.param("a: [1", ["bad-syntax"], id="open bracket in YAML"),
        pytest.param("a: b: c", ["bad-syntax"], id="two colons"),
        pytest.param("\ta: 1", ["bad-syntax"], id="tab as indentation"),
        pytest.param("a: @x", ["bad-syntax"], id="reserved sign"),
        pytest.param("a: \x1b[31mred", ["bad-text"], id="ANSI escape"),
        pytest.param('{"a": 1, "a": 2}', ["duplicate-key"], id="duplicate key in JSON"),
        pytest.param("a: 1\na: 2", ["duplicate-key"], id="duplicate key in YAML"),
        pytest.param("a: &x 1\nb: *x", ["yaml-feature", "yaml-feature"], id="anchor and alias"),
        pytest.param("a: &a [*a, *a]", ["yaml-feature"] * 3, id="data that holds itself"),
        pytest.param("<<: {a: 1}", ["yaml-feature"], id="merge key"),
        pytest.param("a: !!python/object/apply:os.system [x]", ["yaml-feature"], id="tag"),
        pytest.param("%YAML 1.1\n---\na: yes", ["yaml-feature"], id="YAML 1.1"),
        pytest.param("a: {{input.x}}", ["bad-key"], id="template without quotes"),
        pytest.param("1: a\ntrue: b\nnull: c\n1.5: d", ["bad-key"] * 4, id="keys that are not text"),
        pytest.param("? [a]\n: 1", ["bad-key"], id="a list as key"),
        pytest.param('{"a": NaN, "b": Infinity, "c": -Infinity}', ["bad-number"] * 3, id="NaN and Infinity"),
        pytest.param("a: .nan\nb: -.inf\nc: 1e400", ["bad-number"] * 3, id="NaN and Infinity in YAML"),
        pytest.param('{"a": 1e400}', ["bad-number"], id="1e400"),
        pytest.param('{"a": 9223372036854775808}', ["bad-number"], id="beyond 64 bits"),
        pytest.param('{"a": ' + "9" * 5_000 + "}", ["bad-number"], id="5,000 digits"),
        pytest.param("a: " + "9" * 5_000, ["bad-number"], id="5,000 digits in YAML"),
        pytest.param("a: 0x" + "f" * 5_000, ["bad-number"], id="5,000 hexadecimal digits"),
        pytest.param("a: 1\x00", ["not-text"], id="NUL in the file"),
        pytest.param('{"a": "\\u0000"}', ["bad-text"], id="escaped NUL"),
        pytest.param('a: "\\0"', ["bad-text"], id="escaped NUL in YAML"),
        pytest.param('{"a": "\\ud800"}', ["bad-text"], id="lone surrogate"),
        pytest.param('{"\\ud800": {"a": 1}}', ["bad-text"], id="lone surrogate in a key"),
        pytest.param("a: \ud800", ["bad-text"], id="lone surrogate in str"),
    ],
)
def test_bad_text_gives_its_code_at_once(text: str | bytes, codes: list[str]) -> None:
    began = time.process_time()
    found = faults(text)
    assert time.process_time() - began < 0.2
    assert [fault.code for fault in found] == codes
    for fault in found:
        assert str(fault).encode()


def test_depth_32_is_allowed_in_both() -> None:
    assert read(nested(32)).data
    assert read("a: " + nested(31)).data


def test_a_document_of_256_kib_is_read_and_can_be_checked_again_as_data() -> None:
    text = '{"a":[' + ",".join(["0"] * 131_068) + "]}"
    assert (len(text), faults_of_values(read(text).data)) == (256 * KIB - 1, [])


def test_a_duplicate_key_names_both_places() -> None:
    text = '{"a": {"x": 1},\n "b": {"x": 1,\n  "x": 2}}'
    assert faults(text) == (
        Fault(
            "duplicate-key",
            "the key `x` stands here again; it is already at line 2, column 8",
            "b.x",
            3,
            3,
            "remove or rename one of them",
        ),
    )
    assert str(faults("a: 1\nb: 2\na: 3")[0]) == (
        "3:1: a: the key `a` stands here again; it is already at line 1, column 1 [duplicate-key]"
        " (remove or rename one of them)"
    )


def test_a_syntax_error_says_where() -> None:
    assert str(faults('{"a": 1\n"b": 2}')[0]) == (
        "2:1: the JSON does not parse: expecting ',' delimiter [bad-syntax] "
        "(JSON has no comments, no trailing commas, and text stands in double quotes; YAML has them)"
    )
    assert (faults("a:\n  - [1\nb: 2")[0].line, faults("a: 'b\n")[0].code) == (3, "bad-syntax")


@pytest.mark.parametrize(
    "text",
    [
        '{"start": {"tool": "echo", "args": {"é": "{{input.x}}", "n": [1, -2.5e3, true]}, "done": true}}',
        'start: a\nsteps:\n  a:\n    tool: echo\n    args: {é: "{{input.x}}", n: [1, -2.5e3]}\n',
    ],
)
def test_a_flow_cut_at_any_byte_is_read_or_refused(text: str) -> None:
    whole = text.encode()
    for end in range(len(whole)):
        try:
            read(whole[:end])
        except InvalidFlow as error:
            assert error.faults  # noqa: PT017 (most cuts are refused, some are whole documents)
