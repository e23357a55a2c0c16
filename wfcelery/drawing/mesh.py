"""The rows of the picture: steps, places for labels, and bends where a long way passes a row.

A row of steps is followed by a row of labels if a way out of them has one. Ways to the same step share their
bends: twenty steps that lead to one error handler make one line beside them, not twenty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from wfcelery.core.flow import Edge
from wfcelery.drawing.layers import Layers
from wfcelery.drawing.words import ASIDE

MOST_BENDS: Final = 8_000
MOST_PASSED: Final = 80_000
"""The longest ways, where all together would need more bends or pass more rows, run beside the picture."""

Links: TypeAlias = list[list[int]]
_Trunk: TypeAlias = tuple[str, bool]


@dataclass(slots=True)
class Mesh:
    """Nodes are numbers, the steps first. `ups` and `downs` link each with nodes of the rows above and below.

    `road_ups` and `road_downs` are the links that pull a node into line: the road, not what leaves it or cuts
    it short, and within a line of bends that line alone. `loose` is what stands beside the road. `trails`
    names the nodes that an edge passes, its source and target with them.
    """

    steps: tuple[str, ...]
    rows: list[list[int]] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    bends: set[int] = field(default_factory=set)
    loose: set[int] = field(default_factory=set)
    labels: dict[int, Edge] = field(default_factory=dict)
    label_rows: set[int] = field(default_factory=set)
    ups: Links = field(default_factory=list)
    downs: Links = field(default_factory=list)
    road_ups: Links = field(default_factory=list)
    road_downs: Links = field(default_factory=list)
    trails: list[tuple[Edge, tuple[int, ...]]] = field(default_factory=list)
    beside: list[Edge] = field(default_factory=list)


def mesh(found: Layers, box_width: float, label_widths: Mapping[Edge, float]) -> Mesh:
    """Build the rows; `label_widths` holds the edges that have a label."""
    steps = Mesh(found.order)
    rank, label_rank = _ranks(found, label_widths)
    steps.label_rows = set(label_rank.values())
    steps.rows = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    node = {name: _add(steps, rank[name], box_width) for name in found.order}
    first = {edge: label_rank[found.layer[edge.source]] for edge in found.down if edge in label_widths}
    within, steps.beside = _affordable(found.down, first, rank)
    steps.beside += found.back
    trunks: dict[_Trunk, dict[int, int]] = {}
    road, reached = _road(found)
    steps.loose = {node[name] for name in found.order if name not in reached}
    links: dict[tuple[int, int], bool] = {}
    for edge in within:
        trail = [node[edge.source]]
        here = rank[edge.source]
        if edge in first:
            here = first[edge]
            label = _add(steps, here, label_widths[edge])
            steps.labels[label] = edge
            trail.append(label)
        trunk = trunks.setdefault((edge.target, edge.label in ASIDE), {})
        for passed in range(here + 1, rank[edge.target]):
            if passed not in trunk:
                trunk[passed] = _add(steps, passed, 0.0)
                steps.bends.add(trunk[passed])
            trail.append(trunk[passed])
        trail.append(node[edge.target])
        steps.trails.append((edge, tuple(trail)))
        for pair in pairwise(trail):
            links[pair] = links.get(pair, False) or edge in road
    _link(steps, links)
    return steps


def _road(found: Layers) -> tuple[set[Edge], set[str]]:
    """Find the edges along which the picture is lined up, and the steps that they reach.

    Not those for errors, denials and timeouts, nor what leads back from behind them, nor a long way that its
    source has beside a short one.
    """
    reached = set(found.order[:1])
    short: set[str] = set()
    plain = [edge for edge in found.down if edge.label not in ASIDE]
    for edge in plain:
        if edge.source in reached:
            reached.add(edge.target)
        if _length(found, edge) == 1:
            short.add(edge.source)
    road = {
        edge
        for edge in plain
        if (edge.source in reached or edge.target not in reached)
        and (_length(found, edge) == 1 or edge.source not in short)
    }
    return road, reached


def _length(found: Layers, edge: Edge) -> int:
    return found.layer[edge.target] - found.layer[edge.source]


def _ranks(found: Layers, labelled: Mapping[Edge, float]) -> tuple[dict[str, int], dict[int, int]]:
    """Number the rows: those of the layers, and those of labels between them."""
    wanted = {found.layer[edge.source] for edge in found.down if edge in labelled}
    rows: dict[int, int] = {}
    label_rows: dict[int, int] = {}
    here = 0
    for layer in range(max(found.layer.values(), default=-1) + 1):
        rows[layer] = here
        here += 1
        if layer in wanted:
            label_rows[layer] = here
            here += 1
    return {name: rows[layer] for name, layer in found.layer.items()}, label_rows


def _affordable(
    edges: Sequence[Edge], first: Mapping[Edge, int], rank: Mapping[str, int]
) -> tuple[list[Edge], list[Edge]]:
    """Divide the edges into those whose bends fit and the rest; both in the order given."""

    def start(edge: Edge) -> int:
        return first.get(edge, rank[edge.source])

    by_length = sorted(edges, key=lambda edge: rank[edge.target] - start(edge))
    highest: dict[_Trunk, int] = {}
    bends = passed = 0
    too_long: set[Edge] = set()
    for edge in by_length:
        key = (edge.target, edge.label in ASIDE)
        more = max(0, highest.get(key, rank[edge.target]) - start(edge) - 1)
        rows = rank[edge.target] - start(edge)
        if bends + more > MOST_BENDS or passed + rows > MOST_PASSED:
            too_long.add(edge)
            continue
        bends += more
        passed += rows
        highest[key] = min(highest.get(key, rank[edge.target]), start(edge) + 1)
    return [edge for edge in edges if edge not in too_long], [edge for edge in edges if edge in too_long]


def _add(steps: Mesh, row: int, width: float) -> int:
    steps.widths.append(width)
    for links in (steps.ups, steps.downs, steps.road_ups, steps.road_downs):
        links.append([])
    steps.rows[row].append(len(steps.widths) - 1)
    return len(steps.widths) - 1


def _link(steps: Mesh, links: Mapping[tuple[int, int], bool]) -> None:
    """Link the nodes, the road first; where no road leads to a node, whatever does pulls it."""
    firm: Links = [[] for _ in steps.widths]
    for (upper, lower), is_road in sorted(links.items(), key=lambda link: not link[1]):
        steps.downs[upper].append(lower)
        steps.ups[lower].append(upper)
        if is_road:
            firm[upper].append(lower)
            firm[lower].append(upper)
    between = steps.bends | steps.labels.keys()
    steps.loose |= {node for node in between if not firm[node]}
    steps.loose |= {node for node, ups in enumerate(steps.ups) if ups and not set(ups) & set(firm[node])}
    for node, roads in enumerate(firm):
        line = set(roads)
        for others, mine in ((steps.ups, steps.road_ups), (steps.downs, steps.road_downs)):
            pulling = [other for other in others[node] if other in line] or others[node]
            if node in steps.bends:
                pulling = [other for other in pulling if other in steps.bends] or pulling
            mine[node] = pulling
