"""Plain data in, a flow out: both spellings, every field, resolved policies."""

from __future__ import annotations

import json

import pytest

from wfcelery.core.document import canonical_document, compile_flow, flow_references, pin
from wfcelery.core.flow import (
    Call,
    Delay,
    Edge,
    Exponential,
    Flow,
    Foreach,
    Gate,
    JoinMode,
    KeyScope,
    Label,
    OnItemError,
    OnLost,
    OnTimeout,
    Pass,
    Retry,
    SubFlow,
    Until,
    Wait,
)
from wfcelery.core.reading import read
from wfcelery.errors import InvalidFlow


def compiled(text: str, *, name: str | None = None) -> Flow:
    document = read(text)
    return compile_flow(document.data, place=document.place, name=name)


def one_step(step: str, *, header: str = "") -> Flow:
    return compiled(f"{header}\nstart: a\nsteps:\n  a: {step}\n  b: {{done: true}}\n  c: {{done: true}}\n")


def test_the_flat_form_names_its_first_step_inside_start() -> None:
    flow = compile_flow(
        {"start": {"name": "search", "tool": "echo", "next": "end"}, "end": {"name": "end", "done": True}}
    )
    assert (flow.start, list(flow.steps), flow.lenient) == ("search", ["search", "end"], True)


def test_the_flat_form_may_leave_its_first_step_without_a_name_or_name_it_only() -> None:
    assert compile_flow({"start": {"done": True}}).start == "start"
    flow = compile_flow({"start": "a", "a": {"done": True}})
    assert (flow.start, list(flow.steps)) == ("a", ["a"])


def test_the_full_form_carries_its_header() -> None:
    flow = compiled(
        """
        name: order
        description: Ships an order.
        input: {type: object, properties: {id: {$ref: "#/$defs/id"}}, $defs: {id: {type: integer}}}
        key: "{{input.id}}"
        key_scope: global
        tags: [shop, urgent]
        metadata: {owner: {team: sales}}
        start: a
        steps: {a: {tool: echo, description: Says hello., done: true}}
        output: {done: "{{steps.a.result}}"}
        """
    )
    assert (flow.name, flow.description, flow.key_scope) == ("order", "Ships an order.", KeyScope.GLOBAL)
    assert (flow.tags, flow.metadata) == (("shop", "urgent"), {"owner": {"team": "sales"}})
    assert flow.key is not None
    assert flow.key.source == "{{input.id}}"
    assert flow.output is not None
    assert flow.output.source == {"done": "{{steps.a.result}}"}
    assert flow.input_schema is not None
    assert flow.input_schema["type"] == "object"
    assert (flow.steps["a"].description, flow.lenient) == ("Says hello.", False)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (None, "flow"),
        ("research", "research"),
        ("my flow.v2", "my-flow-v2"),
        ("!!", "flow"),
        ("x" * 99, "x" * 64),
    ],
)
def test_a_flow_without_a_name_takes_the_one_that_is_offered(given: str | None, name: str) -> None:
    assert compile_flow({"start": {"done": True}}, name=given).name == name


@pytest.mark.parametrize(
    ("step", "action"),
    [
        ("{next: b}", Pass()),
        ("{tool: null, args: {}, next: b}", Gate()),
        ("{tool: null, timeout_s: 60, next: b}", Gate(timeout_s=60)),
        ("{notify_user: true, timeout_s: 60, next: b}", Gate(timeout_s=60)),
        ("{notify_user: ann, timeout_s: 60, next: b}", Gate(notify=("ann",), timeout_s=60)),
        ("{notify_user: [ann, bob], timeout_s: 60, next: b}", Gate(notify=("ann", "bob"), timeout_s=60)),
        ("{approval: {}, timeout_s: 5, next: b}", Gate(timeout_s=5)),
        (
            (
                "{approval: {approvers: [ann, 'group:ops'], quorum: 3, allow_self: true,"
                " require_comment: true, form: {type: object}, notify: [ops], timeout_s: 1.5,"
                " on_timeout: escalate,"
                " escalate_to: [eve], remind_every_s: 0.5, on_deny: c}, next: b}"
            ),
            Gate(
                ("ann", "group:ops"),
                3,
                allow_self=True,
                require_comment=True,
                form={"type": "object"},
                notify=("ops",),
                timeout_s=1.5,
                on_timeout=OnTimeout.ESCALATE,
                escalate_to=("eve",),
                remind_every_s=0.5,
            ),
        ),
        ("{wait: {signal: paid}, next: b}", Wait("paid")),
        ("{wait: {signal: paid, on_timeout: c}, timeout_s: 9, next: b}", Wait("paid", None, 9)),
        ("{wait: {signal: paid, timeout_s: 3, on_timeout: c}, timeout_s: 9, next: b}", Wait("paid", None, 3)),
    ],
)
def test_what_a_step_does(step: str, action: object) -> None:
    assert one_step(step).steps["a"].action == action


