"""One run on the bare core, spoken to in a few words: for tests of single rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.driver import RUN_ID, START, CoreEngine
from tests.model.flows_strategy import Steps
from wfcelery.core import decide as rules
from wfcelery.core.messages import (
    Cancel,
    ChildEnded,
    Decide,
    EndStep,
    Hold,
    Principal,
    Resume,
    RetryRun,
    Signal,
    StepBegun,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReady,
    StepReturned,
    StepSent,
    TimerDue,
)
from wfcelery.core.state import NO_ITEM, Error, RunStatus

if TYPE_CHECKING:
    from wfcelery.core.decide import Decision
    from wfcelery.core.messages import Answer, RunMessage
    from wfcelery.core.state import StepRef
    from wfcelery.core.values import Json

ANN = Principal("ann")
STARTER = Principal("starter")


class Table(CoreEngine):
    """A run of `steps`; `told` lists the types of the events of the last message."""

    def __init__(
        self, steps: Steps, value: Json = None, *, later_s: float | None = None, **header: Json
    ) -> None:
        super().__init__()
        self.now = START
        self.last: Decision
        document = {"name": "f", "start": next(iter(steps)), "steps": steps, **header}
        at = None if later_s is None else self.now + later_s
        self.start(document, value, STARTER, self.now, at)

    def _keep(self, decision: Decision) -> None:
        super()._keep(decision)
        self.last = decision

    def say(self, message: RunMessage) -> Answer | None:
        self._keep(rules.decide(self.flow, self.run, message, self.now))
        return self.last.answer

    # -- messages

    def ref(self, step: str, item: int = NO_ITEM) -> StepRef:
        refs = [work.ref for work in self.work] + self.children
        return next(ref for ref in reversed(refs) if (ref.step, ref.item) == (step, item))

    def sent(self, step: str, item: int = NO_ITEM) -> None:
        self.say(StepSent(self.ref(step, item)))

    def done(self, step: str, result: Json = None, item: int = NO_ITEM, event: str | None = None) -> None:
        self.say(StepDone(self.ref(step, item), result, event))

    def failed(self, step: str, kind: str = "ValueError", item: int = NO_ITEM, *, retry: bool = True) -> None:
        self.say(StepFailed(self.ref(step, item), Error(kind, "no"), (kind, "Exception"), retry=retry))

    def postponed(self, step: str, item: int = NO_ITEM) -> None:
        self.say(StepPostponed(self.ref(step, item)))

    def begun(self, step: str, item: int = NO_ITEM, worker: str = "w1") -> None:
        self.say(StepBegun(self.ref(step, item), worker, self.now))

    def returned(self, step: str, item: int = NO_ITEM) -> None:
        self.say(StepReturned(self.ref(step, item), "redelivered", "w1"))

    def lost(self, step: str, *, counted: bool = True, begun: bool = True, reason: str = "") -> None:
        self.say(StepLost(self.ref(step), counted=counted, begun=begun, reason=reason))

    def child(self, step: str, output: Json = None, status: RunStatus = RunStatus.COMPLETED) -> None:
        error = Error("ValueError", "no") if status is RunStatus.FAILED else None
        self.say(ChildEnded(self.ref(step), status, output, error))

    def due(self, step: str, item: int = NO_ITEM) -> None:
        """Let the clock come to the step's time, and say so."""
        attempt = self.run.attempts[step, item]
        self.now = max(self.now, attempt.due_at or 0.0)
        self.say(TimerDue(RUN_ID, step, item, attempt.attempt))

    def decide(
        self,
        step: str,
        by: Principal = ANN,
        *,
        approve: bool = True,
        comment: str = "",
        attempt: int | None = None,
    ) -> Answer | None:
        return self.say(Decide("c", RUN_ID, step, approve, by, comment, attempt=attempt))

    def signal(self, name: str, payload: Json = None, command: str = "c") -> Answer | None:
        return self.say(Signal(command, RUN_ID, name, ANN, payload))

    def ready(self, step: str, by: Principal = ANN) -> Answer | None:
        return self.say(StepReady("c", RUN_ID, step, by))

    def end(self, step: str, result: Json = None) -> Answer | None:
        return self.say(EndStep("c", RUN_ID, step, ANN, result=result))

    def hold(self) -> Answer | None:
        return self.say(Hold("c", RUN_ID, ANN))

    def resume(self) -> Answer | None:
        return self.say(Resume("c", RUN_ID, ANN))

    def cancel(self, reason: str = "") -> Answer | None:
        return self.say(Cancel("c", RUN_ID, ANN, reason))

    def retry(self) -> Answer | None:
        """Retry the failed run, read back in full as the executor does."""
        self.restart()
        return self.say(RetryRun("c", RUN_ID, ANN))

    # -- what is to be seen

    @property
    def state(self) -> dict[str, str]:
        """Each step and item with its status, and what it waits for."""
        shown = {}
        for (name, item), seen in self.observe().steps.items():
            place = name if item == NO_ITEM else f"{name}[{item}]"
            waits = f" {seen.waits_for.value}" if seen.waits_for is not None else ""
            number = f" #{seen.attempt}" if seen.attempt > 1 else ""
            shown[place] = f"{seen.status.value}{waits}{number}"
        return shown

    @property
    def handed(self) -> list[str]:
        """Name all the work that was handed out."""
        return [
            work.ref.step if work.ref.item == NO_ITEM else f"{work.ref.step}[{work.ref.item}]"
            for work in self.work
        ]

    @property
    def told(self) -> list[str]:
        return [event.type for event in self.last.events]

    @property
    def ended(self) -> tuple[str, Json]:
        """The run's status, with its output or its error."""
        run = self.run
        return run.status.value, self.output if run.error is None else run.error.as_json()
