"""Words for what a step does and which way is which, shared by the drawings."""

from __future__ import annotations

from wfcelery.core.flow import Edge, Flow, JoinMode, Label, Step
from wfcelery.drawing.words import does


def what(step: Step) -> str:
    """Say in a few words what a step does, as the picture says it."""
    return does(step.action)


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
