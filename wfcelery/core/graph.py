"""The graph of a flow: ways in, order, cycles, who comes before whom. Nothing here recurses."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from wfcelery.core.flow import (
    Call,
    Delay,
    Edge,
    Flow,
    Foreach,
    Gate,
    Pass,
    Step,
    SubFlow,
    Until,
    Wait,
)

if TYPE_CHECKING:
    from wfcelery.core.expressions import Reference, Template

Steps: TypeAlias = Mapping[str, Step]


def ways_in(steps: Steps) -> dict[str, tuple[Edge, ...]]:
    """List the edges that lead to each step; edges to unknown steps lead nowhere."""
    found: dict[str, list[Edge]] = {name: [] for name in steps}
    for step in steps.values():
        for edge in step.edges:
            if edge.target in found:
                found[edge.target].append(edge)
    return {name: tuple(edges) for name, edges in found.items()}


def reachable(steps: Steps, start: str) -> frozenset[str]:
    """Name the steps that some path from `start` leads to, `start` with them."""
    if start not in steps:
        return frozenset()
    seen, todo = {start}, [start]
    while todo:
        for target in _targets(steps, todo.pop()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return frozenset(seen)


def order(steps: Steps) -> tuple[str, ...]:
    """Put every step after those that lead to it; steps on a cycle, and behind one, are left out."""
    waits = dict.fromkeys(steps, 0)
    for name in steps:
        for target in _targets(steps, name):
            waits[target] += 1
    ready = deque(name for name, count in waits.items() if count == 0)
    ordered = []
    while ready:
        name = ready.popleft()
        ordered.append(name)
        for target in _targets(steps, name):
            waits[target] -= 1
            if waits[target] == 0:
                ready.append(target)
    return tuple(ordered)


def cycles(steps: Steps) -> list[tuple[str, ...]]:
    """Give one shortest cycle of each knot of steps that lead to one another, as a → b → a."""
    free = set(order(steps))
    rest = {name: step for name, step in steps.items() if name not in free}
    found: list[tuple[str, ...]] = []
    for knot in _knots(rest):
        first = knot[0]
        if len(knot) > 1 or first in _targets(steps, first):
            found.append(_shortest_cycle(steps, first, set(knot)))
    return found


def template_references(step: Step) -> Iterator[tuple[str, tuple[Reference, ...]]]:
    """Give the references of each template of a step, with the field in which it stands."""
    for field, template in _templates(step):
        yield field, template.references


def kept(steps: Steps, others: Iterable[Reference]) -> frozenset[str]:
    """Name the steps whose results something may read after the next decision; when in doubt, keep."""
    names: set[str] = set()
    references = [*others]
    for step in steps.values():
        references += [each for _, found in template_references(step) for each in found]
        references += [each for condition in step.conditions for each in condition.references]
    for each in references:
        if each.root == "steps":
            if not each.path or not isinstance(each.path[0], str):
                return frozenset(steps)
            names.add(each.path[0])
    for name, edges in ways_in(steps).items():
        step = steps[name]
        if step.done or not isinstance(step.action, Call):
            names.add(name)
        if len(edges) > 1 or not isinstance(step.action, Call):
            names.update(edge.source for edge in edges)
    return frozenset(names.intersection(steps))


def flow_references(flow: Flow) -> frozenset[tuple[str, int | None]]:
    """Name the sub-flows that the flow runs, with the version it asks for."""
    bodies = [body for step in flow.steps.values() if (body := sub_flow(step)) is not None]
    return frozenset((body.name, body.version) for body in bodies)


def sub_flow(step: Step) -> SubFlow | None:
    """Give the sub-flow that a step runs, once or for each item."""
    action = step.action.body if isinstance(step.action, Foreach) else step.action
    return action if isinstance(action, SubFlow) else None


def call(step: Step) -> Call | None:
    """Give the tool call that a step makes, once or for each item."""
    action = step.action.body if isinstance(step.action, Foreach) else step.action
    return action if isinstance(action, Call) else None


def _targets(steps: Steps, name: str) -> list[str]:
    """Give the known steps that a step leads to, one by one for each edge."""
    return [edge.target for edge in steps[name].edges if edge.target in steps]


def _templates(step: Step) -> Iterator[tuple[str, Template]]:
    match step.action:
        case Call(_, args):
            yield "args", args
        case Wait(_, key):
            if key is not None:
                yield "wait.key", key
        case Delay(seconds):
            yield "delay", seconds
        case Until(moment):
            yield "until", moment
        case SubFlow(input=source):
            yield "flow.input", source
        case Foreach(items, body):
            yield "foreach.items", items
            yield ("foreach.args", body.args) if isinstance(body, Call) else ("foreach.input", body.input)
        case Gate() | Pass():
            pass


def _knots(steps: Steps) -> list[list[str]]:
    """Find the strongly connected components (Tarjan's way, with a stack of our own)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: list[list[str]] = []
    for root in steps:
        if root in number:
            continue
        work = [(root, iter(_targets(steps, root)))]
        number[root] = low[root] = len(number)
        path.append(root)
        on_path.add(root)
        while work:
            name, targets = work[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    path.append(target)
                    on_path.add(target)
                    work.append((target, iter(_targets(steps, target))))
                    break
                if target in on_path:
                    low[name] = min(low[name], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == number[name]:
                    cut = path.index(name)
                    found.append(path[cut:])
                    on_path.difference_update(path[cut:])
                    del path[cut:]
    return found


def _shortest_cycle(steps: Steps, first: str, within: Collection[str]) -> tuple[str, ...]:
    came_from: dict[str, str] = {}
    todo = deque([first])
    while todo:
        name = todo.popleft()
        for target in _targets(steps, name):
            if target == first:
                trail = [first, name]
                while trail[-1] != first:
                    trail.append(came_from[trail[-1]])
                return tuple(reversed(trail))
            if target in within and target not in came_from:
                came_from[target] = name
                todo.append(target)
    return (first, first)
