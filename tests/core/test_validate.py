"""A flow that cannot work is refused with every fault at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from wfcelery.core.document import compile_flow
from wfcelery.core.flow import Flow
from wfcelery.core.reading import read
from wfcelery.core.validate import check_flow, validate
from wfcelery.errors import InvalidFlow


@dataclass
class Tools:
    events_of: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"echo": (), "judge": ("good", "bad"), "pay": ()}
    )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.events_of)

    def __contains__(self, name: object) -> bool:
        return name in self.events_of

    def events(self, name: str, /) -> tuple[str, ...]:
        return self.events_of[name]

    def requires_approval(self, name: str, /) -> bool:
        return name == "pay"

    def permission(self, _name: str, /) -> str | None:
        return None

    def check_arguments(
        self, name: str, args: Mapping[str, object], is_constant: Callable[[object], bool], /
    ) -> list[tuple[str, str]]:
        if name == "judge" and is_constant(args.get("n")) and not isinstance(args.get("n"), int):
            return [("n", "should be a whole number, but is text")]
        return []


@dataclass
class Flows:
    known: Mapping[str, int]

    def find(self, name: str, _version: int | None, /) -> tuple[str, int] | None:
        return (f"id-of-{name}", self.known[name]) if name in self.known else None


def checked(text: str, flows: Flows | None = None) -> Flow:
    document = read(text)
    return check_flow(document.data, place=document.place, tools=Tools(), flows=flows)


def faults(text: str, flows: Flows | None = None) -> list[str]:
    with pytest.raises(InvalidFlow) as caught:
        checked(text, flows)
    return [str(fault) for fault in caught.value.faults]


OLD = [
    {
        "start": {
            "name": "search",
            "tool": "echo",
            "args": {"query": "{{input.topic}}"},
            "next": "summarize",
        },
        "summarize": {
            "name": "summarize",
            "tool": "echo",
            "args": {"id": "{{input.doc_id}}"},
            "next": "notify",
        },
        "notify": {"name": "notify", "tool": "echo", "args": {"message": "Research complete"}, "done": True},
    },
    {
        "start": {
            "name": "check",
            "tool": "echo",
            "args": {"value": "{{input.admin}}"},
            "branch": [
                {"if": "result == true", "then": "admin_action"},
                {"if": "result == false", "then": "user_action"},
            ],
        },
        "admin_action": {"name": "admin_action", "tool": "echo", "args": {}, "done": True},
        "user_action": {"name": "user_action", "tool": "echo", "args": {}, "done": True},
    },
    {
        "start": {"name": "plan", "tool": "echo", "args": {}, "next": "approve"},
        "approve": {"name": "approve", "tool": None, "args": {}, "next": "execute_write"},
        "execute_write": {"name": "execute_write", "tool": "echo", "args": {}, "done": True},
    },
    {
        "start": {"name": "fan", "tool": "echo", "args": {}, "parallel": ["left", "right"]},
        "left": {"name": "left", "tool": "echo", "args": {}, "join": "merge"},
        "right": {"name": "right", "tool": "echo", "args": {}, "join": "merge"},
        "merge": {"name": "merge", "tool": "echo", "args": {}, "done": True},
    },
]


@pytest.mark.parametrize("flow", OLD, ids=["linear", "branch", "gate", "parallel"])
def test_the_old_format_is_valid_as_it_is(flow: object) -> None:
    assert checked(json.dumps(flow)).lenient


def test_all_faults_come_at_once_in_the_order_of_the_text() -> None:
    text = """
start: a
steps:
  a: {tool: ech, next: b}
  b: {branch: [{if: "result ==", then: c}, {else: d}]}
  c: {args: {x: 1}, tool: echo, next: nowhere}
  d: {tool: echo, args: {x: "{{steps.z.result}}"}}
  e: {next: f}
  f: {next: e}
