"""A little world of queues, workers and trouble: whom may the watch judge, and whom must it?"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import pytest

from tests.executor.watch_words import MOMENTS, ref
from wfcelery.core.state import StepRef
from wfcelery.executor.messages import Holding, MarkerSeen
from wfcelery.executor.watch import Marker, Watch

LEASE_S = 30
ROUND_S = 5
LINES = [("steps", 0), ("steps", 5), ("gpu", 0)]
NAMES = ["w1", "w2", "w3"]
SEEDS = 60

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
            float(next(MOMENTS)),
            reserved=tuple(self.steps[1:]),
            active=tuple((one, 0.0) for one in self.steps[:1]),
            leaving=leaving,
        )


class World:
    def __init__(self, speaks_every_s: int) -> None:
        self.speaks_every_s = speaks_every_s
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

    def second(self) -> None:
        self.now += 1
        for process in self.workers.values():
            if not process.paused and (self.now + process.boot) % self.speaks_every_s == 0:
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
        assert step not in self.queued()
        for process in self.workers.values():
            if not process.silent:
                assert step not in process.steps, f"{process.name} has {step}"

    def queued(self) -> set[StepRef]:
        return {one for queue in self.queues.values() for one in queue if isinstance(one, StepRef)}

    def named(self) -> set[StepRef]:
        """Give the steps that a worker has, or that anybody still believes one to have."""
        told = [message for message in self.mailbox if isinstance(message, Holding)]
        told += [process.says() for process in self.workers.values()]
        held = {one for holding in told for one in (*holding.reserved, *dict(holding.active))}
        return held | set(self.begun)

    def send(self, step: StepRef, line: Line) -> None:
        self.begun.pop(step, None)
        self.line_of[step] = line
        self.queues[line].append(step)
        self.watch.sent([(step, *line)], self.now)

    # -- work

    def steps_become_ready(self, line: Line, number: int) -> None:
        for _ in range(number):
            self.serial += 1
            self.send(ref(str(self.serial)), line)

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

    def a_worker_finishes(self, name: str, *, pushed: bool) -> None:
        process = self.workers.get(name)
        if process is not None and not process.paused and process.steps:
            step = process.steps.pop(0)
            process.news.append(step)
            if pushed:
                self.mailbox.append(Done(step))

    # -- workers come and go

    def a_worker_starts_or_is_replaced(self, name: str) -> None:
        self.serial += 1
        self.workers[name] = Process(name, self.serial)
        self.speak(self.workers[name])

    def a_worker_is_killed(self, name: str) -> None:
        self.workers.pop(name, None)

    def a_worker_leaves(self, name: str) -> None:
        process = self.workers.get(name)
        if process is not None and not process.paused:
            process.news += process.steps
            process.steps.clear()
            self.speak(process, leaving=True)
            del self.workers[name]

    def a_worker_is_paused_or_continues(self, name: str) -> None:
        process = self.workers.get(name)
        if process is not None:
            process.paused = not process.paused
            process.silent = True

    # -- trouble

    def the_broker_is_flushed(self) -> None:
        if self.now - self.flushed_at <= 2 * self.speaks_every_s:
            return  # A worker that has never been heard, and whose first two words are lost, is unknown.
        self.flushed_at, self.flushed = self.now, True
        self.mailbox.clear()
        for queue in self.queues.values():
            queue.clear()

    def the_broker_loses_a_message(self, line: Line, place: int) -> None:
        if place < len(self.queues[line]):
            del self.queues[line][place]

    def another_executor_takes_over(self, line: Line, unpublished: int) -> None:
        if self.queued() & self.named():
            return  # That a step was sent again, while somebody has an earlier copy, is in no table.
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

    def settle(self) -> None:
        """Let a worker consume every queue: within the time promised every step is in somebody's hands."""
        self.a_worker_starts_or_is_replaced("eager")
        lost_marker_s = min(max(self.now / 3, 2.0), 60.0)
        for _ in range(int(LEASE_S + ROUND_S + self.speaks_every_s + lost_marker_s) + 3):
            for line in LINES:
                self.take(self.workers["eager"], line, 1_000)
            self.second()
        for line in LINES:
            self.take(self.workers["eager"], line, 1_000)
        held = {step for process in self.workers.values() if not process.silent for step in process.steps}
        done = {message.step for message in self.mailbox if isinstance(message, Done)}
        assert [step for step in self.line_of if step not in held | done] == []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_somebody_has_is_never_lost_and_what_nobody_has_is_found_in_time(seed: int) -> None:
    dice = Random(seed)  # noqa: S311
    world = World(dice.choice([3, 8]))
    load, pace, trouble = dice.choice([0.1, 0.5]), dice.choice([0.2, 0.5, 0.9]), dice.choice([0.01, 0.05])
    for _ in range(400):
        line, name = dice.choice(LINES), dice.choice(NAMES)
        if dice.random() < load:
            world.steps_become_ready(line, dice.randint(1, 3))
        if dice.random() < pace:
            world.a_worker_takes(name, line, dice.randint(1, 3))
        if dice.random() < pace:
            world.a_worker_finishes(name, pushed=dice.random() < 0.8)
        if name not in world.workers and dice.random() < 0.2:
            world.a_worker_starts_or_is_replaced(name)
        if dice.random() < trouble:
            make_trouble(world, dice, name, line)
        world.second()
    world.settle()


def make_trouble(world: World, dice: Random, name: str, line: Line) -> None:
    match dice.randrange(8):
        case 0:
            world.a_worker_starts_or_is_replaced(name)
        case 1:
            world.a_worker_is_killed(name)
        case 2:
            world.a_worker_leaves(name)
        case 3 | 4:
            world.a_worker_is_paused_or_continues(name)
        case 5:
            world.the_broker_is_flushed()
        case 6:
            world.the_broker_loses_a_message(line, dice.randint(0, 5))
        case _:
            world.another_executor_takes_over(line, dice.randint(0, 3))
