"""What is known of other steps when a step runs: which have come before it, and which surely have a result.

Sets of steps are bits of whole numbers, so that a thousand steps cost a thousand operations. The answers are
on the safe side: a step that is said to be done is done in every run; one that is not may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfcelery.core import graph
from wfcelery.core.flow import Flow, JoinMode, Label, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN: Final = frozenset({Label.NEXT, Label.JOIN, Label.PARALLEL})
_OTHERWISE: Final = frozenset({Label.DENY, Label.TIMEOUT})


@dataclass(slots=True)
class Before:
    """For each step of an acyclic flow, as bits: `ancestors`, and those that are `done` whenever it runs."""

    bits: dict[str, int]
    ancestors: dict[str, int]
    done: dict[str, int]
    at_the_end: int

    def can_precede(self, name: str, other: str) -> bool:
        """Tell whether some path leads from `other` to `name`."""
        return bool(self.ancestors[name] & self.bits[other])

    def is_done(self, name: str, other: str) -> bool:
        """Tell whether `other` has a result whenever `name` runs."""
        return bool(self.done[name] & self.bits[other])


def before(flow: Flow) -> Before:
    """Work out, in one pass along the order of the steps, what is known before each."""
    ordered = graph.order(flow.steps)
    bits = {name: 1 << index for index, name in enumerate(ordered)}
    ancestors: dict[str, int] = {}
    settled: dict[str, int] = {}
    done: dict[str, int] = {}
    follows, ends_done = _follows(flow, bits), _mask(bits, map(_ends_done, map(flow.steps.get, ordered)))
    for name in ordered:
        edges = flow.ways_in[name]
        ancestors[name] = _any_of(ancestors[edge.source] | bits[edge.source] for edge in edges)
        arrived = [settled[edge.source] | bits[edge.source] for edge in edges]
        results = [
            done[edge.source] | (0 if edge.label is Label.ERROR else bits[edge.source]) for edge in edges
        ]
        done[name] = _all_of(results)
        if flow.steps[name].join_mode is JoinMode.ALL:
            settled[name] = _any_of(arrived)
            if len(edges) > 1:
                done[name] = _closed(done[name], settled[name] & ends_done, ordered, bits, follows)
        else:
            settled[name] = _all_of(arrived)
    ends = _all_of(done[name] | bits[name] for name in ordered if flow.steps[name].done)
    # Whatever leads to a join that need not wait for it may be called off when that join fires.
    called_off = _any_of(
        ancestors[name] for name in ordered if flow.steps[name].join_mode is not JoinMode.ALL
    )
    everything = (1 << len(ordered)) - 1
    at_the_end = _closed(ends, everything & ends_done & ~called_off, ordered, bits, follows)
    return Before(bits, ancestors, done, at_the_end)


def _closed(
    done: int, candidates: int, ordered: tuple[str, ...], bits: dict[str, int], follows: dict[str, int]
) -> int:
    """Add the steps that a done step always leads to, of those that must have ended and can only end well."""
    left = candidates & ~done
    while left:
        bit = left & -left
        name = ordered[bit.bit_length() - 1]
        if follows[name] & done:
            done |= bits[name]
        left ^= bit
    return done


def _follows(flow: Flow, bits: dict[str, int]) -> dict[str, int]:
    """Give for each step those that always lead to it when they are done, where one is enough to begin it."""
    found = {}
    for name in bits:
        if flow.steps[name].join_mode is not JoinMode.ALL:
            found[name] = 0
            continue
        sources = [edge.source for edge in flow.ways_in[name] if edge.label in _PLAIN]
        found[name] = _any_of(bits[source] for source in sources if not _may_turn(flow.steps[source]))
    return found


def _may_turn(step: Step) -> bool:
    return any(edge.label in _OTHERWISE for edge in step.edges)


def _ends_done(step: Step | None) -> bool:
    return step is not None and not step.optional and step.edge(Label.ERROR) is None


def _mask(bits: dict[str, int], flags: Iterable[bool]) -> int:
    return sum(bit for bit, flag in zip(bits.values(), flags, strict=True) if flag)


def _any_of(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def _all_of(sets: Iterable[int]) -> int:
    found = -1
    for each in sets:
        found &= each
    return max(found, 0)
