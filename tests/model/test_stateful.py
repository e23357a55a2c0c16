"""The same game, played by hypothesis: it looks for the shortest way to make core and reference differ."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.model import game as play
from tests.model.driver import RUN_ID, Engine
from tests.model.flows_strategy import Document, flows
from wfcelery.core.messages import Cancel, Hold, Resume, RetryRun, Signal, StepReady, StepUnsent
from wfcelery.core.state import RunStatus, WaitsFor

if TYPE_CHECKING:
    from random import Random

    from wfcelery.core.values import Json

RANDOM = st.randoms(use_true_random=False)


class AnyFlowInAnyOrder(RuleBasedStateMachine):
    """A random flow under random messages; at the end everything is answered, and the run must end."""

    @initialize(document=flows(), later_s=st.sampled_from(play.LATER))
    def begin(self, document: Document, later_s: float | None) -> None:
        self.game = play.Game(document, self.engine(), later_s=later_s)

    def engine(self) -> Engine | None:
        """Say what is compared with the reference; the bare core unless told otherwise."""
        return None

    @precondition(lambda self: self.game.open_work())
    @rule(random=RANDOM)
    def a_worker_reports(self, random: Random) -> None:
        self.game.send(self.game.report(random, random.choice(self.game.open_work())))

    @precondition(lambda self: self.game.unsent)
    @rule()
    def what_was_handed_out_is_on_its_way(self) -> None:
        self.game.pass_on()

    @precondition(lambda self: self.game.open_children())
    @rule(random=RANDOM)
    def a_sub_run_ends(self, random: Random) -> None:
        play.end_child(self.game, random, random.choice(self.game.open_children()))

    @precondition(lambda self: self.game.timers())
    @rule(early=st.booleans())
    def a_timer_rings(self, early: bool) -> None:
        self.game.due(early=early)

    @precondition(lambda self: self.game.pending(WaitsFor.APPROVAL))
    @rule(random=RANDOM)
    def somebody_decides(self, random: Random) -> None:
        play.vote(self.game, random)

    @precondition(lambda self: self.game.pending(WaitsFor.REPORT))
    @rule(random=RANDOM)
    def a_postponed_step_is_ended(self, random: Random) -> None:
        play.end_postponed(self.game, random)

    @rule(name=st.sampled_from(["go", "stop", "never"]), payload=st.sampled_from(play.RESULTS))
    def a_signal_comes(self, name: str, payload: Json) -> None:
        self.game.send(Signal(self.game.command(), RUN_ID, name, play.STARTER, payload))

    @precondition(lambda self: self.game.sent)
    @rule(random=RANDOM)
    def a_message_is_repeated(self, random: Random) -> None:
        play.repeat(self.game, random)

    @rule()
    def the_executor_restarts(self) -> None:
        self.game.restart()

    @precondition(lambda self: self.game.reference.rows)
    @rule(random=RANDOM)
    def a_step_is_hurried(self, random: Random) -> None:
        step, item = random.choice(list(self.game.reference.rows))
        self.game.send(StepReady(self.game.command(), RUN_ID, step, random.choice(play.PEOPLE), item))

    @precondition(lambda self: self.game.open_work())
    @rule(random=RANDOM)
    def a_ready_step_is_on_its_way_to_nobody(self, random: Random) -> None:
        self.game.send(StepUnsent(random.choice(self.game.open_work())))

    @precondition(lambda self: self.game.reference.is_live)
    @rule(hold=st.booleans())
    def an_operator_holds_or_resumes(self, hold: bool) -> None:
        message = Hold if hold else Resume
        self.game.send(message(self.game.command(), RUN_ID, play.STARTER))

    @precondition(lambda self: self.game.reference.status is RunStatus.FAILED)
    @rule()
    def an_operator_retries(self) -> None:
        self.game.send(RetryRun(self.game.command(), RUN_ID, play.STARTER))

    @precondition(lambda self: self.game.reference.is_live and len(self.game.sent) > 10)
    @rule()
    def somebody_cancels(self) -> None:
        self.game.send(Cancel(self.game.command(), RUN_ID, play.STARTER))

    def teardown(self) -> None:
        if hasattr(self, "game"):
            play.drain(self.game)


TestAnyFlowInAnyOrder = AnyFlowInAnyOrder.TestCase
TestAnyFlowInAnyOrder.settings = settings(
    max_examples=int(os.environ.get("WFCELERY_MODEL_EXAMPLES", "100")),
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
