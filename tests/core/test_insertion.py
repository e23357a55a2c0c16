"""Gates that a flow leaves out are put before the tools that require an approval, and change nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from tests.model.flows_strategy import Document, Steps
from tests.model.table import ANN, Table
from wfcelery.core import values
from wfcelery.core.approval import ungated
from wfcelery.core.document import compile_flow, insert_gates
from wfcelery.core.reading import read
from wfcelery.core.validate import check_flow, gated
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow

GATE: Document = {"approval": {"pass_result": True}}
PAY: Document = {"tool": "pay"}
ECHO: Document = {"tool": "echo"}
ALL: Document = {"all": "{{result}}"}


class Tools:
    names = ("echo", "pay")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def events(self, _name: str, /) -> tuple[str, ...]:
        return ()

    def requires_approval(self, name: str, /) -> bool:
        return name == "pay"

    def permission(self, _name: str, /) -> str | None:
        return None

    def check_arguments(
        self, _name: str, _args: Mapping[str, object], _is_constant: Callable[[object], bool], /
    ) -> list[tuple[str, str]]:
        return []


def full(steps: Steps) -> Document:
    return {"start": next(iter(steps)), "steps": steps}


def inserted(document: Document) -> Json:
    """Insert the gates; what came in stays as it was, and what comes out is a good flow without a gap."""
    before = json.dumps(document)
    found = gated(document, Tools())
    assert json.dumps(document) == before
    flow = check_flow(found, tools=Tools())
    assert flow == check_flow(document, tools=Tools())
    assert ungated(flow, lambda tool: tool == "pay") == []
    assert gated(found, Tools()) is found
    return found


def steps_of(steps: Steps) -> Json:
    found = inserted(full(steps))
    assert isinstance(found, dict)
    written: Json = found["steps"]
    return written


def faults(document: Document) -> list[str]:
    with pytest.raises(InvalidFlow) as caught:
        check_flow(document, tools=Tools())
    return [str(fault) for fault in caught.value.faults]


def test_a_gate_is_put_before_the_step_and_what_led_to_the_step_leads_to_the_gate() -> None:
    found = steps_of({"a": {**ECHO, "next": "b"}, "b": {**PAY, "done": True}})
    assert found == {
        "a": {**ECHO, "next": "approve-b"},
        "approve-b": {**GATE, "next": "b"},
        "b": {**PAY, "done": True},
    }


def test_the_first_step_gets_its_gate_too() -> None:
    assert inserted(full({"a": {**PAY, "done": True}})) == {
        "start": "approve-a",
        "steps": {"approve-a": {**GATE, "next": "a"}, "a": {**PAY, "done": True}},
    }


@pytest.mark.parametrize(
    "way",
    [
        {"next": "TO"},
        {"branch": [{"if": "result == 1", "then": "TO"}, {"else": "TO"}]},
        {"branch": [{"if": "result == 1", "then": "end"}, {"else": "TO"}]},
        {"on": {"good": "TO", "bad": "end"}},
        {"parallel": ["TO", "end"]},
        {"next": "end", "on_error": "TO"},
    ],
)
def test_every_way_is_led_to_the_gate(way: Document) -> None:
    def written(to: str) -> Document:
        return dict(json.loads(json.dumps(way).replace("TO", to)))

    found = steps_of({"a": {**ECHO, **written("b")}, "b": {**PAY, "next": "end"}, "end": {"done": True}})
    assert found == {
        "a": {**ECHO, **written("approve-b")},
        "approve-b": {**GATE, "next": "b"},
        "b": {**PAY, "next": "end"},
        "end": {"done": True},
    }


def test_what_follows_a_denial_or_a_signal_that_did_not_come_needs_a_gate_of_its_own() -> None:
    found = steps_of(
        {
            "g": {"approval": {"on_deny": "b"}, "next": "w"},
            "w": {"wait": {"signal": "go", "timeout_s": 5, "on_timeout": "b"}, "done": True},
            "b": {**PAY, "done": True},
        }
    )
    assert found == {
        "g": {"approval": {"on_deny": "approve-b"}, "next": "w"},
        "w": {"wait": {"signal": "go", "timeout_s": 5, "on_timeout": "approve-b"}, "done": True},
        "approve-b": {**GATE, "next": "b"},
        "b": {**PAY, "done": True},
    }


def test_a_join_becomes_the_gates_join() -> None:
    found = steps_of(
        {
            "a": {"parallel": ["b", "c"], "join": "d"},
            "b": ECHO,
            "c": PAY,
            "d": {**PAY, "join_mode": "any", "done": True},
        }
    )
    assert found == {
        "a": {"parallel": ["b", "approve-c"], "join": "approve-d"},
        "b": ECHO,
        "approve-c": {**GATE, "next": "c"},
        "c": {**PAY, "join": "approve-d"},
        "approve-d": {**GATE, "join_mode": "any", "next": "d"},
        "d": {**PAY, "done": True},
    }


def test_the_tool_of_a_foreach_needs_one_gate_for_all_items() -> None:
    found = steps_of({"a": {"foreach": {"items": [1, 2], "tool": "pay"}, "done": True}})
    assert found == {
        "approve-a": {**GATE, "next": "a"},
        "a": {"foreach": {"items": [1, 2], "tool": "pay"}, "done": True},
    }


def test_a_step_that_is_right_behind_a_gate_is_left_alone() -> None:
    document = full({"g": {"approval": {"approvers": ["ann"]}, "next": "b"}, "b": {**PAY, "done": True}})
    assert gated(document, Tools()) is document
    document = full({"a": {**ECHO, "done": True}})
    assert gated(document, Tools()) is document
    assert gated(document, None) is document


def test_the_flat_form_stays_flat() -> None:
    assert inserted({"start": {"name": "a", **PAY, "next": "b"}, "b": {**PAY, "done": True}}) == {
        "start": "approve-a",
        "approve-a": {**GATE, "next": "a"},
        "a": {"name": "a", **PAY, "next": "approve-b"},
        "approve-b": {**GATE, "next": "b"},
        "b": {**PAY, "done": True},
    }
    assert inserted({"start": {**ECHO, "next": "b"}, "b": {**PAY, "done": True}}) == {
        "start": {**ECHO, "next": "approve-b"},
        "approve-b": {**GATE, "next": "b"},
        "b": {**PAY, "done": True},
    }
    assert inserted({"start": "a", "a": {**PAY, "done": True}}) == {
        "start": "approve-a",
        "approve-a": {**GATE, "next": "a"},
        "a": {**PAY, "done": True},
    }


def test_before_the_unnamed_first_step_of_the_flat_form_there_is_no_room() -> None:
    fault = "the tool `pay` may only be called right behind an approval [approval-required]"
    hint = "(put a step with `approval` before it)"
    assert faults({"start": {**PAY, "done": True}}) == [f"start.tool: {fault} {hint}"]


def test_the_name_of_a_gate_is_free_and_not_too_long() -> None:
    long = "x" * 64
    found = steps_of(
        {
            "Approve-b": {**ECHO, "next": "b"},
            "b": {**PAY, "next": long},
            long: {**PAY, "next": f"{long[:-1]}y"},
            f"{long[:-1]}y": {**PAY, "done": True},
        }
    )
    assert isinstance(found, dict)
    assert list(found) == [
        "Approve-b",
        "approve-b-2",
        "b",
        f"approve-{'x' * 56}",
        long,
        f"approve-{'x' * 54}-2",
        f"{long[:-1]}y",
    ]


@pytest.mark.parametrize(
    ("gate", "fault"),
    [
        (
            {"timeout_s": 5, "on_timeout": "approve"},
            ("its gate approves when nobody answers", "let `on_timeout` deny or escalate"),
        ),
        (
            {"allow_self": True},
            ("its gate lets the starter give it alone", "remove `allow_self` from the gate"),
        ),
    ],
)
def test_a_gate_that_opens_without_somebody_else_is_a_fault(gate: Document, fault: tuple[str, str]) -> None:
    found = faults(full({"g": {"approval": gate, "next": "b"}, "b": {**PAY, "done": True}}))
    reason, hint = fault
    assert found == [
        f"steps.b.tool: the tool `pay` asks for an approval, and {reason} [approval-required] ({hint})"
    ]


def test_faults_are_told_as_they_stand_in_the_text() -> None:
    document = read("start: a\nsteps:\n  a: {tool: pay, next: c}\n  b: {tool: pay, done: true}\n")
    with pytest.raises(InvalidFlow) as caught:
        check_flow(document.data, place=document.place, tools=Tools())
    assert [(fault.code, fault.path, fault.line) for fault in caught.value.faults] == [
        ("unknown-step", "steps.a.next", 3),
        ("unreachable-step", "steps.b", 4),
    ]
    wrong: Json = {"start": "a", "steps": {"a": {**PAY, "aproval": {}, "done": True}}}
    assert insert_gates(wrong, lambda _: True) is wrong


def test_the_same_flow_without_its_gate_is_the_same_document_each_time() -> None:
    document = full({"a": {**ECHO, "next": "b"}, "b": {**PAY, "done": True}})
    assert values.canonical(gated(document, Tools())) == values.canonical(gated(document, Tools()))


# -- what `result` means behind it


def table(steps: Steps, value: Json = None) -> Table:
    found = steps_of(steps)
    assert isinstance(found, dict)
    return Table(found, value)


def test_behind_an_inserted_gate_the_result_is_what_it_was_and_the_approver_sees_it() -> None:
    run = table({"a": {**ECHO, "next": "b"}, "b": {**PAY, "args": {"sum": "{{result.sum}}"}, "done": True}})
    run.done("a", {"sum": 7})
    assert run.run.prepared["approve-b", -1].args == {"b": {"args": {"sum": 7}}}
    run.restart()
    run.decide("approve-b")
    assert run.work[-1].args == {"sum": 7}
    assert run.run.results["approve-b"] == {"sum": 7}


def test_at_a_join_it_is_the_map_of_what_came_by_then() -> None:
    run = table(
        {
            "a": {"parallel": ["b", "c"]},
            "b": {**ECHO, "join": "d"},
            "c": {**ECHO, "parallel": ["d", "y"]},
            "y": {**ECHO, "join": "end"},
            "d": {"foreach": {"items": [1], "tool": "pay", "args": ALL}, "join_mode": "any", "join": "end"},
            "end": {"done": True},
        }
    )
    run.done("b", [1, 2])
    run.done("c", 3)
    run.restart()
    run.decide("approve-d")
    assert run.handed == ["b", "c", "y", "d[0]"]
    assert run.work[-1].args == {"all": {"b": [1, 2]}}


def test_on_the_way_of_an_error_it_is_the_error() -> None:
    run = table(
        {
            "a": {**ECHO, "retry": {"max_attempts": 1}, "next": "e", "on_error": "b"},
            "b": {**PAY, "args": {"why": "{{result.error.type}}"}, "next": "e"},
            "e": {"done": True},
        }
    )
    run.failed("a", "Broken")
    run.decide("approve-b")
    assert run.work[-1].args == {"why": "Broken"}


def test_a_denied_gate_that_was_inserted_cancels_the_run() -> None:
    run = table({"a": {**PAY, "done": True}})
    run.decide("approve-a", ANN, approve=False)
    assert run.ended == (
        "cancelled",
        {"type": "denied", "message": "approve-a was denied by ann"},
    )
    assert run.handed == []


def test_a_flow_that_was_read_back_has_the_gate() -> None:
    document = inserted(full({"a": {**PAY, "done": True}}))
    assert list(compile_flow(document).steps) == ["approve-a", "a"]
