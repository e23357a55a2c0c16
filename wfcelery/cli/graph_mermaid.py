"""A flow as a Mermaid flowchart, for READMEs and wikis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wfcelery.cli.graph_words import notes, way, what
from wfcelery.core import graph
from wfcelery.core.flow import Delay, Flow, Foreach, Gate, Label, Step, SubFlow, Until, Wait

_SILENT: Final = frozenset({Label.NEXT, Label.JOIN, Label.PARALLEL})
_CODES: Final = {ord(character): f"#{ord(character)};" for character in '#"<>|`&'}
_STYLES: Final = {
    "pending": "stroke-dasharray: 4 4",
    "ready": "stroke:#1a73e8,stroke-width:3px",
    "running": "stroke:#1a73e8,stroke-width:3px",
    "done": "fill:#d7f0dd,stroke:#1e7e34",
    "failed": "fill:#f8d7da,stroke:#b02a37",
    "skipped": "fill:#eeeeee,stroke:#999999,color:#777777",
    "cancelled": "fill:#eeeeee,stroke:#b02a37,color:#777777",
}


def mermaid(
    flow: Flow, statuses: Mapping[str, str] | None = None, marks: Mapping[str, str] | None = None
) -> str:
    """Draw the flow; `statuses` of a run colour its steps, `marks` stand before their names."""
    steps = [flow.steps[name] for name in graph.order(flow.steps)]
    ids = {step.name: f"s{index}" for index, step in enumerate(steps)}
    lines = ["flowchart TD"]
    for step in steps:
        mark = (marks or {}).get(step.name, "")
        lines.append(f"  {ids[step.name]}{_box(flow, step, mark)}")
    for step in steps:
        for edge in step.edges:
            said = "" if edge.label in _SILENT else f'|"{_escaped(way(step, edge))}"|'
            arrow = "-.->" if edge.label in (Label.ERROR, Label.DENY, Label.TIMEOUT) else "-->"
            lines.append(f"  {ids[step.name]} {arrow}{said} {ids[edge.target]}")
    used = sorted(set((statuses or {}).values()))
    lines += [f"  classDef {status} {_STYLES[status]}" for status in used]
    lines += [f"  class {ids[name]} {status}" for name, status in (statuses or {}).items() if name in ids]
    return "\n".join(lines)


def _box(flow: Flow, step: Step, mark: str) -> str:
    said = [f"{mark} {step.name}".strip(), what(step), notes(flow, step)]
    label = "<br/>".join(_escaped(part) for part in said if part)
    match step.action:
        case Gate() | Wait():
            return f'{{{{"{label}"}}}}'
        case Delay() | Until():
            return f'(["{label}"])'
        case SubFlow() | Foreach():
            return f'[["{label}"]]'
        case _:
            return f'["{label}"]'


def _escaped(text: str) -> str:
    """Write what Mermaid would read as syntax by its character codes."""
    return " ".join(text.split()).translate(_CODES)