"""
    assert faults(text) == [
        "4:7: steps.a.tool: there is no tool `ech` [unknown-tool] (did you mean `echo`?)",
        (
            "5:17: steps.b.branch[0].if: expected a value, found the end (in `result ==`, column 10)"
            " [bad-condition] (see docs/expressions.md)"
        ),
        "6:33: steps.c.next: there is no step `nowhere` [unknown-step]",
        (
            "7:3: steps.d: nothing follows this step, and it is not `done` [leaf-not-done]"
            " (add `done: true`, or say what is `next`)"
        ),
        "7:19: steps.d.args: there is no step `z` (column 3) [unknown-reference]",
        (
            "8:3: steps.e: no path from the start leads to `e` [unreachable-step]"
            " (lead to it from some step, or remove it)"
        ),
        (
            "8:7: steps.e.next: the steps lead in a circle: e → f → e [cycle]"
            " (a flow ends; use `retry`, `foreach` or a sub-flow to repeat work)"
        ),
        (
            "9:3: steps.f: no path from the start leads to `f` [unreachable-step]"
            " (lead to it from some step, or remove it)"
        ),
    ]


def test_a_way_that_cannot_be_read_makes_no_further_faults() -> None:
    assert faults("start: a\nsteps:\n  a: {nxt: b}\n  b: {done: true}\n") == [
        "3:7: steps.a.nxt: there is no field `nxt` [unknown-field] (did you mean `next`?)"
    ]
    assert faults("start: a\nsteps:\n  a: {next: 5}\n  b: {done: true}\n") == [
        "3:7: steps.a.next: must be text; it is the number 5 [bad-type]"
    ]


def test_faults_of_the_flat_form_have_the_paths_of_the_flat_form() -> None:
    assert faults("start: {name: first, tool: ech, next: b}\nb: {next: c}\n") == [
        "1:22: start.tool: there is no tool `ech` [unknown-tool] (did you mean `echo`?)",
        "2:5: b.next: there is no step `c` [unknown-step]",
    ]


def test_a_flow_can_be_validated_by_itself() -> None:
    flow = compile_flow({"start": "a", "steps": {"a": {"tool": "nothing", "next": "b"}}})
    assert [str(fault) for fault in validate(flow)] == ["steps.a.next: there is no step `b` [unknown-step]"]
    assert {fault.code for fault in validate(flow, tools=Tools())} == {"unknown-step", "unknown-tool"}


def test_arguments_and_outcomes_are_those_of_the_tool() -> None:
    text = """
start: a
steps:
  a: {tool: judge, args: {n: three}, on: {good: b, great: b}}
  b: {foreach: {items: [1], tool: judge, args: {n: x}}, next: c}
  c: {tool: judge, args: {n: "{{input.n}}"}, next: d}
  d: {tool: echo, on: {whatever: e}}
  e: {done: true}
"""
    assert faults(text) == [
        "4:27: steps.a.args.n: should be a whole number, but is text [bad-arguments]",
        (
            "4:38: steps.a.on: the tool may name the outcome `bad`, and no way takes it [event-not-taken]"
            " (add `bad: STEP`)"
        ),
        (
            "4:52: steps.a.on.great: the tool never names the outcome `great` [unknown-event]"
            " (it names good, bad)"
        ),
        "5:49: steps.b.foreach.args.n: should be a whole number, but is text [bad-arguments]",
    ]


def test_sub_flows_are_known_and_not_too_deep() -> None:
    text = """
start: a
steps:
  a: {flow: {name: good}, next: b}
  b: {flow: {name: deep}, next: c}
  c: {foreach: {items: [1], flow: nowhere, version: 2}, done: true}
"""
    assert faults(text, Flows({"good": 10, "deep": 11})) == [
        (
            "5:14: steps.b.flow.name: `deep` makes 11 levels of sub-flows; at most 10 are allowed"
            " [subflow-too-deep] (flatten them)"
        ),
        (
            "6:29: steps.c.foreach.flow: there is no flow `nowhere` with version 2 [unknown-flow]"
            " (define it first)"
        ),
    ]


DIAMOND = """
start: a
steps:
  a: {tool: echo, parallel: [b, c]}
  b: {tool: echo, next: b2}
  b2: {tool: echo, join: d%s}
  c: {tool: echo, join: d}
  d: {tool: echo, args: {x: "%s"}, done: true%s}
