"""Play a run to its end over any engine: tools that answer the same each time, messages in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model.driver import RUN_ID, Engine, Seen
from tests.model.flows_strategy import Document, Steps
from wfcelery.core.messages import Principal, RunMessage, StepDone, StepFailed, StepSent, TimerDue
from wfcelery.core.state import Error, RunStatus, StepStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from tests.model.driver import Work
    from wfcelery.core.values import Json

ACTIVE = (StepStatus.READY, StepStatus.RUNNING)
LIVE = (RunStatus.RUNNING, RunStatus.PAUSED)


@dataclass(frozen=True, slots=True)
class Topology:
    """A flow, what its tools do (return their step's name unless said otherwise), and what must come out."""

    name: str
    steps: Steps
    output: tuple[Json, ...]
    once: tuple[str, ...] = ()
    results: Mapping[str, Json] = field(default_factory=dict)
    failing: frozenset[str] = frozenset()
    header: Document = field(default_factory=dict)
    waits_s: float = 0.0

    def report(self, work: Work) -> RunMessage:
        step = work.ref.step
        if step in self.failing:
            return StepFailed(work.ref, Error("Broken", f"{step} always fails"), ("Broken",))
        return StepDone(work.ref, self.results.get(step, step))


class Player:
    """One run of a topology; `random` decides what happens next, what is said twice, when we restart."""

    def __init__(self, topology: Topology, engine: Engine, random: Random, repeats: float = 0.3) -> None:
        self.topology = topology
        self.engine = engine
        self.random = random
        self.repeats = repeats
        self.now = self.began = engine.begins_at
        self.said: list[RunMessage] = []
        self.marked = 0
        self.answered: set[int] = set()
        start = next(iter(topology.steps))
        self.document: Document = {"name": "t", "start": start, "steps": topology.steps, **topology.header}

    def play(self) -> Seen:
        """Go on until nothing is left to happen."""
        self.engine.start(self.document, {"n": 3}, Principal("starter"), self.now)
        seen = self.engine.observe()
        while self.go_on(seen):
            if self.said and self.random.random() < self.repeats:
                self.engine.send(self.random.choice(self.said[-50:]), self.now)
            if self.random.random() < 0.02:
                self.engine.restart()
            seen = self.engine.observe()
        return seen

    def go_on(self, seen: Seen) -> bool:
        """Let one of the things happen that can."""
        waiting = [
            number
            for number in range(len(seen.work))
            if number not in self.answered and self.is_open(seen, seen.work[number])
        ]
        unmarked = not self.engine.passes_on and self.marked < len(seen.work)
        if unmarked and (not waiting or self.random.random() < 0.5):
            self.say(StepSent(seen.work[self.marked].ref))
            self.marked += 1
        elif waiting:
            number = self.random.choice(waiting)
            self.answered.add(number)
            self.say(self.topology.report(seen.work[number]))
        else:
            return self.wake(seen)
        return True

    def is_open(self, seen: Seen, work: Work) -> bool:
        step = seen.steps[work.ref.step, work.ref.item]
        return step.attempt == work.ref.attempt and step.status in ACTIVE

    def wake(self, seen: Seen) -> bool:
        """Let the clock come to the next timer, if there is one."""
        timers = [
            (step.due_at, key, step.attempt) for key, step in seen.steps.items() if step.due_at is not None
        ]
        if not timers:
            return False
        due_at, (name, item), attempt = min(timers)
        self.now = max(self.now, due_at)
        self.say(TimerDue(RUN_ID, name, item, attempt))
        return True

    def say(self, message: RunMessage) -> None:
        self.said.append(message)
        self.engine.send(message, self.now)
