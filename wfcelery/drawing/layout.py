"""Where everything stands: a box for each step, a route for each edge, a place for each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from wfcelery.core.flow import Edge, Flow
from wfcelery.drawing.crossings import untangle
from wfcelery.drawing.layers import Layers, layers
from wfcelery.drawing.mesh import Mesh, mesh
from wfcelery.drawing.placing import place

BOX_HEIGHT: Final = 56.0
LABEL_HEIGHT: Final = 20.0
MARGIN: Final = 16.0

_GAP: Final = 34.0
_LABEL_GAP: Final = 17.0
_MOST_GAP: Final = 110.0
_SLOPE: Final = 0.07  # the wider a line must swing, the higher the gap in which it does
_LANE: Final = 8.0
_LANES: Final = 12

Point: TypeAlias = tuple[float, float]


class Spot(NamedTuple):
    """Where a line passes a row."""

    x: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Box:
    """A step: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Give the x at which ways come in and go out."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Route:
    """An edge: points that are joined by straight lines downwards and by curves from one line to another.

    From the point with the number `shared` on, other ways to the same step may run on the same line. `beside`
    marks one that runs along the right side of the picture, with corners instead of curves.
    """

    edge: Edge
    points: tuple[Point, ...]
    shared: int = 0
    label: Point | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole picture."""

    width: float
    height: float
    boxes: Mapping[str, Box]
    routes: tuple[Route, ...]


def widest_layer(found: Layers) -> int:
    """Give the number of steps that stand beside one another, at most."""
    counts: dict[int, int] = {}
    for layer in found.layer.values():
        counts[layer] = counts.get(layer, 0) + 1
    return max(counts.values(), default=0)


def layout(flow: Flow, box_width: float, label_widths: Mapping[Edge, float]) -> Layout:
    """Lay a flow out; `label_widths` says how wide the label of each edge is that has one."""
    return arrange(layers(flow), box_width, label_widths)


def arrange(found: Layers, box_width: float, label_widths: Mapping[Edge, float]) -> Layout:
    """Lay out what stands on known layers."""
    net = mesh(found, box_width, label_widths)
    untangle(net)
    xs = place(net)
    left = min((x - width / 2 for x, width in zip(xs, net.widths, strict=True)), default=0.0)
    xs = [round(x - left + MARGIN, 1) for x in xs]
    right = max((x + width / 2 for x, width in zip(xs, net.widths, strict=True)), default=MARGIN)
    tops, heights = _heights(net, xs)
    spots = [Spot(0.0, 0.0, 0.0)] * len(xs)
    for row, top, height in zip(net.rows, tops, heights, strict=True):
        for node in row:
            spots[node] = Spot(xs[node], top, top + height)
    boxes = {
        name: Box(round(xs[node] - box_width / 2, 1), spots[node].top, box_width, BOX_HEIGHT)
        for node, name in enumerate(net.steps)
    }
    routes = [_route(net, edge, trail, spots) for edge, trail in net.trails]
    lanes = min(_LANES, len(net.beside))
    routes += [
        _lane(edge, boxes, right + _LANE * (2 + index % _LANES), labelled=edge in label_widths)
        for index, edge in enumerate(net.beside)
    ]
    if lanes:
        right += _LANE * (1 + lanes) + _LANE
    height = tops[-1] + heights[-1] + MARGIN if tops else 2 * MARGIN
    return Layout(round(right + MARGIN, 1), height, boxes, tuple(routes))


def _heights(net: Mesh, xs: Sequence[float]) -> tuple[list[float], list[float]]:
    """Stack the rows; where a line swings far, the gap is higher."""
    heights = [LABEL_HEIGHT if number in net.label_rows else BOX_HEIGHT for number in range(len(net.rows))]
    tops: list[float] = []
    here = MARGIN
    for number, row in enumerate(net.rows):
        tops.append(here)
        swing = max((abs(xs[node] - xs[other]) for node in row for other in net.downs[node]), default=0.0)
        least = _LABEL_GAP if {number, number + 1} & net.label_rows else _GAP
        here += heights[number] + round(min(_MOST_GAP, max(least, swing * _SLOPE + least / 2)))
    return tops, heights


def _route(net: Mesh, edge: Edge, trail: Sequence[int], spots: Sequence[Spot]) -> Route:
    """Follow the trail: straight down past each row, and on; points on a straight line are left out."""
    own: list[Point] = []
    label: Point | None = None
    points = own
    shared: list[Point] = []
    for index, node in enumerate(trail):
        spot = spots[node]
        if node in net.labels:
            label = (spot.x, (spot.top + spot.bottom) / 2)
        if index:
            points.append((spot.x, spot.top))
            if points is own and node not in net.labels:
                points = shared
                points.append((spot.x, spot.top))
        if index + 1 < len(trail):
            points.append((spot.x, spot.bottom))
    alone = _straight(own)
    return Route(edge, alone + _straight(shared)[1:], len(alone) - 1, label)


def _straight(points: Sequence[Point]) -> tuple[Point, ...]:
    kept: list[Point] = []
    for point in points:
        if len(kept) > 1 and kept[-1][0] == kept[-2][0] == point[0]:
            kept.pop()
        kept.append(point)
    return tuple(kept)


def _lane(edge: Edge, boxes: Mapping[str, Box], lane: float, *, labelled: bool) -> Route:
    source, target = boxes[edge.source], boxes[edge.target]
    start = (source.x + source.width, source.y + source.height * 2 / 3)
    end = (target.x + target.width, target.y + target.height / 3)
    label = (lane, (start[1] + end[1]) / 2) if labelled else None
    return Route(edge, (start, (lane, start[1]), (lane, end[1]), end), label=label, beside=True)
