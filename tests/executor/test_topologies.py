"""The twelve topologies through the executor, on both databases, with repeats and restarts."""

from __future__ import annotations

from random import Random

import pytest

from tests.executor.desk import Desk
from tests.model.over_executor import ExecutorEngine
from tests.model.player import Player, Topology
from tests.model.topologies import DEEP_CHAIN, TOPOLOGIES, assert_ended_well
from wfcelery import Registry
from wfcelery.core.state import RunStatus
from wfcelery.core.values import Json
from wfcelery.embedded import Engine

SEEDS = 6


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.name)
def test_in_any_order_every_join_runs_once_and_the_run_ends_with_its_output(
    desk: Desk, topology: Topology
) -> None:
    for seed in range(SEEDS):
        player = Player(topology, ExecutorEngine(desk, seed), Random(seed))  # noqa: S311 - repeatable
        assert_ended_well(topology, player, player.play())


def run(database_url: str, flow: Json, given: Json) -> tuple[RunStatus, Json, int]:
    with Engine(database_url, Registry.with_builtins()) as engine:
        run_id = engine.start(flow, given, by="ann")
        while not engine.standing(run_id).ended:
            engine.turn()
        seen = engine.run_json(run_id)
        steps = seen["steps"]
        assert isinstance(steps, list)
        return engine.standing(run_id).status, seen["output"], len(steps)


def test_a_chain_of_a_thousand_steps_ends(database_url: str) -> None:
    steps = {name: {**step, "args": {"value": name}} for name, step in DEEP_CHAIN.steps.items()}
    flow: Json = {"name": "deep", "start": "s0", "steps": steps}
    assert run(database_url, flow, {}) == (RunStatus.COMPLETED, "s999", 1_000)


def test_a_foreach_of_ten_thousand_items_into_one_join_ends(database_url: str) -> None:
    flow: Json = {
        "name": "wide",
        "start": "each",
        "steps": {
            "each": {
                "foreach": {"items": "{{input.items}}", "tool": "echo", "args": {"value": "{{item * 2}}"}},
                "next": "all",
            },
            "all": {"tool": "echo", "args": {"value": "{{size(result)}}"}, "done": True},
        },
    }
    given: Json = {"items": list(range(10_000))}
    assert run(database_url, flow, given) == (RunStatus.COMPLETED, 10_000, 10_002)
