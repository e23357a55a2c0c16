"""Twelve shapes of flows, each under random interleavings, with messages repeated and restarts between."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from tests.model.driver import CoreEngine, Seen
from tests.model.flows_strategy import Document, compiled
from tests.model.player import Player, Topology
from wfcelery.core.state import OPEN, RunStatus
from wfcelery.core.validate import validate

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


@pytest.mark.parametrize("topology", [*TOPOLOGIES, DEEP_CHAIN], ids=lambda topology: topology.name)
def test_the_flow_is_valid(topology: Topology) -> None:
    document = {"name": "t", "start": next(iter(topology.steps)), "steps": topology.steps}
    assert validate(compiled(document)) == []


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.name)
def test_in_any_order_every_join_runs_once_and_the_run_ends_with_its_output(topology: Topology) -> None:
    for seed in range(25):
        player = Player(topology, CoreEngine(), Random(seed))  # noqa: S311 - a seed gives the same run again
        assert_ended_well(topology, player, player.play())


def test_a_chain_of_a_thousand_steps_ends() -> None:
    player = Player(DEEP_CHAIN, CoreEngine(), Random(1))  # noqa: S311 - a seed gives the same run again
    assert_ended_well(DEEP_CHAIN, player, player.play())


def test_of_two_in_a_diamond_any_takes_the_first_and_n_takes_the_first_n() -> None:
    seen = {
        topology.name: {
            tuple(sorted(work.args["got"]))
            for seed in range(25)
            for work in played(topology, seed).work
            if isinstance(work.args, dict) and "got" in work.args
        }
        for topology in (DIAMOND_ANY, N_OF_M, FAN_IN)
    }
    assert seen == {
        "diamond any": {("b",), ("c",)},
        "n of m": {("c", "d")},
        "fan-in": {tuple(sorted(BRANCHES))},
    }


def played(topology: Topology, seed: int) -> Seen:
    return Player(topology, CoreEngine(), Random(seed)).play()  # noqa: S311 - a seed gives the same run again


def assert_ended_well(topology: Topology, player: Player, seen: Seen) -> None:
    assert seen.status is RunStatus.COMPLETED
    assert seen.output in topology.output
    assert not [key for key, step in seen.steps.items() if step.status in OPEN]
    handed = Counter(work.ref.step for work in seen.work)
    assert {name: handed[name] for name in topology.once} == dict.fromkeys(topology.once, 1)
    assert player.now - player.began == topology.waits_s
