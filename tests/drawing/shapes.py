"""Flows to be drawn, made from pairs of numbers or read from YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from hypothesis import strategies as st

from wfcelery.core import graph
from wfcelery.core.document import compile_flow
from wfcelery.core.expressions import parse_template
from wfcelery.core.flow import Call, Edge, Flow, Label, Step
from wfcelery.core.reading import read

ORDER = """
name: order
start: check
steps:
  check:
    tool: shop.check
    branch: [{if: "result.total > 100", then: review}, {else: split}]
    on_error: sorry
  review:
    approval: {approvers: [ann, "group:finance"], on_deny: refuse}
    next: split
  refuse: {tool: mail.send, done: true}
  sorry: {tool: mail.send, next: arrive}
  split: {parallel: [pack, bill], join: ship}
  pack: {foreach: {items: "{{input.items}}", tool: pick}}
  bill: {delay: 5}
  ship: {flow: {name: shipping, version: 2}, next: arrive}
  arrive: {wait: {signal: arrived, timeout_s: 60, on_timeout: sorrier}, done: true}
  sorrier: {tool: mail.send, done: true}
"""


def flow_of(text: str) -> Flow:
    return compile_flow(read(text).data, name="f")


def graph_of(count: int, pairs: Iterable[tuple[int, int]], labels: Mapping[int, Label] | None = None) -> Flow:
    """Give a flow of `count` steps; the edges have the label that `labels` has for their place."""
    ways: dict[int, list[Edge]] = {number: [] for number in range(count)}
    for place, (source, target) in enumerate(pairs):
        label = (labels or {}).get(place, Label.PARALLEL)
        ways[source].append(Edge(f"s{source}", label, f"s{target}", len(ways[source]), f"e{place}"))
    call = Call("echo", parse_template({}))
    steps = {f"s{number}": Step(f"s{number}", call, tuple(edges)) for number, edges in ways.items()}
    return Flow("f", "s0", steps, graph.ways_in(steps), frozenset())


def chain(count: int) -> Flow:
    return graph_of(count, [(number, number + 1) for number in range(count - 1)])


def fan(count: int) -> Flow:
    outs = [(0, number) for number in range(1, count + 1)]
    return graph_of(count + 2, outs + [(number, count + 1) for _, number in outs])


def complete(count: int) -> Flow:
    return graph_of(count, [(one, other) for one in range(count) for other in range(one + 1, count)])


def tangle(count: int, edges: int) -> Flow:
    random = Random(4)  # noqa: S311 - the same tangle each time
    pairs = [(number, number + 1) for number in range(count - 1)]
    while len(pairs) < edges:
        first, second = sorted(random.sample(range(count), 2))
        pairs.append((first, second))
    return graph_of(count, pairs)


@st.composite
def graphs(draw: st.DrawFn) -> Flow:
    """Draw graphs without cycles, with labels of every kind."""
    count = draw(st.integers(1, 14))
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
        lambda pair: pair[0] < pair[1]
    )
    pairs = draw(st.lists(pair, max_size=30)) if count > 1 else []
    kinds = [Label.PARALLEL, Label.ON, Label.ERROR, Label.DENY, Label.NEXT]
    return graph_of(count, pairs, {place: draw(st.sampled_from(kinds)) for place in range(len(pairs))})