def test_steps_that_carry_templates() -> None:
    flow = compiled(
        """
        start: call
        steps:
          call: {tool: echo, args: {x: "{{input.x}}"}, next: delay}
          delay: {delay: 1.5, next: until}
          until: {until: "2030-01-31T09:00:00Z", next: wait}
          wait: {wait: {signal: paid, key: "{{input.id}}"}, next: each}
          each: {foreach: {items: "{{input.xs}}", tool: echo, args: {v: "{{item}}"}, concurrency: 4,
                           on_item_error: collect}, next: flows}
          flows: {foreach: {items: [1, 2], flow: child, version: 2, input: {n: "{{item}}"}}, next: sub}
          sub: {flow: {name: child, input: {n: 1}, wait: false}, done: true}
        """
    )
    actions = {name: step.action for name, step in flow.steps.items()}
    match actions:
        case {
            "call": Call("echo", args),
            "delay": Delay(seconds),
            "until": Until(moment),
            "wait": Wait("paid", key),
            "each": Foreach(items, Call("echo", each), 4, OnItemError.COLLECT),
            "flows": Foreach(numbers, SubFlow("child", 2, number, True), 1_000, OnItemError.FAIL),
            "sub": SubFlow("child", None, inner, False),
        }:
            assert key is not None
            sources = [args, seconds, moment, key, items, each, numbers, number, inner]
            assert [template.source for template in sources] == [
                {"x": "{{input.x}}"},
                1.5,
                "2030-01-31T09:00:00Z",
                "{{input.id}}",
                "{{input.xs}}",
                {"v": "{{item}}"},
                [1, 2],
                {"n": "{{item}}"},
                {"n": 1},
            ]
        case _:
            pytest.fail(f"{actions}")


@pytest.mark.parametrize(
    ("step", "edges"),
    [
        ("{next: b}", [Edge("a", Label.NEXT, "b")]),
        ("{join: b}", [Edge("a", Label.JOIN, "b")]),
        ("{parallel: [b, c]}", [Edge("a", Label.PARALLEL, "b", 0), Edge("a", Label.PARALLEL, "c", 1)]),
        (
            (
                "{branch: [{if: result == true, then: b}, {if: result == false, then: c}, {else: b}],"
                " on_error: c}"
            ),
            [
                Edge("a", Label.IF, "b", 0),
                Edge("a", Label.IF, "c", 1),
                Edge("a", Label.ELSE, "b"),
                Edge("a", Label.ERROR, "c"),
            ],
        ),
        (
            "{tool: echo, on: {yes: b, no: c}}",
            [Edge("a", Label.ON, "b", 0, "yes"), Edge("a", Label.ON, "c", 1, "no")],
        ),
        (
            "{approval: {on_deny: c}, next: b, on_error: c}",
            [Edge("a", Label.NEXT, "b"), Edge("a", Label.ERROR, "c"), Edge("a", Label.DENY, "c")],
        ),
        (
            "{wait: {signal: s, timeout_s: 1, on_timeout: c}, next: b}",
            [Edge("a", Label.NEXT, "b"), Edge("a", Label.TIMEOUT, "c")],
        ),
    ],
)
def test_where_a_step_goes_on(step: str, edges: list[Edge]) -> None:
    flow = one_step(step)
    assert list(flow.steps["a"].edges) == edges
    assert flow.ways_in["a"] == ()
    assert [edge for way in ("b", "c") for edge in flow.ways_in[way]] == sorted(edges, key=lambda e: e.target)


def test_join_beside_parallel_is_where_its_branches_go_on() -> None:
    flow = compiled(
        """
        start: fan
        steps:
          fan: {parallel: [a, b, c], join: merge}
          a: {tool: echo}
          b: {tool: echo, on_error: c2}
          c: {next: c2}
          c2: {next: merge}
          merge: {done: true}
        """
    )
    assert [edge.label for edge in flow.steps["fan"].edges] == [Label.PARALLEL] * 3
    assert flow.steps["a"].edges == (Edge("a", Label.JOIN, "merge"),)
    assert flow.steps["b"].edges == (Edge("b", Label.JOIN, "merge"), Edge("b", Label.ERROR, "c2"))
    assert [edge.source for edge in flow.ways_in["merge"]] == ["a", "b", "c2"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("all", (JoinMode.ALL, 0)), ("any", (JoinMode.ANY, 0)), ("2", (JoinMode.COUNT, 2))],
)
def test_how_a_join_fires(mode: str, expected: tuple[JoinMode, int]) -> None:
    step = one_step(f"{{join_mode: {mode}, next: b, optional: true}}").steps["a"]
    assert ((step.join_mode, step.join_count), step.optional) == (expected, True)


def test_policies_come_from_the_step_then_the_flow_then_the_engine() -> None:
    header = (
        "defaults: {retry: {max_attempts: 5, backoff: [1], no_retry_on: [ValueError]}, timeout_s: 60,"
        " queue: slow, priority: 7, on_lost: hold}"
    )
    step = one_step(
        "{tool: echo, retry: {backoff: {initial_s: 2}}, priority: 0, next: b}", header=header
    ).steps["a"]
    assert step.retry == Retry(5, Exponential(2, 2, 3600, 0), ("ValueError",))
    assert (step.timeout_s, step.queue, step.priority, step.on_lost) == (60, "slow", 0, OnLost.HOLD)
    plain = one_step("{tool: echo, next: b}").steps["a"]
    assert plain.retry == Retry(3, (30.0, 120.0, 300.0), ())
    assert (plain.timeout_s, plain.queue, plain.priority, plain.on_lost) == (None, None, None, OnLost.RETRY)


