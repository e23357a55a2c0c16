"""Words for what a step does and which way is which, shared by the drawings."""

from __future__ import annotations

from typing import assert_never

from wfcelery.core.flow import (
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


def what(step: Step) -> str:
    """Say in a few words what a step does."""
    match step.action:
        case Call(tool=tool):
            return tool
        case Gate(approvers=approvers):
            return f"approval by {', '.join(approvers)}" if approvers else "approval"
        case Wait(signal=signal):
            return f"wait for {signal}"
        case Delay(seconds=seconds):
            return f"delay {seconds.source} s"
        case Until(moment=moment):
            return f"until {moment.source}"
        case SubFlow():
            return f"flow {_named(step.action)}"
        case Foreach(body=body):
            return f"foreach {body.tool if isinstance(body, Call) else 'flow ' + _named(body)}"
        case Pass():
            return ""
        case _:
            assert_never(step.action)


def notes(flow: Flow, step: Step) -> str:
    """Say what is special about a step: how it joins, that it is optional, that it ends the flow."""
    said = []
    ways = len(flow.ways_in[step.name])
    if ways > 1 and step.join_mode is not JoinMode.ALL:
        wanted = "any" if step.join_mode is JoinMode.ANY else str(step.join_count)
        said.append(f"joins {wanted} of {ways}")
    if step.optional:
        said.append("optional")
    if step.done:
        said.append("done")
    return ", ".join(said)


def way(step: Step, edge: Edge) -> str:
    """Name a way out of a step."""
    match edge.label:
        case Label.IF:
            return f"if {step.conditions[edge.index].source}"
        case Label.ON:
            return f"on {edge.event}"
        case Label.ERROR:
            return "on error"
        case Label.DENY:
            return "on deny"
        case Label.TIMEOUT:
            return "on timeout"
        case _:
            return edge.label.value


def _named(body: SubFlow) -> str:
    return body.name if body.version is None else f"{body.name}@{body.version}"
