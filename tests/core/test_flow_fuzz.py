"""Whatever is done to a valid flow, the answer is a flow or `InvalidFlow`, and a valid one can be walked."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wfcelery.core import graph
from wfcelery.core.reading import read
from wfcelery.core.validate import check_flow
from wfcelery.errors import InvalidFlow

VALID: dict[str, Any] = {
    "name": "order",
    "input": {"type": "object"},
    "key": "{{input.id}}",
    "tags": ["a"],
    "defaults": {"retry": {"max_attempts": 2, "backoff": [1, 2]}, "timeout_s": 5, "queue": "q"},
    "start": "a",
    "steps": {
        "a": {"tool": "echo", "args": {"x": "{{input.x}}"}, "parallel": ["b", "c"], "join": "d"},
        "b": {"approval": {"approvers": ["ann"], "timeout_s": 5, "on_deny": "z"}},
        "c": {"wait": {"signal": "s", "key": "{{input.id}}", "timeout_s": 9, "on_timeout": "z"}, "join": "d"},
        "d": {"join_mode": "all", "branch": [{"if": "result == true", "then": "e"}, {"else": "f"}]},
        "e": {"foreach": {"items": "{{input.xs}}", "tool": "echo", "args": {"v": "{{item}}"}}, "next": "g"},
        "f": {"flow": {"name": "child", "input": {}}, "retry": {"backoff": {"initial_s": 1}}, "next": "g"},
        "g": {"delay": 5, "optional": True, "next": "h", "on_error": "z"},
        "h": {"tool": "judge", "on": {"good": "i", "bad": "z"}},
        "i": {"until": "2030-01-01T00:00:00Z", "done": True},
        "z": {"tool": "echo", "args": {"x": "{{steps.a.result}}"}, "done": True},
    },
    "output": {"x": "{{steps.a.result}}"},
}

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**18),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["a", "b", "z", "nowhere", "{{steps.b.result}}", "{{", "steps", "result == true"]),
    st.lists(st.sampled_from(["a", "b", "z", 1, None]), max_size=3),
    st.dictionaries(st.sampled_from(["a", "if", "then", "else", "tool", "items"]), st.just("a"), max_size=3),
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def judged(data: object) -> None:
    try:
        flow = check_flow(data)
    except InvalidFlow as error:
        assert error.faults  # noqa: PT017 (either answer is right)
        assert str(error)  # noqa: PT017
    else:
        assert len(graph.order(flow.steps)) == len(flow.steps)
        assert flow.ways_in[flow.start] == ()


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_mutated_flow_is_a_flow_or_is_refused(data: st.DataObject) -> None:
    mutant: Any = copy.deepcopy(VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(places(mutant)[1:] or [()]))
        if not path:
            break
        holder = mutant
        for part in path[:-1]:
            holder = holder[part]
        key = path[-1]
        match data.draw(st.sampled_from(["drop", "change", "swap", "double", "rename"])):
            case "drop":
                del holder[key]
            case "change":
                holder[key] = data.draw(VALUES)
            case "swap":
                other = data.draw(
                    st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder)))
                )
                holder[key], holder[other] = holder[other], holder[key]
            case "double" | "rename" if isinstance(holder, dict):
                holder[data.draw(st.text(max_size=4) | st.sampled_from([*VALID["steps"], "next"]))] = holder[
                    key
                ]
            case _:
                holder.append(holder[key]) if isinstance(holder, list) else None
    judged(mutant)


@given(
    st.recursive(
        VALUES, lambda inner: st.dictionaries(st.text(max_size=5), inner) | st.lists(inner), max_leaves=20
    )
)
@settings(max_examples=150, deadline=None)
def test_any_data_is_a_flow_or_is_refused(data: object) -> None:
    judged(data)


@given(st.text(max_size=60) | st.binary(max_size=60) | st.text("{}[]:,-&*!|>'\"#% \n\tab1?<", max_size=40))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        document = read(text)
    except InvalidFlow as error:
        assert error.faults  # noqa: PT017 (either answer is right)
    else:
        judged(document.data)


def test_the_flow_that_is_mutated_is_valid_and_survives_a_round_trip() -> None:
    text = json.dumps(VALID)
    assert check_flow(read(text).data) == check_flow(VALID)
