"""On which layer each step stands: one below the lowest of those that lead to it."""

from __future__ import annotations

from dataclasses import dataclass

from wfcelery.core import graph
from wfcelery.core.flow import Edge, Flow


@dataclass(frozen=True, slots=True)
class Layers:
    """The steps in order, the layer of each, the edges that lead down and those that lead back up.

    A good flow has none that lead back; a picture is also wanted of one that is not good yet.
    """

    order: tuple[str, ...]
    layer: dict[str, int]
    down: tuple[Edge, ...]
    back: tuple[Edge, ...]


def layers(flow: Flow) -> Layers:
    """Give each step the length of the longest way to it. Edges to unknown steps are left out."""
    order = graph.order(flow.steps)
    if len(order) < len(flow.steps):
        free = set(order)
        order += tuple(name for name in flow.steps if name not in free)
    turn = {name: index for index, name in enumerate(order)}
    layer = dict.fromkeys(order, 0)
    down: list[Edge] = []
    back: list[Edge] = []
    for name in order:
        for edge in flow.steps[name].edges:
            if edge.target not in turn:
                continue
            if turn[edge.target] <= turn[name]:
                back.append(edge)
                continue
            down.append(edge)
            layer[edge.target] = max(layer[edge.target], layer[name] + 1)
    return Layers(order, layer, tuple(down), tuple(back))
