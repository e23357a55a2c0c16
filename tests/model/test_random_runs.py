"""Random flows, random messages: the core and the reference never differ, and every run ends."""

from __future__ import annotations

import os
from collections import Counter
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, get_args

import pytest

from tests.model.driver import START, CoreEngine, Seen, assert_same_run
from tests.model.flows_strategy import Document, compiled, random_flow
from tests.model.game import INPUT, LATER, STARTER, Game, drain, move
from wfcelery.core.messages import Broken, Principal, Request, RunMessage
from wfcelery.core.state import RunStatus, StepStatus
from wfcelery.core.validate import validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.driver import Engine
    from wfcelery.core.values import Json

MESSAGES = int(os.environ.get("WFCELERY_MODEL_MESSAGES", "22000"))
SEED = int(os.environ.get("WFCELERY_MODEL_SEED", "0"))


def test_the_core_and_the_reference_never_differ() -> None:
    sent: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    seed = SEED
    while sent.total() < MESSAGES:
        game = play(seed, CoreEngine())
        sent.update(type(message).__name__ for message in game.sent)
        ends[game.reference.status.value] += 1
        steps.update(row.status.value for row in game.reference.rows.values())
        seed += 1
    # A run of nothing but refusals would prove nothing: everything must have happened.
    assert set(sent) == {kind.__name__ for kind in get_args(RunMessage) if kind is not Broken}
    assert set(ends) == {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}
    assert set(steps) == {StepStatus.DONE, StepStatus.FAILED, StepStatus.SKIPPED, StepStatus.CANCELLED}
    assert ends[RunStatus.COMPLETED] > ends.total() / 2


def test_random_flows_are_valid() -> None:
    for seed in range(200):
        assert validate(compiled(random_flow(seeded(seed)))) == [], seed


class Recording(CoreEngine):
    """An engine that remembers what it was told, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[RunMessage, float]] = []
        self.at: float | None = None

    def start(
        self, document: Document, value: Json, by: Principal, now: float, at: float | None = None
    ) -> None:
        self.at = at
        super().start(document, value, by, now, at)

    def send(self, message: RunMessage, now: float) -> None:
        self.heard.append((message, now))
        super().send(message, now)


def test_messages_decided_in_turn_give_the_same_run_as_one_by_one() -> None:
    for seed in range(SEED, SEED + 100):
        one_by_one = Recording()
        game = play(seed, one_by_one)
        together = CoreEngine()
        together.start(game.document, INPUT, STARTER, START, one_by_one.at)
        for now, is_request, messages in in_turns(one_by_one.heard):
            if is_request:
                together.send(messages[0], now)
            else:
                together.send_in_turn(messages, now)
        assert_same_run(one_by_one.run, together.run, game.flow)
        assert (together.run.seq, together.observe().steps) == (
            one_by_one.run.seq,
            one_by_one.observe().steps,
        )
        assert together.run.status is one_by_one.run.status
        assert together.rows == one_by_one.rows, seed
        assert {work.ref for work in together.work} <= {work.ref for work in one_by_one.work}, seed


def in_turns(heard: list[tuple[RunMessage, float]]) -> Iterator[tuple[float, bool, list[RunMessage]]]:
    """Put neighbours together that ask for no answer and come at the same time."""
    for (now, request), group in groupby(
        enumerate(heard), key=lambda each: (each[1][1], each[0] if isinstance(each[1][0], Request) else -1)
    ):
        yield now, request >= 0, [message for _, (message, _) in group]


class Forgetful(CoreEngine):
    """An engine with a planted fault: it shows one handing-over less than there was."""

    def observe(self) -> Seen:
        self.work = self.work[:2]
        return super().observe()


class Careless(CoreEngine):
    """An engine with a planted fault: after a restart it has forgotten which joins have fired."""

    def restart(self) -> None:
        super().restart()
        self.run = self.run._replace(fired=frozenset(), losers=frozenset())


@pytest.mark.parametrize("engine", [Forgetful, Careless])
def test_a_planted_fault_is_found(engine: type[Engine]) -> None:
    with pytest.raises(AssertionError):
        play_many(range(300), engine)


def play_many(seeds: range, engine: type[Engine]) -> None:
    for seed in seeds:
        play(seed, engine())


def play(seed: int, engine: Engine, moves: int = 40) -> Game:
    random = seeded(seed)
    document = random_flow(random)
    try:
        game = Game(document, engine, later_s=random.choice(LATER))
        for _ in range(moves):
            move(game, random)
        drain(game)
    except Exception as error:
        error.add_note(f"seed {seed}: {document}")
        raise
    return game


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a seed must give the same run again
