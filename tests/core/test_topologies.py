"""Twelve shapes of flows, each under random interleavings, with messages repeated and restarts between."""

from __future__ import annotations

from random import Random

import pytest

from tests.model.driver import CoreEngine, Seen
from tests.model.flows_strategy import compiled
from tests.model.player import Player, Topology
from tests.model.topologies import (
    BRANCHES,
    DEEP_CHAIN,
    DIAMOND_ANY,
    FAN_IN,
    N_OF_M,
    TOPOLOGIES,
    assert_ended_well,
)
from wfcelery.core.validate import validate


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
