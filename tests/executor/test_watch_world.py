"""A little world of queues, workers and trouble: whom may the watch judge, and whom must it?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.executor.watch_words import ref
from wfcelery.core.state import StepRef
from wfcelery.executor.messages import Holding, MarkerSeen
from wfcelery.executor.watch import Marker, Watch

LEASE_S = 30
ROUND_S = 5
SPEAKS_EVERY_S = 3
LINES = [("steps", 0), ("steps", 5), ("gpu", 0)]
NAMES = ["w1", "w2", "w3"]

Line: TypeAlias = tuple[str, int]


@dataclass
class Done:
    step: StepRef


@dataclass
class Process:
    """A worker process. It runs the first step it holds; `news` are reports that the next word brings."""

    name: str
    boot: int
    steps: list[StepRef] = field(default_factory=list)
    news: list[StepRef] = field(default_factory=list)
    paused: bool = False
    silent: bool = False  # since it was paused, until it speaks again

    def says(self, *, leaving: bool = False) -> Holding:
        return Holding(
            self.name,
            str(self.boot),
            0.0,
            reserved=tuple(self.steps[1:]),
            active=tuple((one, 0.0) for one in self.steps[:1]),
            leaving=leaving,
        )


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.serial = 0
        self.epoch = 1
        self.watch = Watch(1)
        self.line_of: dict[StepRef, Line] = {}  # the table of steps: those that are out
        self.begun: dict[StepRef, str] = {}  # its column `worker`
        self.table: dict[str, str] = {}  # the table of workers
        self.queues: dict[Line, list[StepRef | Marker]] = {line: [] for line in LINES}
        self.mailbox: list[Done | Holding | MarkerSeen] = []
        self.workers: dict[str, Process] = {}
        self.flushed_at = -100.0
        self.flushed = False

    # -- what the system does by itself

    @rule(seconds=st.integers(1, 12))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.second()

    def second(self) -> None:
        self.now += 1
        for process in self.workers.values():
            if not process.paused and (self.now + process.boot) % SPEAKS_EVERY_S == 0:
                self.speak(process)
        self.executor_turns()

    def speak(self, process: Process, *, leaving: bool = False) -> None:
        self.mailbox += [Done(step) for step in process.news]
        self.mailbox.append(process.says(leaving=leaving))
        process.silent = False

    def executor_turns(self) -> None:
        if self.flushed:
            self.watch.flushed(self.now)
            self.flushed = False
        messages, self.mailbox = self.mailbox, []
        for message in messages:
            if isinstance(message, Done):
                self.line_of.pop(message.step, None)
                self.begun.pop(message.step, None)
                self.watch.ended(message.step)
                continue
            if isinstance(message, Holding):
                self.table[message.worker] = message.boot_id
                if message.leaving:
                    del self.table[message.worker]
            for begun in self.watch.hear(message, self.now):
                self.begun[begun.ref] = begun.worker or ""
        for marker in self.watch.markers(self.now):
            self.queues[marker.queue, marker.priority].append(marker)
        lost = [one.ref for one in self.watch.judge(self.now)]
        for step in lost:
            self.may_be_judged(step)
        for step in lost:
            self.send(step, self.line_of[step])

    def may_be_judged(self, step: StepRef) -> None:
        assert step in self.line_of
        for line, queue in self.queues.items():
            assert step not in queue, f"{step} waits in {line}"
        for process in self.workers.values():
            if not process.silent:
                assert step not in process.steps, f"{process.name} has {step}"

    def send(self, step: StepRef, line: Line) -> None:
        self.begun.pop(step, None)
        self.line_of[step] = line
        self.queues[line].append(step)
        self.watch.sent([(step, *line)], self.now)

    # -- work

    @rule(line=st.sampled_from(LINES), number=st.integers(1, 4))
    def steps_become_ready(self, line: Line, number: int) -> None:
        for _ in range(number):
            self.serial += 1
            self.send(ref(str(self.serial)), line)

    @rule(name=st.sampled_from(NAMES), line=st.sampled_from(LINES), number=st.integers(1, 5))
    def a_worker_takes(self, name: str, line: Line, number: int) -> None:
        process = self.workers.get(name)
        if process is not None and not process.paused:
            self.take(process, line, number)

    def take(self, process: Process, line: Line, number: int) -> None:
        taken, self.queues[line] = self.queues[line][:number], self.queues[line][number:]
        for one in taken:
            if isinstance(one, Marker):
                self.mailbox.append(MarkerSeen(*line, one.epoch, one.number, process.name))
            elif one not in process.steps:
                process.steps.append(one)

    @rule(name=st.sampled_from(NAMES), pushed=st.booleans())
    def a_worker_finishes(self, name: str, pushed: bool) -> None:
        process = self.workers.get(name)
        if process is not None and not process.paused and process.steps:
            step = process.steps.pop(0)
            process.news.append(step)
            if pushed:
                self.mailbox.append(Done(step))

    # -- workers come and go

    @rule(name=st.sampled_from(NAMES))
    def a_worker_starts_or_is_replaced(self, name: str) -> None:
        self.serial += 1
        self.workers[name] = Process(name, self.serial)
        self.speak(self.workers[name])

    @rule(name=st.sampled_from(NAMES))
    def a_worker_is_killed(self, name: str) -> None:
        self.workers.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def a_worker_leaves(self, name: str) -> None:
        process = self.workers.get(name)
        if process is not None and not process.paused:
            process.news += process.steps
            process.steps.clear()
            self.speak(process, leaving=True)
            del self.workers[name]

    @rule(name=st.sampled_from(NAMES))
    def a_worker_is_paused_or_continues(self, name: str) -> None:
        process = self.workers.get(name)
        if process is not None:
            process.paused = not process.paused
            process.silent = True

    # -- trouble

    @precondition(lambda self: self.now - self.flushed_at > 2 * SPEAKS_EVERY_S)
    @rule()
    def the_broker_is_flushed(self) -> None:
        self.flushed_at, self.flushed = self.now, True
        self.mailbox.clear()
        for queue in self.queues.values():
            queue.clear()

    @rule(line=st.sampled_from(LINES), place=st.integers(0, 5))
    def the_broker_loses_a_message(self, line: Line, place: int) -> None:
        if place < len(self.queues[line]):
            del self.queues[line][place]

    @rule(line=st.sampled_from(LINES), unpublished=st.integers(0, 3))
    def another_executor_takes_over(self, line: Line, unpublished: int) -> None:
        for _ in range(unpublished):
            self.serial += 1
            self.line_of[ref(str(self.serial))] = line
        self.epoch += 1
        self.watch = Watch(self.epoch)
        self.now = 0.0
        self.flushed_at = -100.0
        self.watch.known(self.table.items(), 0.0)
        self.watch.found([(step, *place) for step, place in self.line_of.items()], 0.0)
        for step, worker in self.begun.items():
            self.watch.found_held(step, worker, 0.0)

    # -- in the end

    def teardown(self) -> None:
        """Once a worker consumes every queue, every step is in somebody's hands within the time promised."""
        self.a_worker_starts_or_is_replaced("eager")
        lost_marker_s = max(self.now / 3, 2.0)
        for _ in range(int(LEASE_S + ROUND_S + SPEAKS_EVERY_S + min(lost_marker_s, 60.0)) + 3):
            for line in LINES:
                self.take(self.workers["eager"], line, 1_000)
            self.second()
        for line in LINES:
            self.take(self.workers["eager"], line, 1_000)
        held = {step for process in self.workers.values() if not process.silent for step in process.steps}
        done = {message.step for message in self.mailbox if isinstance(message, Done)}
        assert [step for step in self.line_of if step not in held | done] == []


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