"""


@pytest.mark.parametrize(
    ("extra", "reference", "mode", "code"),
    [
        ("", "{{steps.a.result}} {{steps.b.result}} {{steps.b2.result}} {{steps.c.result}}", "", None),
        (", optional: true", "{{steps.b.result}}", "", None),
        (", optional: true", "{{steps.b2.result}}", "", "reference-may-be-skipped"),
        (", optional: true", "{{steps.b2.result ?? 0}} {{steps.b2.status}} {{steps.b2.error}}", "", None),
        (", on_error: d", "{{steps.b2.result}}", "", "reference-may-be-skipped"),
        ("", "{{steps.b.result}}", ", join_mode: any", "reference-may-be-skipped"),
        ("", "{{steps.a.result}}", ", join_mode: any", None),
        ("", "{{steps.d.result}}", "", "reference-not-before"),
        ("", "{{steps.d.status}}", "", "reference-not-before"),
        ("", "{{result.b2}}", "", None),
    ],
)
def test_a_reference_needs_a_step_that_surely_ran(
    extra: str, reference: str, mode: str, code: str | None
) -> None:
    text = DIAMOND % (extra, reference, mode)
    if code is None:
        checked(text)
    else:
        assert [fault.rpartition("[")[2].partition("]")[0] for fault in faults(text)] == [code]


@pytest.mark.parametrize(
    ("arm", "reference", "code"),
    [
        ("next: e", "{{steps.b.result}}", "reference-may-be-skipped"),
        ("next: e", "{{has(steps.b.result) ? steps.b.result : 1}}", None),
        ("next: e", "{{steps.a.result}}", None),
        ("next: e", "{{steps.gate.result}}", None),
    ],
)
def test_a_reference_past_a_branch(arm: str, reference: str, code: str | None) -> None:
    text = f"""
start: a
steps:
  a: {{tool: echo, next: gate}}
  gate: {{approval: {{on_deny: d}}, branch: [{{if: "steps.gate.result == 1", then: b}}, {{else: c}}]}}
  b: {{tool: echo, {arm}}}
  c: {{tool: echo, {arm}}}
  d: {{tool: echo, args: {{x: "{{{{steps.gate.status}}}}"}}, done: true}}
  e: {{tool: echo, args: {{x: "{reference}"}}, done: true}}
"""
    if code is None:
        checked(text)
    else:
        assert [fault.rpartition("[")[2].partition("]")[0] for fault in faults(text)] == [code]


def test_the_output_may_read_what_has_run_whenever_the_run_completes() -> None:
    good = """
start: a
steps:
  a: {tool: echo, parallel: [b, c, e]}
  b: {tool: echo, next: f}
  c: {tool: echo, next: d}
  e: {tool: echo, next: f}
  f: {tool: echo, done: true}
  d: {tool: echo, done: true}
output: ["{{steps.a.result}}", "{{steps.b.result}}", "{{steps.d.result}}"]
"""
    assert checked(good).output is not None
    assert faults(good.replace("c: {tool", "c: {optional: true, tool")) == [
        (
            "10:1: output: `d` may have been skipped or failed when this is read (column 3)"
            " [reference-may-be-skipped] (give a default: {{steps.NAME.result ?? null}})"
        )
    ]


def test_parallel_branches_must_meet_but_one_may_end_for_itself() -> None:
    assert faults("start: {parallel: [a, b]}\na: {done: true}\nb: {done: true}\n") == [
        (
            "1:9: start.parallel: the parallel branches never meet [branches-never-join]"
            " (let them lead to one step, which waits for them: say `join: STEP` in each)"
        )
    ]
    checked("start: {parallel: [a, b, c]}\na: {join: d}\nb: {join: d}\nc: {done: true}\nd: {done: true}\n")


def test_a_join_needs_two() -> None:
    assert faults(
        "start: {parallel: [a, b, e], join: x}\na: {join: c}\nb: {}\ne: {}\nc: {done: true}\nx: {done: true}"
    ) == [
        (
            "2:5: a.join: `c` has no other way in, so nothing is joined there [branches-never-join]"
            " (let another branch say `join: c`, or write `next: c`)"
        )
    ]


def test_a_join_that_can_never_fire() -> None:
    text = """
start: a
steps:
  a: {branch: [{if: "input.x", then: b}, {else: c}]}
  b: {next: b2}
  b2: {next: d}
  c: {next: d}
  d: {join_mode: 2, next: e}
  e: {join_mode: any, parallel: [f, g, h]}
  f: {join: i}
  g: {join: i}
  h: {join: i}
  i: {join_mode: 4, done: true}
"""
    assert faults(text) == [
        (
            "8:7: steps.d.join_mode: it waits for 2, and only one of its ways in is ever taken"
            " [join-cannot-fire] (use `all` or `any`)"
        ),
        (
            "9:7: steps.e.join_mode: there is nothing to join: the step has 1 way in [join-cannot-fire]"
            " (remove `join_mode`)"
        ),
        (
            "13:7: steps.i.join_mode: it waits for 4, and there are 3 ways in [join-cannot-fire]"
            " (write a number from 1 to the ways in)"
        ),
    ]


def test_a_tool_that_requires_an_approval_may_be_called_behind_one() -> None:
    checked("start: a\nsteps:\n  a: {approval: {}, next: b}\n  b: {tool: pay, done: true}\n")
