"""Random flows, random messages: the core and the reference never differ, and every run ends."""

from __future__ import annotations

import os
from random import Random

from tests.model.flows_strategy import random_flow
from tests.model.game import Game, drain, move

MESSAGES = int(os.environ.get("WFCELERY_MODEL_MESSAGES", "20000"))


def test_the_core_and_the_reference_never_differ() -> None:
    messages = 0
    seed = int(os.environ.get("WFCELERY_MODEL_SEED", "0"))
    while messages < MESSAGES:
        messages += play(seed)
        seed += 1


def play(seed: int, moves: int = 40) -> int:
    random = Random(seed)  # noqa: S311 - a seed must give the same run again
    document = random_flow(random)
    try:
        game = Game(document)
        for _ in range(moves):
            move(game, random)
        drain(game)
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise
    return len(game.sent)