def test_a_time_limit_for_tools_is_none_for_gates_waits_and_sub_flows() -> None:
    header = "defaults: {timeout_s: 60}"
    gate = one_step("{approval: {}, next: b}", header=header).steps["a"]
    assert (gate.action, gate.timeout_s) == (Gate(), None)
    wait = one_step("{wait: {signal: s}, next: b}", header=header).steps["a"]
    assert (wait.action, wait.timeout_s) == (Wait("s"), None)
    assert one_step("{flow: {name: x}, next: b}", header=header).steps["a"].timeout_s is None
    assert one_step("{flow: {name: x}, timeout_s: 5, next: b}", header=header).steps["a"].timeout_s == 5
    assert one_step("{foreach: {items: [], tool: x}, next: b}", header=header).steps["a"].timeout_s == 60


@pytest.mark.parametrize("step", ["flow: {name: x}", "foreach: {items: [], flow: x}"])
def test_a_sub_flow_is_repeated_only_where_its_step_says_so(step: str) -> None:
    header = "defaults: {retry: {max_attempts: 5}}"
    assert one_step(f"{{{step}, next: b}}", header=header).steps["a"].retry.max_attempts == 1
    own = one_step(f"{{{step}, retry: {{max_attempts: 2}}, next: b}}", header=header).steps["a"]
    assert own.retry.max_attempts == 2


def test_results_that_may_be_read_later_are_kept() -> None:
    flow = compiled(
        """
        start: a
        steps:
          a: {tool: echo, next: b}
          b: {tool: echo, next: c}
          c: {tool: echo, args: {x: "{{steps.a.result}}"}, parallel: [d, e]}
          d: {tool: echo, join: f}
          e: {tool: echo, join: f}
          f: {tool: echo, next: g}
          g: {tool: echo, next: h}
          h: {tool: echo, done: true}
        """
    )
    assert flow.kept == {"a", "d", "e", "h"}
    everything = compiled(
        'start: {tool: echo, next: b}\nb: {tool: echo, args: {x: "{{steps[input.n]}}"}, done: true}'
    )
    assert everything.kept == {"start", "b"}


def test_sub_flows_are_named_and_pinned() -> None:
    flow = compiled(
        """
        start: a
        steps:
          a: {flow: {name: one}, next: b}
          b: {foreach: {items: [1], flow: two, version: 3}, done: true}
        """
    )
    assert flow_references(flow) == {("one", None), ("two", 3)}
    pinned = pin(flow, {("one", None): "d1", ("two", 3): "d2"})
    match pinned.steps["a"].action, pinned.steps["b"].action:
        case SubFlow() as first, Foreach(body=SubFlow() as second):
            assert (first.definition_id, second.definition_id) == ("d1", "d2")
        case other:
            pytest.fail(f"{other}")
    assert pinned.ways_in == flow.ways_in


def test_the_canonical_document_is_the_document_as_it_was_written() -> None:
    data = {"start": {"tool": "echo", "done": True}}
    assert canonical_document(data) == data
    with pytest.raises(InvalidFlow):
        canonical_document({"start": {1, 2}})


def test_data_that_was_never_text_is_held_to_the_same_bounds() -> None:
    itself: list[object] = []
    itself.extend([itself, itself])
    wide = {"start": {"tool": "echo", "args": {"x": "x" * 300_000}, "done": True}}
    for data, code in [({"start": {"args": itself}}, "too-deep"), (wide, "too-large"), ({1: {}}, "bad-key")]:
        with pytest.raises(InvalidFlow) as caught:
            compile_flow(data)
        assert caught.value.faults[0].code == code


def test_all_faults_of_shape_come_at_once_with_their_places() -> None:
    with pytest.raises(InvalidFlow) as caught:
        compiled(
            "start: a\nsteps:\n  a: {tool: echo, aproval: {}, retry: {max_attempts: 0}, next: b}\n"
            '  b: {tool: echo, args: {x: ["{{"]}, done: 1}\n'
        )
    assert sorted(map(str, caught.value.faults)) == [
        "3:19: steps.a.aproval: there is no field `aproval` [unknown-field] (did you mean `approval`?)",
        "3:40: steps.a.retry.max_attempts: must be 1 or more; it is 0 [out-of-range]",
        (
            "4:30: steps.b.args.x[0]: `{{` is never closed; add `}}` (in `{{`, column 1) [bad-template]"
            " (see docs/expressions.md)"
        ),
        "4:38: steps.b.done: must be true or false; it is the number 1 [bad-type]",
    ]


def test_the_order_of_keys_in_json_does_not_matter_to_the_flow() -> None:
    data = {"start": "a", "steps": {"a": {"next": "b"}, "b": {"done": True}}}
    assert compiled(json.dumps(data, sort_keys=True)) == compiled(json.dumps(data))
