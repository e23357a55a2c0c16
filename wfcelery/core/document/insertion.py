"""Gates that a flow leaves out: put before each step whose tool may only be called after an approval.

The gate takes the step's place: whatever led to the step leads to the gate, the gate is the join where the
step was one, and it passes on the result that came in, so that the step's templates mean what they meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from wfcelery.core.approval import ungated
from wfcelery.core.document.build import build
from wfcelery.core.document.steps import WAYS
from wfcelery.core.flow import Flow, Label
from wfcelery.core.limits import DEFAULT, Limits

if TYPE_CHECKING:
    from wfcelery.core.values import Json

_LONGEST_NAME: Final = 64
_SINGLE: Final = ("next", "join", "on_error")
_START: Final = "start"


def insert_gates(document: Json, needs: Callable[[str], bool], *, limits: Limits = DEFAULT) -> Json:
    """Give the document with the gates it lacks; `needs` tells which tools ask for one.

    A document with faults is given back as it is: they are to be told as they stand in it. So is the unnamed
    first step of the flat form, before which there is no room.
    """
    if not isinstance(document, Mapping) or not any(map(needs, _tools(document))):
        return document
    draft = build(document, limits=limits)
    if draft.flow is None or draft.faults:
        return document
    gates = _names(draft.flow, needs)
    if not gates:
        return document
    if draft.flow.lenient:
        return _flat(document, draft.flow, gates)
    steps = document["steps"]
    written = {} if not isinstance(steps, Mapping) else dict(_steps(steps, draft.flow, gates))
    return {**document, "start": gates.get(draft.flow.start, draft.flow.start), "steps": written}


def _tools(document: Mapping[str, Json]) -> Iterator[str]:
    """Name the tools that a document seems to call, without a look at whether it is one."""
    steps = document.get("steps", document)
    for spec in steps.values() if isinstance(steps, Mapping) else ():
        for part in (spec, spec.get("foreach")) if isinstance(spec, Mapping) else ():
            tool = part.get("tool") if isinstance(part, Mapping) else None
            if isinstance(tool, str):
                yield tool


def _names(flow: Flow, needs: Callable[[str], bool]) -> dict[str, str]:
    """Name the gate of each step that lacks one."""
    taken = {name.lower() for name in flow.steps}
    gates: dict[str, str] = {}
    for name in ungated(flow, needs):
        if not (flow.lenient and name == _START):
            gates[name] = _unused(f"approve-{name}", taken)
            taken.add(gates[name].lower())
    return gates


def _unused(wish: str, taken: Collection[str]) -> str:
    name, number = wish[:_LONGEST_NAME], 1
    while name.lower() in taken:
        number += 1
        ending = f"-{number}"
        name = wish[: _LONGEST_NAME - len(ending)] + ending
    return name


def _flat(document: Mapping[str, Json], flow: Flow, gates: Mapping[str, str]) -> Json:
    start = document.get(_START)
    rest = {name: spec for name, spec in document.items() if name != _START}
    if isinstance(start, Mapping) and flow.start not in gates:
        return {_START: _led(start, gates), **dict(_steps(rest, flow, gates))}
    if isinstance(start, Mapping):
        rest = {flow.start: start, **rest}
    return {_START: gates.get(flow.start, flow.start), **dict(_steps(rest, flow, gates))}


def _steps(steps: Mapping[str, Json], flow: Flow, gates: Mapping[str, str]) -> Iterator[tuple[str, Json]]:
    for name, spec in steps.items():
        if not isinstance(spec, Mapping):
            continue
        if name not in gates:
            yield name, _led(spec, gates)
            continue
        gate: dict[str, Json] = {"approval": {"pass_result": True}, "next": name}
        step = _led(spec, gates)
        if "join_mode" in step:
            gate["join_mode"] = step.pop("join_mode")
        joins = flow.steps[name].edge(Label.JOIN)
        if joins is not None and not any(way in spec for way in WAYS):
            # It was a branch for which `join` beside `parallel` spoke; now the gate is that branch.
            step["join"] = gates.get(joins.target, joins.target)
        yield gates[name], gate
        yield name, step


def _led(spec: Mapping[str, Json], gates: Mapping[str, str]) -> dict[str, Json]:
    """Write a step with every way that led to a gated step leading to its gate."""

    def to(target: Json) -> Json:
        return gates.get(target, target) if isinstance(target, str) else target

    step = dict(spec)
    for field in _SINGLE:
        if field in step:
            step[field] = to(step[field])
    match step.get("parallel"):
        case list(branches):
            step["parallel"] = [to(branch) for branch in branches]
    match step.get("branch"):
        case list(arms):
            step["branch"] = [_with(arm, ("then", "else"), to) for arm in arms]
    match step.get("on"):
        case Mapping() as outcomes:
            step["on"] = {event: to(target) for event, target in outcomes.items()}
    for field, way in (("approval", "on_deny"), ("wait", "on_timeout")):
        if field in step:
            step[field] = _with(step[field], (way,), to)
    return step


def _with(part: Json, fields: Collection[str], to: Callable[[Json], Json]) -> Json:
    if not isinstance(part, Mapping):
        return part
    return {name: to(value) if name in fields else value for name, value in part.items()}
