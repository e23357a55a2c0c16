"""The picture of a flow as SVG. No style attributes, no scripts, no ids, nothing from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final, TypeAlias

from wfcelery.core.flow import Edge, Flow, Step
from wfcelery.drawing import lettering, words
from wfcelery.drawing.layers import layers
from wfcelery.drawing.layout import LABEL_HEIGHT, Layout, Route, arrange, widest_layer
from wfcelery.drawing.markup import element, number, text
from wfcelery.drawing.step_box import WHAT_SIZE, natural_width, step_box
from wfcelery.drawing.style import CSS
from wfcelery.errors import InvalidInput

STATUSES: Final = (
    "none",
    "pending",
    "ready",
    "running",
    "waiting",
    "done",
    "failed",
    "skipped",
    "cancelled",
)
"""How a step may stand. None: not begun; waiting: for a person or a signal."""

_Attributes: TypeAlias = dict[str, str | float | None]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_LABEL_ROOM: Final = 150.0
_LABEL_PAD: Final = 6.0
_HEAD: Final = 7.0
_DASH: Final = 9.0
_CORNER: Final = 8.0
_FITS: Final = 480.0
"""Up to this width a picture may be shrunk to the page; a wider one is scrolled, or nobody could read it."""


def svg(
    flow: Flow,
    statuses: Mapping[str, str] = _NOTHING,
    *,
    tallies: Mapping[str, str] = _NOTHING,
    href: Callable[[str], str] | None = None,
    taken: Collection[tuple[str, str]] = (),
    standalone: bool = False,
) -> str:
    """Draw the flow; `statuses` (of `STATUSES`) colour the steps of a run, `tallies` count a foreach's items.

    `href` gives the address that a step links to. `taken` are the edges that a run went: (step, edge id).
    `standalone` makes a file of its own, with its colours in it; else the page brings `graph.css`.
    """
    for name, status in statuses.items():
        if status not in STATUSES:
            raise InvalidInput(f"statuses.{name}", f"must be one of {', '.join(STATUSES)}")
    found = layers(flow)
    labels = {
        edge: label
        for step in flow.steps.values()
        for edge in step.edges
        if (label := _label(step, edge)) and edge.target in flow.steps
    }
    width = natural_width(flow, widest_layer(found), with_signs=bool(statuses))
    widths = {edge: lettering.width(label, WHAT_SIZE) + 2 * _LABEL_PAD for edge, label in labels.items()}
    drawn = arrange(found, width, widths)
    went = frozenset(taken)
    # What was taken is drawn last: where ways share a line, it lies on top.
    routes = sorted(drawn.routes, key=lambda route: (route.edge.source, route.edge.id) in went)
    edges = [
        _edge(route, labels.get(route.edge, ""), is_taken=(route.edge.source, route.edge.id) in went)
        for route in routes
    ]
    steps = [
        step_box(
            flow,
            flow.steps[name],
            drawn.boxes[name],
            status=statuses.get(name, "none"),
            tally=tallies.get(name, ""),
            href=href(name) if href else None,
        )
        for name in found.order
    ]
    return _document(flow, drawn, edges, steps, statuses, linked=href is not None, standalone=standalone)


def _document(
    flow: Flow,
    drawn: Layout,
    edges: list[str],
    steps: list[str],
    statuses: Mapping[str, str],
    *,
    linked: bool,
    standalone: bool,
) -> str:
    width, height = number(drawn.width), number(drawn.height)
    title = lettering.visible(flow.name) or "flow"
    parts = [element("title", None, text(title)), element("desc", None, text(_described(flow, statuses)))]
    if standalone:
        parts.append(element("style", None, CSS))
        parts.append(element("rect", {"class": "canvas", "width": width, "height": height, "fill": "#fff"}))
    parts.append(element("g", {"class": "edges", "fill": "none", "stroke": "currentColor"}, "\n", *edges))
    parts.append(element("g", {"class": "steps", "fill": "none", "stroke": "currentColor"}, "\n", *steps))
    root: _Attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "wf-graph fits" if drawn.width <= _FITS else "wf-graph",
        # The inside of an image is hidden from a screen reader, and links must not be.
        "role": "group" if linked else "img",
        "aria-label": title,
        "viewBox": f"0 0 {width} {height}",
        "width": width,
        "height": height,
        "font-family": "system-ui, sans-serif",
    }
    return element("svg", root, "\n", "\n".join(parts), "\n") + "\n"


def _described(flow: Flow, statuses: Mapping[str, str]) -> str:
    count = len(flow.steps)
    said = [f"{count} step" if count == 1 else f"{count} steps"]
    counted = Counter(statuses[name] for name in flow.steps if name in statuses)
    said += [f"{counted[status]} {status}" for status in STATUSES if counted[status] and status != "none"]
    about = lettering.visible(flow.description)
    return ", ".join(said) + (f". {about}" if about else "")


def _label(step: Step, edge: Edge) -> str:
    return lettering.shortened(lettering.visible(words.way(step, edge)), _LABEL_ROOM, WHAT_SIZE)


def _edge(route: Route, label: str, *, is_taken: bool) -> str:
    edge = route.edge
    classes = ["edge", f"way-{edge.label.value}"]
    if edge.label in words.ASIDE:
        classes.append("aside")
    if is_taken:
        classes.append("taken")
    attributes: _Attributes = {
        "class": " ".join(classes),
        "data-source": edge.source,
        "data-edge": edge.id,
        "data-target": edge.target,
    }
    parts = _dashed(route) if edge.label in words.ASIDE else [element("path", _stroke(_line(route)))]
    parts.append(element("path", {"class": "head", "d": _arrow(route), "fill": "currentColor"}))
    if route.label is not None:
        parts.append(_plate(label, *route.label))
    return element("g", attributes, *parts) + "\n"


def _plate(label: str, x: float, y: float) -> str:
    """Write a label on a piece of the ground, so that its line does not run through it."""
    width = lettering.width(label, WHAT_SIZE) + 2 * _LABEL_PAD
    plate: _Attributes = {
        "class": "plate",
        "x": x - width / 2,
        "y": y - LABEL_HEIGHT / 2,
        "width": width,
        "height": LABEL_HEIGHT,
        "rx": 6,
    }
    said: _Attributes = {
        "class": "label",
        "x": x,
        "y": y + 4,
        "text-anchor": "middle",
        "font-size": WHAT_SIZE,
        "fill": "currentColor",
        "stroke": "none",
    }
    return element("rect", plate) + element("text", said, text(label))


def _dashed(route: Route) -> list[str]:
    """Draw a dashed line, in two parts where others join it: on a shared line, dash must lie on dash."""
    dashes: _Attributes = {"stroke-dasharray": "5 4"}
    if route.beside or route.shared == len(route.points) - 1:
        return [element("path", _stroke(_line(route)) | dashes)]
    own = replace(route, points=route.points[: route.shared + 1])
    rest = replace(route, points=route.points[route.shared :])
    offset = rest.points[0][1] % _DASH
    return [
        element("path", _stroke(_line(own, is_end=False)) | dashes),
        element("path", _stroke(_line(rest)) | dashes | {"stroke-dashoffset": offset}),
    ]


def _stroke(path: str) -> _Attributes:
    return {"class": "line", "d": path}


def _line(route: Route, *, is_end: bool = True) -> str:
    """Write the path: straight down, and in curves from column to column; it ends under the arrow's head."""
    points = list(route.points)
    if route.beside:
        return _cornered(points)
    if is_end:
        x, y = points[-1]
        points[-1] = (x, y - _HEAD + 1)
    said = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 == x1:
            said.append(f"V{number(y1)}")
        else:
            half = number((y0 + y1) / 2)
            said.append(f"C{number(x0)} {half} {number(x1)} {half} {number(x1)} {number(y1)}")
    return "".join(said)


def _cornered(points: list[tuple[float, float]]) -> str:
    (x0, y0), (lane, _), _, (x1, y1) = points
    turn = _CORNER if y1 > y0 else -_CORNER
    return (
        f"M{number(x0)} {number(y0)}H{number(lane - _CORNER)}q{_CORNER:g} 0 {_CORNER:g} {turn:g}"
        f"V{number(y1 - turn)}q0 {turn:g} {-_CORNER:g} {turn:g}H{number(x1 + _HEAD - 1)}"
    )


def _arrow(route: Route) -> str:
    x, y = route.points[-1]
    if route.beside:
        return f"M{number(x)} {number(y)}l{_HEAD:g} -4v8Z"
    return f"M{number(x)} {number(y)}l-4 {-_HEAD:g}h8Z"
