"""What the picture says of a step and of a way out of it."""

from __future__ import annotations

from typing import assert_never

from wfcelery.core.flow import (
    Action,
    Call,
    Delay,
    Edge,
    Flow,
    Foreach,
    Gate,
    JoinMode,
    Label,
    Pass,
    Step,
    SubFlow,
    Until,
    Wait,
)

ASIDE = frozenset({Label.ERROR, Label.DENY, Label.TIMEOUT})
"""Ways that leave the road: drawn dashed, and beside it."""


def kind(action: Action) -> str:
    """Name the kind of a step, as its class in the picture."""
    match action:
        case Call():
            return "tool"
        case Gate():
            return "gate"
        case Wait():
            return "wait"
        case Delay() | Until():
            return "timer"
        case Foreach():
            return "foreach"
        case SubFlow():
            return "flow"
        case Pass():
            return "pass"
        case _:
            assert_never(action)


def what(flow: Flow, step: Step) -> str:
    """Say in a few words what a step does, and how it differs from others."""
    return " · ".join(part for part in (does(step.action), *_notes(flow, step)) if part)


def way(step: Step, edge: Edge) -> str:
    """Name a way out of a step; the plain way on has no name."""
    match edge.label:
        case Label.IF:
            conditions = step.conditions
            return conditions[edge.index].source if edge.index < len(conditions) else "if"
        case Label.ON:
            return edge.event
        case Label.ELSE:
            return "else"
        case Label.ERROR:
            return "on error"
        case Label.DENY:
            return "denied"
        case Label.TIMEOUT:
            return "timeout"
        case Label.NEXT | Label.JOIN | Label.PARALLEL:
            return ""
        case _:
            assert_never(edge.label)


def does(action: Action) -> str:
    """Say in a few words what a step does."""
    match action:
        case Call(tool=tool):
            return tool
        case Gate(approvers=approvers, quorum=quorum):
            by = f" by {', '.join(approvers)}" if approvers else ""
            return f"{quorum} approvals{by}" if quorum > 1 else f"approval{by}"
        case Wait(signal=signal):
            return f"waits for signal {signal}"
        case Delay(seconds=seconds):
            return f"waits {_bare(seconds.source)} s"
        case Until(moment=moment):
            return f"waits until {_bare(moment.source)}"
        case SubFlow():
            return f"flow {_named(action)}"
        case Foreach(items=items, body=body):
            does = body.tool if isinstance(body, Call) else f"flow {_named(body)}"
            return f"{does}, each of {_listed(items.source)}"
        case Pass():
            return ""
        case _:
            assert_never(action)


def _notes(flow: Flow, step: Step) -> list[str]:
    said = []
    ways = len(flow.ways_in.get(step.name, ()))
    if ways > 1 and step.join_mode is not JoinMode.ALL:
        wanted = "first" if step.join_mode is JoinMode.ANY else str(step.join_count)
        said.append(f"{wanted} of {ways}")
    if step.optional:
        said.append("optional")
    return said


def _listed(source: object) -> str:
    """Name the list of a foreach, or say how many there are in it."""
    return f"{len(source)}" if isinstance(source, list | tuple) else _bare(source)


def _bare(source: object) -> str:
    """Write a template that is one expression without its braces."""
    said = str(source)
    inner = said.removeprefix("{{").removesuffix("}}")
    return inner.strip() if len(inner) == len(said) - 4 and "{{" not in inner else said


def _named(body: SubFlow) -> str:
    return body.name if body.version is None else f"{body.name}@{body.version}"
