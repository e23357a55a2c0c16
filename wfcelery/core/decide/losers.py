"""Which steps nobody needs any more once a join of any or n has fired."""

from __future__ import annotations

from wfcelery.core.flow import Flow


def losers(flow: Flow, fired: frozenset[str]) -> frozenset[str]:
    """Name the steps all of whose paths end in joins that have fired."""
    needed_ways = {name: len(step.edges) for name, step in flow.steps.items()}
    lost: set[str] = set()
    settled = list(fired)
    seen = set(fired)
    while settled:
        for edge in flow.ways_in[settled.pop()]:
            needed_ways[edge.source] -= 1
            if needed_ways[edge.source] == 0 and not flow.steps[edge.source].done:
                lost.add(edge.source)
                if edge.source not in seen:
                    seen.add(edge.source)
                    settled.append(edge.source)
    return frozenset(lost)
