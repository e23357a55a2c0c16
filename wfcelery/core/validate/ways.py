"""Faults of the graph: steps that are not there, cannot be reached, lead nowhere, or can never join."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import or_
from typing import TYPE_CHECKING, Final

from wfcelery.core import graph
from wfcelery.core.faults import nearest
from wfcelery.core.flow import Edge, Flow, JoinMode, Label, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wfcelery.core.validate.subject import Subject

_WAYS_OUT: Final = frozenset({Label.ERROR, Label.DENY, Label.TIMEOUT})
_MOST_PAIRED: Final = 64
_LONGEST_SHOWN: Final = 12


def check_ways(subject: Subject) -> None:
    """Note every fault of the graph."""
    _unknown_steps(subject)
    _cycles(subject)
    _unreachable(subject)
    _leaves(subject)
    _joins(subject)
    _parallels(subject)


def path_of(edge: Edge, step: Step) -> tuple[str | int, ...]:
    """Say in which field of its step an edge is written."""
    match edge.label:
        case Label.PARALLEL:
            return ("parallel", edge.index)
        case Label.IF:
            return ("branch", edge.index, "then")
        case Label.ELSE:
            return ("branch", len(step.conditions), "else")
        case Label.ON:
            return ("on", edge.event)
        case Label.ERROR:
            return ("on_error",)
        case Label.DENY:
            return ("approval", "on_deny")
        case Label.TIMEOUT:
            return ("wait", "on_timeout")
        case Label.NEXT | Label.JOIN:
            return (edge.label.value,)


def _unknown_steps(subject: Subject) -> None:
    steps = subject.flow.steps
    for step in steps.values():
        for edge in step.edges:
            if edge.target not in steps:
                message = f"there is no step `{edge.target[:64]}`"
                subject.add(
                    "unknown-step", step.name, path_of(edge, step), message, nearest(edge.target, steps)
                )


def _cycles(subject: Subject) -> None:
    for cycle in graph.cycles(subject.flow.steps):
        step = subject.flow.steps[cycle[0]]
        edge = next(edge for edge in step.edges if edge.target == cycle[1])
        shown = cycle if len(cycle) <= _LONGEST_SHOWN else (*cycle[:6], "…", *cycle[-5:])
        message = f"the steps lead in a circle: {' → '.join(shown)}"
        hint = "a flow ends; use `retry`, `foreach` or a sub-flow to repeat work"
        subject.add("cycle", step.name, path_of(edge, step), message, hint)


def _unreachable(subject: Subject) -> None:
    flow = subject.flow
    if flow.start not in flow.steps or subject.unsure:
        return
    reached = graph.reachable(flow.steps, flow.start)
    for name in flow.steps:
        if name not in reached:
            message = f"no path from the start leads to `{name}`"
            subject.add("unreachable-step", name, (), message, "lead to it from some step, or remove it")


def _leaves(subject: Subject) -> None:
    for step in subject.flow.steps.values():
        goes_on = any(edge.label not in _WAYS_OUT for edge in step.edges)
        if not goes_on and not step.done and step.name not in subject.unsure:
            message = "nothing follows this step, and it is not `done`"
            subject.add("leaf-not-done", step.name, (), message, "add `done: true`, or say what is `next`")


def _joins(subject: Subject) -> None:
    flow = subject.flow
    if subject.unsure:
        return
    for name, edges in flow.ways_in.items():
        step = flow.steps[name]
        if len(edges) == 1 and edges[0].label is Label.JOIN:
            message = f"`{name}` has no other way in, so nothing is joined there"
            hint = f"let another branch say `join: {name}`, or write `next: {name}`"
            subject.add("branches-never-join", edges[0].source, ("join",), message, hint)
        for message, hint in _faults_of_mode(flow, step, edges):
            subject.add("join-cannot-fire", name, ("join_mode",), message, hint)


def _parallels(subject: Subject) -> None:
    """Note a step of whose parallel branches no two ever meet again."""
    steps = subject.flow.steps
    ordered = graph.order(steps)
    if subject.unsure or len(ordered) < len(steps):
        return
    reached: dict[str, int] = {}
    for place, name in enumerate(reversed(ordered)):
        onward = [reached[edge.target] for edge in steps[name].edges if edge.target in reached]
        reached[name] = reduce(or_, onward, 1 << place)
    for step in steps.values():
        branches = [reached.get(edge.target, 0) for edge in step.edges if edge.label is Label.PARALLEL]
        # Sets without a common member are as large together as one by one.
        together = reduce(or_, branches, 0)
        if len(branches) > 1 and together.bit_count() == sum(each.bit_count() for each in branches):
            message = "the parallel branches never meet"
            hint = "let them lead to one step, which waits for them: say `join: STEP` in each"
            subject.add("branches-never-join", step.name, ("parallel",), message, hint)


def _faults_of_mode(flow: Flow, step: Step, edges: tuple[Edge, ...]) -> Iterator[tuple[str, str]]:
    if step.join_mode is JoinMode.ALL:
        return
    ways = "1 way" if len(edges) == 1 else f"{len(edges)} ways"
    if step.join_mode is JoinMode.COUNT and not 1 <= step.join_count <= max(len(edges), 1):
        yield (
            f"it waits for {step.join_count}, and there are {ways} in",
            "write a number from 1 to the ways in",
        )
    elif len(edges) <= 1:
        yield f"there is nothing to join: the step has {ways} in", "remove `join_mode`"
    elif step.join_mode is JoinMode.COUNT and step.join_count > 1 and _exclude_each_other(flow, edges):
        yield (
            f"it waits for {step.join_count}, and only one of its ways in is ever taken",
            "use `all` or `any`",
        )


def _exclude_each_other(flow: Flow, edges: tuple[Edge, ...]) -> bool:
    """Tell whether at most one of `edges` can be taken in a run, as far as single ways back tell."""
    if len(edges) > _MOST_PAIRED:
        return False
    choices = [_choices(flow, edge) for edge in edges]
    return all(
        any(source in second and second[source] != way for source, way in first.items())
        for first, second in combinations(choices, 2)
    )


def _choices(flow: Flow, edge: Edge) -> dict[str, str]:
    """Collect which way was taken at each choice on the single way back from `edge`."""
    taken: dict[str, str] = {}
    while edge.source not in taken:
        taken[edge.source] = edge.label.value if edge.label is Label.PARALLEL else edge.id
        ways = flow.ways_in[edge.source]
        if len(ways) != 1:
            break
        edge = ways[0]
    return taken
