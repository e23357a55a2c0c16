"""Workers in this process: threads that call tools, or none at all for tests."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import StepFailed
from wfcelery.core.state import Error, StepRef
from wfcelery.embedded.clock import VirtualClock
from wfcelery.embedded.mailbox import LocalMailbox
from wfcelery.executor.ports import Clock
from wfcelery.tools import Registry
from wfcelery.tools.call import Limits
from wfcelery.tools.context import RealPace
from wfcelery.tools.work import do


@dataclass(slots=True)
class _Running:
    """A step in the hands of a thread; `overdue` once its time is over and its failure reported."""

    step: Dispatch
    since: float
    stop: threading.Event = field(default_factory=threading.Event)
    overdue: bool = False


class ThreadPool:
    """Up to `size` threads. A thread whose step ran out of time no longer counts: another takes its place."""

    def __init__(
        self, tools: Registry, mailbox: LocalMailbox, clock: Clock, size: int, limits: Limits
    ) -> None:
        self._tools = tools
        self._mailbox = mailbox
        self._clock = clock
        self._size = size
        self._limits = limits
        self._queue: deque[Dispatch] = deque()
        self._running: dict[StepRef, _Running] = {}
        self._threads = 0
        self._idle = 0
        self._closed = False
        self._changed = threading.Condition()

    def send(self, steps: Sequence[Dispatch]) -> None:
        """Queue the steps, and start threads for them as far as `size` allows."""
        with self._changed:
            self._queue.extend(steps)
            self._start_threads()
            self._changed.notify(len(steps))

    def stop(self, refs: Sequence[StepRef]) -> None:
        """Ask the threads that run these steps to stop; those still queued will not begin."""
        with self._changed:
            for ref in refs:
                running = self._running.get(ref)
                if running is not None:
                    running.stop.set()
            wanted = set(refs)
            dropped = [step for step in self._queue if step.ref in wanted]
            if dropped:
                self._queue = deque(step for step in self._queue if step.ref not in wanted)
        self._mailbox.push(*map(_stopped, dropped))

    def next_deadline(self) -> float | None:
        """Tell in how many seconds the next step runs out of time; None if none has a limit."""
        with self._changed:
            limits = [
                running.since + running.step.timeout_s
                for running in self._running.values()
                if running.step.timeout_s is not None and not running.overdue
            ]
        return max(0.0, min(limits) - time.monotonic()) if limits else None

    def expire(self) -> None:
        """Report the steps whose time is over. Their threads are asked to stop and replaced."""
        late = []
        with self._changed:
            now = time.monotonic()
            for running in self._running.values():
                limit = running.step.timeout_s
                if limit is not None and not running.overdue and now >= running.since + limit:
                    running.overdue = True
                    running.stop.set()
                    self._threads -= 1
                    late.append(running.step)
            self._start_threads()
        for step in late:
            error = Error("timeout", f"the tool ran longer than {step.timeout_s:g} s")
            self._mailbox.push(StepFailed(step.ref, error, ("timeout",)))

    def close(self) -> None:
        """Let idle threads end; ask busy ones to stop."""
        with self._changed:
            self._closed = True
            for running in self._running.values():
                running.stop.set()
            self._changed.notify_all()

    def _start_threads(self) -> None:
        """Start threads for what is queued, as far as `size` allows."""
        missing = min(len(self._queue) - self._idle, self._size - self._threads)
        for _ in range(missing):
            # Daemons: a tool that hangs must not keep the process from ending.
            name = f"step-{self._threads + 1}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
            self._threads += 1

    def _work(self) -> None:
        name = threading.current_thread().name
        while (running := self._next()) is not None:
            pace = RealPace(running.stop)
            report = do(running.step, self._tools, pace, self._clock.now, limits=self._limits, worker=name)
            with self._changed:
                self._running.pop(running.step.ref, None)
                replaced = running.overdue
            self._mailbox.push(report)
            if replaced:
                return

    def _next(self) -> _Running | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._closed or self._queue)
            self._idle -= 1
            if self._closed:
                return None
            step = self._queue.popleft()
            running = _Running(step, time.monotonic())
            self._running[step.ref] = running
            return running


class InlinePool:
    """No threads: steps are done one after the other by whoever calls `work`; for a virtual clock."""

    def __init__(self, tools: Registry, mailbox: LocalMailbox, clock: Clock, limits: Limits) -> None:
        self._tools = tools
        self._mailbox = mailbox
        self._clock = clock
        self._limits = limits
        self._queue: deque[Dispatch] = deque()

    def send(self, steps: Sequence[Dispatch]) -> None:
        """Queue the steps."""
        self._queue.extend(steps)

    def stop(self, refs: Sequence[StepRef]) -> None:
        """Steps still queued will not begin."""
        wanted = set(refs)
        dropped = [step for step in self._queue if step.ref in wanted]
        if dropped:
            self._queue = deque(step for step in self._queue if step.ref not in wanted)
        self._mailbox.push(*map(_stopped, dropped))

    def work(self) -> bool:
        """Do the step that has waited longest; tell whether there was one."""
        if not self._queue:
            return False
        step = self._queue.popleft()
        pace = _Pace(self._clock)
        report = do(step, self._tools, pace, self._clock.now, limits=self._limits, worker="inline")
        self._mailbox.push(report)
        return True

    def close(self) -> None:
        """Forget what is queued."""
        self._queue.clear()


def _stopped(step: Dispatch) -> StepFailed:
    return StepFailed(step.ref, Error("cancelled", "stopped before it began"), retry=False)


class _Pace:
    """Time for an inline tool: waiting moves a virtual clock on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now()

    def stop_requested(self) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        if isinstance(self._clock, VirtualClock):
            self._clock.advance(seconds)
        else:
            time.sleep(seconds)
