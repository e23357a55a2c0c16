"""Bad input that others stumbled over: each gives its documented codes, quickly, and nothing else.

The files in corpus/ say in their first line what they give; what is short stands here.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from wfcelery.core.reading import read
from wfcelery.core.validate import check_flow
from wfcelery.errors import InvalidFlow

FILES = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))


def codes(text: str, *, within: float = 0.2) -> list[str]:
    """Give the codes of all faults, and hold the time (of the processor: machines are shared) against us."""
    began = time.process_time()
    try:
        document = read(text)
        check_flow(document.data, place=document.place)
    except InvalidFlow as error:
        assert time.process_time() - began < within
        assert all(fault.message and str(fault).encode() for fault in error.faults)  # noqa: PT017
        return [fault.code for fault in error.faults]
    return []


@pytest.fixture(scope="module", autouse=True)
def _jsonschema_is_loaded() -> None:
    """Loading it is slow and happens once, with the first schema."""
    codes(flow({"a": {"done": True}}, input={"type": "object"}), within=60)


def flow(steps: dict[str, object], **header: object) -> str:
    return json.dumps({"start": next(iter(steps), "a"), "steps": steps, **header})


def step(**fields: object) -> str:
    return flow({"a": {**fields, "next": "b"}, "b": {"done": True}})


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_file_of_the_corpus_gives_the_codes_of_its_first_line(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    expected = text.partition("\n")[0].removeprefix("# expect:").split()
    assert codes(text) == expected


@pytest.mark.parametrize("text", ["null", "[]", '"x"', "3", "text", "[1, 2]", "true"])
def test_what_is_not_a_map_is_not_a_flow(text: str) -> None:
    assert codes(text) == ["bad-type"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, ["missing-start"]),
        ({"a": {"done": True}}, ["missing-start"]),
        ({"steps": {"a": {"done": True}}}, ["missing-start"]),
        ({"steps": {}}, ["missing-start"]),
        ({"start": "a", "steps": {}}, ["unknown-step"]),
        ({"start": "b", "steps": {"a": {"done": True}}}, ["unknown-step"]),
        ({"start": "b", "a": {"done": True}}, ["unknown-step"]),
        ({"start": 5, "steps": {"a": {"done": True}}}, ["bad-type"]),
        ({"start": None, "steps": {"a": {"done": True}}}, ["missing-start"]),
        ({"start": 5, "a": {"done": True}}, ["bad-type", "unreachable-step"]),
        ({"start": ["a"], "a": {"done": True}}, ["bad-type", "unreachable-step"]),
        ({"name": "x"}, ["missing-field", "missing-start"]),
        ({"start": "a", "steps": []}, ["bad-type"]),
        ({"start": "a", "steps": {"a": None}}, ["bad-type"]),
        ({"start": "a", "steps": {"a": []}}, ["bad-type"]),
        ({"start": {"done": True}, "output": {"done": True}}, ["reserved-name"]),
        ({"start": {"name": "a", "next": "b"}, "a": {"done": True}}, ["unknown-step", "duplicate-name"]),
        ({"start": {"next": "b"}, "b": {"name": "c", "done": True}}, ["name-mismatch"]),
        ({"start": "a", "steps": {"a": {"name": "b", "done": True}}}, ["name-mismatch"]),
        ({"nodes": [], "edges": []}, ["not-yet"]),
        ({"start": "a", "steps": {"a": {"done": True}}, "stepz": 1}, ["unknown-field"]),
    ],
)
def test_the_shape_of_the_whole(data: object, expected: list[str]) -> None:
    assert codes(json.dumps(data)) == expected


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 65,
        "x" * 10000,
        ".a",
        "a.b",
        "a/b",
        "a b",
        "a\n",
        "é",
        "e\N{COMBINING ACUTE ACCENT}",
        "a\u200b",
        chr(0x430) + "dmin",
        "\u202egnp",
        "'; DROP TABLE workflows; --",
        "$(rm -rf ~)",
        "<script>",
        "\x1b[31m",
        "=cmd()",
        "@all",
        "👩\u200d👩\u200d👧",
    ],
)
def test_names_that_nobody_can_spell_are_refused(name: str) -> None:
    assert codes(flow({name: {"done": True}})) in (["bad-name"], ["bad-name", "missing-start"])


@pytest.mark.parametrize(
    "name",
    [
        "x" * 64,
        "__proto__",
        "constructor",
        "__class__",
        "steps",
        "inputs",
        "true",
        "1",
        "start",
        "null",
        "on",
        "-",
    ],
)
def test_names_that_only_look_dangerous_are_fine(name: str) -> None:
    assert codes(flow({name: {"done": True}})) == []


def test_names_that_differ_by_case_are_refused() -> None:
    assert codes(flow({"a": {"next": "A"}, "A": {"done": True}})) == ["duplicate-name"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"requires_approval": True}, ["unknown-field"]),
        ({"aproval": {}}, ["unknown-field"]),
        ({"approval": {"quorom": 2}}, ["unknown-field"]),
        ({"retry": {"max_attempts": "3"}}, ["bad-type"]),
        ({"retry": {"max_attempts": 3.0}}, ["bad-type"]),
        ({"retry": {"max_attempts": True}}, ["bad-type"]),
        ({"retry": {"max_attempts": -1}}, ["out-of-range"]),
        ({"retry": {"max_attempts": 0}}, ["out-of-range"]),
        ({"retry": {"max_attempts": 1.5}}, ["bad-type"]),
        ({"retry": {"max_attempts": 10**9}}, ["out-of-range"]),
        ({"retry": {"max_attempts": None}}, ["bad-type"]),
        ({"retry": None}, ["bad-type"]),
        ({"retry": {"backoff": 5}}, ["bad-type"]),
        ({"retry": {"backoff": [1, "2"]}}, ["bad-type"]),
        ({"retry": {"backoff": {"factor": 2}}}, ["missing-field"]),
        ({"retry": {"backoff": {"initial_s": 1, "jitter": 2}}}, ["out-of-range"]),
        ({"tool": "x", "timeout_s": 0}, ["out-of-range"]),
        ({"tool": "x", "timeout_s": -1}, ["out-of-range"]),
        ({"tool": "x", "timeout_s": "5m"}, ["bad-type"]),
        ({"tool": "x", "timeout_s": 10**12}, ["out-of-range"]),
        ({"tool": "x", "timeout_s": True}, ["bad-type"]),
        ({"timeout_s": 5}, ["misplaced-field"]),
        ({"delay": 5, "timeout_s": 5}, ["misplaced-field"]),
        ({"delay": -1}, ["out-of-range"]),
        ({"delay": "5m"}, ["bad-type"]),
        ({"delay": None}, ["bad-type"]),
        ({"delay": 10**12}, ["out-of-range"]),
        ({"until": "9999-12-31"}, ["bad-value"]),
        ({"until": "1970-01-01T00:00:00"}, ["bad-value"]),
        ({"until": "2016-12-31T23:59:60Z"}, ["bad-value"]),
        ({"until": "tomorrow"}, ["bad-value"]),
        ({"until": 5}, ["bad-type"]),
        ({"priority": 10}, ["out-of-range"]),
        ({"priority": -1}, ["out-of-range"]),
        ({"on_lost": "hlod"}, ["bad-value"]),
        ({"queue": "a b"}, ["bad-name"]),
        ({"tool": "a/b"}, ["bad-name"]),
        ({"tool": "x" * 129}, ["bad-name"]),
        ({"tool": ["x"]}, ["bad-type"]),
        ({"args": {"x": 1}}, ["misplaced-field"]),
        ({"tool": None, "args": {"x": 1}}, ["misplaced-field"]),
        ({"tool": "x", "notify_user": True}, ["misplaced-field"]),
        ({"tool": "x", "approval": {}}, ["several-actions"]),
        ({"tool": None, "wait": {"signal": "s"}}, ["several-actions"]),
        ({"wait": {}}, ["missing-field"]),
        ({"wait": {"signal": "a b"}}, ["bad-name"]),
        ({"wait": {"signal": "s", "on_timeout": "b"}}, ["missing-field"]),
        ({"approval": None}, ["bad-type"]),
        ({"approval": {"approvers": ["ann"], "quorum": 2}}, ["quorum-too-large"]),
        (
            {
                "approval": {
                    "approvers": ["a"],
                    "quorum": 3,
                    "timeout_s": 5,
                    "on_timeout": "escalate",
                    "escalate_to": ["b"],
                }
            },
            ["quorum-too-large"],
        ),
        ({"approval": {"approvers": ["ann", "bob", "ann"]}}, ["duplicate-name"]),
        ({"approval": {"approvers": []}}, ["out-of-range"]),
        ({"approval": {"approvers": [""]}}, ["bad-name"]),
        ({"approval": {"approvers": [" "]}}, ["bad-name"]),
        ({"approval": {"approvers": ["ann "]}}, ["bad-name"]),
        ({"approval": {"approvers": ["group:"]}}, ["bad-name"]),
        ({"approval": {"approvers": ["group: "]}}, ["bad-name"]),
        ({"approval": {"approvers": ["channel:ops"]}}, ["bad-name"]),
        ({"approval": {"approvers": ["ann\u202e"]}}, ["bad-name"]),
        ({"approval": {"notify": ["channel:"]}}, ["bad-name"]),
        ({"approval": {"notify": ["://host"]}}, ["bad-name"]),
        ({"approval": {"notify": ["json://a host"]}}, ["bad-name"]),
        ({"approval": {"notify": ["a\tb"]}}, ["bad-name"]),
        ({"approval": {"remind_every_s": 0}}, ["out-of-range"]),
        ({"approval": {"pass_result": True, "form": {}}}, ["misplaced-field"]),
        ({"notify_user": " "}, ["bad-name"]),
        ({"notify_user": ["ann", "group:"]}, ["bad-name"]),
        ({"approval": {"quorum": 0}}, ["out-of-range"]),
        ({"approval": {"on_timeout": "approve"}}, ["missing-field"]),
        ({"approval": {"on_timeout": "escalate", "timeout_s": 1}}, ["missing-field"]),
        ({"approval": {"escalate_to": ["ann"]}}, ["misplaced-field"]),
        ({"approval": {"form": {"type": 5}}}, ["bad-schema"]),
        ({"foreach": {"items": 3, "tool": "x"}}, ["bad-type"]),
        ({"foreach": {"items": "text", "tool": "x"}}, ["bad-type"]),
        ({"foreach": {"items": []}}, ["missing-field"]),
        ({"foreach": {"items": [], "tool": "x", "flow": "y"}}, ["several-actions"]),
        ({"foreach": {"items": [], "tool": "x", "input": {}}}, ["misplaced-field"]),
        ({"foreach": {"items": [], "tool": "x", "concurrency": 0}}, ["out-of-range"]),
        ({"foreach": {"items": [], "foreach": {}}}, ["unknown-field"]),
        ({"flow": "child"}, ["bad-type"]),
        ({"flow": {"name": "child", "version": 0}}, ["out-of-range"]),
        ({"join_mode": "al"}, ["bad-value"]),
        ({"join_mode": "2"}, ["bad-value"]),
        ({"join_mode": True}, ["bad-type"]),
        ({"join_mode": 0}, ["join-cannot-fire"]),
        ({"join_mode": 1.5}, ["bad-type"]),
        ({"optional": "yes"}, ["bad-type"]),
        ({"done": True}, ["done-with-next"]),
        ({"parallel": ["b"]}, ["several-ways"]),
        ({"branch": [{"else": "b"}]}, ["several-ways"]),
        ({"undo": {"tool": "x"}}, ["not-yet"]),
        ({"on": {"x": "b"}, "wait": {"signal": "s"}}, ["several-ways", "misplaced-field"]),
    ],
    ids=str,
)
def test_a_wrong_field_gives_one_clear_fault(fields: dict[str, object], expected: list[str]) -> None:
    assert sorted(codes(step(**fields))) == sorted(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"branch": []}, ["out-of-range"]),
        ({"branch": {}}, ["bad-type"]),
        ({"branch": [{"if": "true"}]}, ["leaf-not-done", "missing-field"]),
        ({"branch": [{"then": "b"}]}, ["leaf-not-done", "missing-field"]),
        ({"branch": [{"if": "true", "then": "b", "else": "b"}]}, ["bad-value", "leaf-not-done"]),
        ({"branch": [{"else": "b"}, {"if": "true", "then": "b"}]}, ["else-not-last"]),
        ({"branch": [{"else": "b"}, {"else": "b"}]}, ["else-not-last"]),
        ({"branch": [{"if": True, "then": "b"}]}, ["bad-type"]),
        ({"parallel": []}, ["out-of-range"]),
        ({"parallel": "b"}, ["bad-type"]),
        ({"parallel": ["b", "b"]}, ["duplicate-name"]),
        ({"on": {}, "tool": "x"}, ["out-of-range"]),
        ({"next": ["b"]}, ["bad-type"]),
        ({"next": None}, ["bad-type"]),
        ({"done": "true"}, ["bad-type"]),
        ({"done": 1}, ["bad-type"]),
        ({"done": False}, ["leaf-not-done"]),
        ({"next": "a"}, ["cycle"]),
        ({"next": "B"}, ["unknown-step"]),
        ({"next": ""}, ["unknown-step"]),
        ({"on_error": "b"}, ["leaf-not-done"]),
    ],
    ids=str,
)
def test_a_wrong_way_on_gives_its_code(fields: dict[str, object], expected: list[str]) -> None:
    found = codes(flow({"a": fields, "b": {"done": True}}))
    assert sorted(code for code in found if code != "unreachable-step") == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"name": "a b"}, ["bad-name"]),
        ({"name": 5}, ["bad-type"]),
        ({"tags": ["x" * 65]}, ["out-of-range"]),
        ({"tags": ["x"] * 21}, ["out-of-range"]),
        ({"tags": "x"}, ["bad-type"]),
        ({"metadata": []}, ["bad-type"]),
        ({"key_scope": "flows"}, ["bad-value"]),
        ({"key": 5}, ["bad-type"]),
        ({"key": "{{steps.a.result}}"}, ["unknown-reference"]),
        ({"key": "{{run.id}}"}, ["unknown-reference"]),
        ({"key": "{{input.id}}-{{run.created_by}}"}, []),
        ({"output": "{{result}}"}, ["unknown-reference"]),
        ({"output": "{{"}, ["bad-template"]),
        ({"output": "{{secret.X}}"}, ["unknown-reference"]),
        ({"defaults": {"max_attempts": 3}}, ["unknown-field"]),
        ({"input": {"type": "objekt"}}, ["bad-schema"]),
        ({"input": {"$ref": "https://example.org/schema"}}, ["bad-schema"]),
        ({"input": {"$ref": "#/$defs/nothing"}}, ["bad-schema"]),
        ({"input": {"properties": {"x": {"pattern": "("}}}}, ["bad-schema"]),
        ({"input": {"properties": {"x": {"pattern": "(?=a)b"}}}}, ["bad-schema"]),
        ({"input": {"patternProperties": {"a": {}}, "unevaluatedProperties": False}}, ["bad-schema"]),
        ({"input": {"items": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}}, ["bad-schema"]),
        ({"input": {"$schema": "http://json-schema.org/draft-07/schema#"}}, ["bad-schema"]),
        ({"input": []}, ["bad-type"]),
    ],
    ids=str,
)
def test_a_wrong_header_gives_its_code(header: dict[str, object], expected: list[str]) -> None:
    assert codes(flow({"a": {"tool": "x", "done": True}}, **header)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{result}}", ["unknown-reference"]),
        ("{{steps.a.result}}", ["reference-not-before"]),
        ("{{steps.b.result}}", ["reference-not-before"]),
        ("{{steps.c.result}}", ["unknown-reference"]),
        ("{{steps.a.output}}", ["unknown-reference"]),
        ("{{steps[0].result}}", ["unknown-reference"]),
        ("{{inputs.x}}", ["unknown-reference"]),
        ("{{item}} {{index}}", ["unknown-reference", "unknown-reference"]),
        ("{{run.secret}}", ["unknown-reference"]),
        ("{{run.id}} {{run.name}} {{run.created_by}} {{run.key}}", []),
        ("{{secret.TOKEN}}", []),
        ("{{input.x", ["bad-template"]),
        ("{{ {{ }} }}", ["bad-template"]),
        ("{{ ''.__class__.__mro__ }}", ["bad-template"]),
        ("{% for %} ${ } {0.__class__}", []),
    ],
)
def test_what_a_first_step_may_refer_to(source: str, expected: list[str]) -> None:
    assert codes(step(tool="x", args={"x": source})) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"branch": [{"if": "secret.X == 'y'", "then": "b"}]},
        {"delay": "{{secret.X}}", "next": "b"},
        {"flow": {"name": "x", "input": {"k": "{{secret.X}}"}}, "next": "b"},
    ],
)
def test_secrets_are_for_tools_only(fields: dict[str, object]) -> None:
    found = codes(flow({"a": fields, "b": {"done": True}}))
    assert found in (["unknown-reference"], ["bad-condition"])


def chain(size: int) -> str:
    steps: dict[str, object] = {f"s{n}": {"next": f"s{n + 1}"} for n in range(size - 1)}
    return flow({**steps, f"s{size - 1}": {"done": True}})


def test_a_chain_of_a_thousand_steps_is_fine_and_one_more_is_not() -> None:
    assert codes(chain(1_000)) == []
    assert codes(chain(1_001)) == ["too-many-steps"]
    assert codes(chain(5_000), within=0.5) == ["too-many-steps"]


def test_a_cycle_of_a_thousand_steps_is_named_in_short() -> None:
    text = flow({f"s{n}": {"next": f"s{(n + 1) % 1_000}"} for n in range(1_000)})
    assert codes(text, within=0.5) == ["cycle"]


def test_a_complete_graph_has_too_many_edges() -> None:
    steps: dict[str, object] = {
        f"s{n}": {"parallel": [f"s{m}" for m in range(n + 1, 200)]} for n in range(199)
    }
    assert codes(flow({**steps, "s199": {"done": True}}), within=0.5) == ["too-many-edges"]


def test_a_step_with_nearly_a_thousand_parents_is_fine() -> None:
    names = [f"p{n}" for n in range(998)]
    steps: dict[str, object] = {"a": {"parallel": names, "join": "z"}, **{name: {} for name in names}}
    assert (
        codes(flow({**steps, "z": {"tool": "x", "args": {"x": "{{steps.p9.result}}"}, "done": True}})) == []
    )


def test_a_line_of_a_megabyte_is_too_large() -> None:
    assert codes(step(description="x" * 2**20)) == ["too-large"]
