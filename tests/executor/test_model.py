"""The executor on both databases against the reference interpreter: restarts, repeats, late reports."""

from __future__ import annotations

import os
from itertools import count
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.executor.desk import Desk
from tests.model.flows_strategy import random_flow
from tests.model.game import LATER, Game, drain, move
from tests.model.over_executor import ExecutorEngine
from tests.model.test_stateful import AnyFlowInAnyOrder

LONG = os.environ.get("WFCELERY_TEST_LONG") == "1"
MESSAGES = int(os.environ.get("WFCELERY_MODEL_MESSAGES_EXECUTOR", "2500" if LONG else "1250"))
"""For each shard on each database: 10,000 in all, and 20,000 if there is time (the bare core has 22,000)."""
EXAMPLES = int(os.environ.get("WFCELERY_MODEL_EXAMPLES_EXECUTOR", "20"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shard", range(4))
def test_the_executor_and_the_reference_never_differ(desk: Desk, shard: int) -> None:
    sent, seed = 0, shard * 1_000_000
    while sent < MESSAGES:
        seed += 1
        random = Random(seed)  # noqa: S311 - a seed must give the same run again
        document = random_flow(random)
        try:
            game = Game(document, ExecutorEngine(desk, seed), later_s=random.choice(LATER))
            for _ in range(40):
                move(game, random)
            drain(game)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        sent += len(game.sent)


def test_hypothesis_finds_no_difference_either(desk: Desk) -> None:
    numbers = count(10_000_000)

    class OverTheExecutor(AnyFlowInAnyOrder):
        def engine(self) -> ExecutorEngine:
            return ExecutorEngine(desk, next(numbers))

    run_state_machine_as_test(
        OverTheExecutor,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=25, suppress_health_check=list(HealthCheck)
        ),
    )
