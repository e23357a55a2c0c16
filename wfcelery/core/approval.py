"""Whether people let a step begin: what a tool that requires an approval is held to.

Such a tool may be called only by a step that has a single way in, and that from a gate which somebody else
than the starter must open: not the clock (`on_timeout: approve`), and not the starter alone (`allow_self`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wfcelery.core import graph
from wfcelery.core.flow import Edge, Flow, Gate, Label, OnTimeout
from wfcelery.core.state import NO_ITEM, Run, StepStatus

_ON_APPROVAL: Final = frozenset({Label.NEXT, Label.JOIN, Label.PARALLEL, Label.IF, Label.ELSE})


def is_approved(flow: Flow, run: Run, step: str) -> bool:
    """Tell whether the step is right behind a gate that people have approved in this run.

    A gate that was denied, skipped, cancelled or is still open does not count; nor does one that could have
    opened without somebody else, whoever did it in this run.
    """
    way = way_from_gate(flow, step)
    if way is None or not takes_others(_gate(flow, way)):
        return False
    attempt = run.attempts.get((way.source, NO_ITEM))
    return attempt is not None and attempt.status is StepStatus.DONE and attempt.took == way.choice


def takes_others(gate: Gate) -> bool:
    """Tell whether nobody but another person than the starter can open the gate."""
    return gate.on_timeout is not OnTimeout.APPROVE and not gate.allow_self


def way_from_gate(flow: Flow, step: str) -> Edge | None:
    """Give the single way to a step, if it comes from a gate and is taken on approval only."""
    ways = flow.ways_in.get(step, ())
    if len(ways) != 1 or ways[0].label not in _ON_APPROVAL:
        return None
    return ways[0] if isinstance(flow.steps[ways[0].source].action, Gate) else None


def ungated(flow: Flow, needs: Callable[[str], bool]) -> list[str]:
    """Name the steps that call a tool which needs an approval, and stand behind no gate."""
    calls = [(step.name, graph.call(step)) for step in flow.steps.values()]
    return [
        name
        for name, call in calls
        if call is not None and needs(call.tool) and way_from_gate(flow, name) is None
    ]


def _gate(flow: Flow, way: Edge) -> Gate:
    action = flow.steps[way.source].action
    if not isinstance(action, Gate):
        message = f"{way.source} is no gate"
        raise TypeError(message)
    return action
