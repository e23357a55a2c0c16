"""Twelve shapes of flows, and how each must end."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tests.model.driver import Seen
from tests.model.flows_strategy import Document
from tests.model.player import Player, Topology
from wfcelery.core.state import OPEN, RunStatus

TOOL: Document = {"tool": "echo"}
BRANCHES = [f"b{number}" for number in range(12)]

LINEAR = Topology(
    "linear",
    {"a": {**TOOL, "next": "b"}, "b": {**TOOL, "next": "c"}, "c": {**TOOL, "done": True}},
    output=("c",),
    once=("a", "b", "c"),
)
FAN_OUT = Topology(
    "fan-out",
    {
        "a": {**TOOL, "parallel": BRANCHES, "join": "all"},
        **dict.fromkeys(BRANCHES, TOOL),
        "all": {"done": True},
    },
    output=({name: name for name in BRANCHES},),
    once=("a", *BRANCHES),
)
FAN_IN = Topology(
    "fan-in",
    {
        "a": {"parallel": BRANCHES},
        **{name: {**TOOL, "join": "in"} for name in BRANCHES},
        "in": {"tool": "echo", "args": {"got": "{{result}}"}, "done": True},
    },
    output=("in",),
    once=("in",),
)
DIAMOND: dict[str, Document] = {
    "a": {**TOOL, "parallel": ["b", "c"]},
    "b": {**TOOL, "join": "d"},
    "c": {**TOOL, "join": "d"},
    "d": {**TOOL, "next": "e"},
    "e": {"done": True},
}
DIAMOND_ALL = Topology("diamond all", DIAMOND, output=("d",), once=("a", "b", "c", "d"))
DIAMOND_ANY = Topology(
    "diamond any",
    {
        **DIAMOND,
        "d": {"tool": "echo", "join_mode": "any", "args": {"got": "{{result}}"}, "next": "e"},
    },
    output=("d",),
    once=("d",),
)
N_OF_M = Topology(
    "n of m",
    {
        "a": {"parallel": ["b", "c", "d", "e"]},
        **{name: {**TOOL, "join": "f", "retry": {"max_attempts": 1}, "optional": True} for name in "bcde"},
        "f": {"tool": "echo", "join_mode": 2, "args": {"got": "{{result}}"}, "done": True},
    },
    output=("f",),
    once=("f",),
    failing=frozenset({"b", "e"}),
)
DEEP = [f"s{number}" for number in range(1_000)]
DEEP_CHAIN = Topology(
    "deep chain",
    {
        **{name: {**TOOL, "next": following} for name, following in pairwise(DEEP)},
        DEEP[-1]: {**TOOL, "done": True},
    },
    output=(DEEP[-1],),
    once=tuple(DEEP),
)
ERROR_PATH = Topology(
    "error path",
    {
        "a": {**TOOL, "retry": {"max_attempts": 3, "backoff": [10, 60]}, "next": "b", "on_error": "c"},
        "b": {**TOOL, "next": "d"},
        "c": {"tool": "echo", "args": {"why": "{{result.error.message}}"}, "next": "d"},
        "d": {"done": True},
    },
    output=({"c": "c"},),
    once=("c",),
    failing=frozenset({"a"}),
    waits_s=70,
)
CONDITIONAL = Topology(
    "conditional with merge",
    {
        "a": {
            **TOOL,
            "branch": [
                {"if": "result == 'x'", "then": "b"},
                {"if": "input.n > 2", "then": "c"},
                {"else": "m"},
            ],
        },
        "b": {**TOOL, "next": "m"},
        "c": {**TOOL, "next": "m"},
        "m": {**TOOL, "args": {"got": "{{result}}"}, "done": True},
    },
    output=("m",),
    once=("a", "c", "m"),
)
DELAY = Topology(
    "delay",
    {"a": {**TOOL, "next": "b"}, "b": {"delay": 86_400, "next": "c"}, "c": {**TOOL, "done": True}},
    output=("c",),
    once=("a", "c"),
    waits_s=86_400,
)
MULTI_LEVEL = Topology(
    "multi-level join",
    {
        "a": {"parallel": ["b", "c", "d", "e"]},
        **{name: {**TOOL, "join": "left"} for name in "bc"},
        **{name: {**TOOL, "join": "right"} for name in "de"},
        "left": {**TOOL, "join": "top"},
        "right": {**TOOL, "join": "top"},
        "top": {**TOOL, "args": {"got": "{{result}}"}, "done": True},
    },
    output=("top",),
    once=("left", "right", "top"),
)
NESTED = Topology(
    "parallel nested inside a branch",
    {
        "a": {**TOOL, "branch": [{"if": "result == 'go'", "then": "p"}, {"else": "q"}]},
        "p": {"parallel": ["x", "y"]},
        "x": {**TOOL, "parallel": ["x1", "x2"]},
        "x1": {**TOOL, "join": "j"},
        "x2": {**TOOL, "join": "j"},
        "j": {**TOOL, "join": "k"},
        "y": {**TOOL, "join": "k"},
        "k": {**TOOL, "next": "m"},
        "q": {**TOOL, "next": "m"},
        "m": {**TOOL, "args": {"got": "{{result}}"}, "done": True},
    },
    output=("m",),
    once=("j", "k", "m"),
    results={"a": "go"},
)
TOPOLOGIES = (
    LINEAR,
    FAN_OUT,
    FAN_IN,
    DIAMOND_ALL,
    DIAMOND_ANY,
    N_OF_M,
    ERROR_PATH,
    CONDITIONAL,
    DELAY,
    MULTI_LEVEL,
    NESTED,
)


def assert_ended_well(topology: Topology, player: Player, seen: Seen) -> None:
    assert seen.status is RunStatus.COMPLETED
    assert seen.output in topology.output
    assert not [key for key, step in seen.steps.items() if step.status in OPEN]
    handed = Counter(work.ref.step for work in seen.work)
    assert {name: handed[name] for name in topology.once} == dict.fromkeys(topology.once, 1)
    assert player.now - player.began == topology.waits_s
