"""Faults of what a flow calls: tools and other flows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from wfcelery.core import approval, graph
from wfcelery.core.expressions import parse_template
from wfcelery.core.faults import nearest
from wfcelery.core.flow import Foreach, Gate, Label, OnTimeout

if TYPE_CHECKING:
    from wfcelery.core.catalogue import FlowCatalogue, ToolCatalogue
    from wfcelery.core.flow import Call, Step
    from wfcelery.core.reading.place import Path
    from wfcelery.core.validate.subject import Subject
    from wfcelery.core.values import Json

_PART: Final = re.compile(r"[^.\[\]]+|\[\d+\]")


def check_tools(subject: Subject, tools: ToolCatalogue, *, gates_follow: bool = False) -> None:
    """Note tools that are not known, arguments that do not fit, outcomes that nobody takes.

    `gates_follow`: a gate that is missing is no fault, for it will be inserted.
    """
    for step in subject.flow.steps.values():
        call = graph.call(step)
        if call is None or not call.tool:
            continue
        inside: Path = ("foreach",) if isinstance(step.action, Foreach) else ()
        if call.tool not in tools:
            message = f"there is no tool `{call.tool}`"
            hint = nearest(call.tool, tools.names) or "name its module in WFCELERY_TOOLS"
            subject.add("unknown-tool", step.name, (*inside, "tool"), message, hint)
            continue
        _arguments(subject, step, call, tools, inside)
        if tools.requires_approval(call.tool):
            _approval(subject, step, call.tool, (*inside, "tool"), gates_follow=gates_follow)
        _events(subject, step, tools.events(call.tool))


def check_flows(subject: Subject, flows: FlowCatalogue) -> None:
    """Note sub-flows that are not known, and nests of them that are too deep."""
    for step in subject.flow.steps.values():
        body = graph.sub_flow(step)
        if body is None:
            continue
        path: Path = ("foreach", "flow") if isinstance(step.action, Foreach) else ("flow", "name")
        found = flows.find(body.name, body.version)
        if found is None:
            version = "" if body.version is None else f" with version {body.version}"
            message = f"there is no flow `{body.name}`{version}"
            subject.add("unknown-flow", step.name, path, message, "define it first")
        elif found[1] > subject.limits.subflow_depth:
            depth, most = found[1], subject.limits.subflow_depth
            message = f"`{body.name}` makes {depth} levels of sub-flows; at most {most} are allowed"
            subject.add("subflow-too-deep", step.name, path, message, "flatten them")


def _arguments(subject: Subject, step: Step, call: Call, tools: ToolCatalogue, inside: Path) -> None:
    args = call.args.source
    if not isinstance(args, Mapping):
        return
    for place, message in tools.check_arguments(call.tool, args, _is_constant):
        parts = [int(part[1:-1]) if part.startswith("[") else part for part in _PART.findall(place)]
        subject.add("bad-arguments", step.name, (*inside, "args", *parts), message)


def _approval(subject: Subject, step: Step, tool: str, path: Path, *, gates_follow: bool) -> None:
    """Insist on a gate as the only way to a tool that asks for one, and on other people to open it."""
    way = approval.way_from_gate(subject.flow, step.name)
    gate = None if way is None else subject.flow.steps[way.source].action
    asks = f"the tool `{tool}` asks for an approval"
    if not isinstance(gate, Gate):
        if not gates_follow:
            message = f"the tool `{tool}` may only be called right behind an approval"
            subject.add("approval-required", step.name, path, message, "put a step with `approval` before it")
    elif gate.on_timeout is OnTimeout.APPROVE:
        message = f"{asks}, and its gate approves when nobody answers"
        subject.add("approval-required", step.name, path, message, "let `on_timeout` deny or escalate")
    elif not approval.takes_others(gate):
        message = f"{asks}, and its gate lets the starter give it alone"
        subject.add("approval-required", step.name, path, message, "remove `allow_self` from the gate")


def _is_constant(value: object) -> bool:
    return parse_template(cast("Json", value)).is_constant


def _events(subject: Subject, step: Step, declared: tuple[str, ...]) -> None:
    taken = [edge.event for edge in step.edges if edge.label is Label.ON]
    if not taken or not declared:
        return
    for event in taken:
        if event not in declared:
            known = f"it names {', '.join(declared)}"
            message = f"the tool never names the outcome `{event}`"
            subject.add("unknown-event", step.name, ("on", event), message, nearest(event, declared) or known)
    for event in declared:
        if event not in taken:
            message = f"the tool may name the outcome `{event}`, and no way takes it"
            subject.add("event-not-taken", step.name, ("on",), message, f"add `{event}: STEP`")
