"""A flow as a tree of lines: what follows stands below, ways apart are indented, where they meet they end.

○ check  echo
├─ if result > 100 → ○ review  approval
│  └─ on deny → ○ refuse  echo  (done)
└─ else → pay
○ pay  echo  (done)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wfcelery.cli.graph_words import notes, way, what
from wfcelery.cli.symbols import Signs
from wfcelery.core import graph
from wfcelery.core.flow import Edge, Flow, Label, Step

_ASIDE: Final = frozenset({Label.ERROR, Label.DENY, Label.TIMEOUT})


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to draw: the step, where to stop, what stands left of it, and before it on its line."""

    name: str
    stop: str | None
    prefix: str
    lead: str


def tree(flow: Flow, signs: Signs, mark: Callable[[str], str] | None = None) -> list[str]:
    """Draw the flow; `mark` gives the sign of each step, with what is to be said of it."""
    meets = _meeting_points(flow)
    lines: list[str] = []
    drawn: set[str] = set()
    todo = [_Place(flow.start, None, "", "")]
    while todo:
        place = todo.pop()
        if place.name == place.stop or place.name in drawn:
            seen = " (above)" if place.name in drawn else ""
            if place.lead or seen:
                lines.append(f"{place.lead or f'{place.prefix}{signs.arrow} '}{place.name}{seen}")
            continue
        drawn.add(place.name)
        step = flow.steps[place.name]
        lines.append(
            (place.lead or place.prefix) + _line(flow, step, mark(step.name) if mark else signs.step)
        )
        todo += reversed(_following(step, place, meets, signs))
    return lines


def _following(step: Step, place: _Place, meets: Mapping[str, str | None], signs: Signs) -> list[_Place]:
    """Give the ways apart, then the step where they meet again."""
    meet = meets[step.name]
    ways = list(step.edges)
    if len([edge for edge in ways if edge.label not in _ASIDE]) == 1:
        ways = [edge for edge in ways if edge.label in _ASIDE]
    found = []
    for index, edge in enumerate(ways):
        is_last = index == len(ways) - 1
        lead = f"{place.prefix}{signs.last if is_last else signs.fork}{way(step, edge)} {signs.arrow} "
        prefix = place.prefix + (" " * len(signs.bar) if is_last else signs.bar)
        found.append(_Place(edge.target, meet if meet is not None else place.stop, prefix, lead))
    if meet is not None and meet != place.stop:
        found.append(_Place(meet, place.stop, place.prefix, ""))
    return found


def _line(flow: Flow, step: Step, sign: str) -> str:
    said = notes(flow, step)
    return "  ".join(
        part for part in (f"{sign} {step.name}", what(step), f"({said})" if said else "") if part
    )


def _meeting_points(flow: Flow) -> dict[str, str | None]:
    """Give for each step the first one that all ways on from it lead through; None if they end apart.

    Ways for errors, denials and timeouts do not count: they leave the road, the road goes on without them.
    """
    ordered = graph.order(flow.steps)
    depth: dict[str, int] = {}
    meets: dict[str, str | None] = {}
    for name in reversed(ordered):
        targets = [edge.target for edge in _road(flow.steps[name])]
        meets[name] = _common(targets, meets, depth)
        meet = meets[name]
        depth[name] = 1 + (depth[meet] if meet is not None else 0)
    return meets


def _road(step: Step) -> list[Edge]:
    return [edge for edge in step.edges if edge.label not in _ASIDE]


def _common(targets: list[str], meets: Mapping[str, str | None], depth: Mapping[str, int]) -> str | None:
    if not targets:
        return None
    common: str | None = targets[0]
    for other in targets[1:]:
        here: str | None = other
        while common != here:
            if common is None or here is None:
                return None
            if depth[common] >= depth[here]:
                common = meets[common]
            else:
                here = meets[here]
    return common
