"""The supervisor: starts programs in order, starts again what dies, stops them in reverse order.

One thread and one loop: it sleeps until a process writes or ends, a signal comes, or something is due.
"""

from __future__ import annotations

import contextlib
import enum
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wfcelery.errors import NotReachable
from wfcelery.shell.supervisor.backoff import Backoff
from wfcelery.shell.supervisor.guard import Guard
from wfcelery.shell.supervisor.log import Log
from wfcelery.shell.supervisor.process import Process, Program

READY_S: Final = 30.0
_LOOK_S: Final = 0.1
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop(enum.Enum):
    """Why the supervisor has stopped."""

    TOLD = "told"
    INTERRUPTED = "interrupted"


@dataclass(slots=True)
class _Place:
    """A program and what has become of it."""

    program: Program
    process: Process | None = None
    ready: bool = False
    waited_s: float = 0.0
    again_at: float = 0.0
    asked_at: float | None = None
    killed: bool = False
    first_at: float | None = None


class Supervisor:
    """Keeps `programs` running until SIGTERM, SIGHUP or Ctrl-C. Belongs to the main thread.

    When all are started and `is_up` says that they make a whole, `tell_up` is called once.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        guard: Guard,
        log: Log,
        quiet: bool = False,
        backoff: Backoff | None = None,
        ready_s: float = READY_S,
        is_up: Callable[[], bool] = lambda: True,
        tell_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._places = [_Place(program) for program in programs]
        self._guard = guard
        self._log = log
        self._quiet = quiet
        self._backoff = backoff or Backoff()
        self._ready_s = ready_s
        self._is_up = is_up
        self._tell_up = tell_up
        self._told_up = False
        self._stop: Stop | None = None
        self._selector = selectors.DefaultSelector()

    def run(self) -> Stop:
        """Return when everything has been stopped. Raises `NotReachable` if a program never gets ready."""
        with contextlib.closing(self._selector), _signals_as_bytes() as signals:
            self._selector.register(signals, selectors.EVENT_READ)
            try:
                while self._stop is None or self._anybody():
                    self._wait()
                    self._hear(signals)
                    self._bury()
                    if self._log.gone:
                        self._begin_to_stop(Stop.TOLD)
                    if self._stop is None:
                        self._start_what_is_due()
                    else:
                        self._stop_the_last()
            finally:
                self._kill_all()
                for place in self._places:
                    if place.process:
                        place.process.reap()
            return self._stop

    # --------------------------------------------------------------------------------------- waiting

    def _wait(self) -> None:
        for key, _ in self._selector.select(self._patience()):
            if isinstance(key.data, Process):
                self._read(key.data)

    def _patience(self) -> float | None:
        """How long nothing can be due; None if only a signal or a line can bring something to do."""
        now = time.monotonic()
        if self._stop:
            moments = [
                place.asked_at + place.program.stop_s
                for place in self._places
                if place.process and place.asked_at is not None and not place.killed
            ]
        else:
            moments = [place.again_at for place in self._places if place.process is None and place.again_at]
            if not self._told_up:
                moments.append(now + _LOOK_S)
        return max(0.0, min(moments) - now) if moments else None

    def _hear(self, signals: int) -> None:
        try:
            numbers = os.read(signals, 4096)
        except BlockingIOError:
            return
        for number in numbers:
            if number == signal.SIGINT and self._stop is not None:
                self._log.say("interrupted again: killing everything")
                self._kill_all()
            elif number in _STOPPING:
                told = Stop.INTERRUPTED if number == signal.SIGINT else Stop.TOLD
                self._begin_to_stop(told)

    def _read(self, process: Process) -> None:
        lines = process.read()
        self._show(process, lines)
        if process.at_end:
            self._close(process)

    def _close(self, process: Process) -> None:
        self._selector.unregister(process.output)
        process.close()

    def _show(self, process: Process, lines: Iterable[str]) -> None:
        if not self._quiet:
            for line in lines:
                self._log.write(process.program.name, line)

    # -------------------------------------------------------------------------- starting, again and again

    def _start_what_is_due(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.process is None and now >= place.again_at:
                self._start(place)
            if not place.ready:
                place.ready = place.program.is_ready is None or place.program.is_ready()
            if not place.ready:
                place.first_at = place.first_at or now
                if now - place.first_at > self._ready_s:
                    raise NotReachable(place.program.name, f"it does not answer after {self._ready_s:g} s")
                return
        if not self._told_up and self._is_up():
            self._told_up = True
            self._tell_up()

    def _start(self, place: _Place) -> None:
        try:
            process = Process(place.program, self._guard)
        except OSError as error:  # No memory, no process left: that passes.
            self._start_later(place, f"cannot be started: {error}", lived_s=0)
            return
        place.process = process
        self._selector.register(process.output, selectors.EVENT_READ, process)

    def _bury(self) -> None:
        self._guard.renew()
        for place in self._places:
            if place.process is None:
                continue
            how = place.process.ended()
            if how is None:
                continue
            process, place.process = place.process, None
            self._hear_last_words(process)
            if self._stop is None:
                self._start_later(place, how, process.lived_s)
            elif place.asked_at is None:
                self._log.say(f"{place.program.name} {how}")

    def _hear_last_words(self, process: Process) -> None:
        if not process.at_end:
            self._show(process, process.read_rest())
            self._close(process)
        if self._quiet and self._stop is None:
            for line in process.last_lines:
                self._log.write(process.program.name, line)

    def _start_later(self, place: _Place, why: str, lived_s: float) -> None:
        place.waited_s = self._backoff.after(place.waited_s, lived_s)
        place.again_at = time.monotonic() + place.waited_s
        self._log.say(f"{place.program.name} {why}; it is started again in {place.waited_s:g} s")

    # --------------------------------------------------------------------------------------- stopping

    def _begin_to_stop(self, why: Stop) -> None:
        if self._stop is None:
            self._stop = why
            hint = " (Ctrl-C again kills)" if why is Stop.INTERRUPTED else ""
            self._log.say(f"stopping{hint}")

    def _stop_the_last(self) -> None:
        """Ask the last one that lives to stop; those before it wait for it."""
        place = next((each for each in reversed(self._places) if each.process), None)
        if place is None or place.process is None:
            return
        now = time.monotonic()
        if place.asked_at is None:
            place.asked_at = now
            place.process.ask_to_stop()
        elif now - place.asked_at >= place.program.stop_s and not place.killed:
            place.killed = True
            self._log.say(f"{place.program.name} did not stop in {place.program.stop_s:g} s: killing it")
            place.process.kill()

    def _anybody(self) -> bool:
        return any(place.process for place in self._places)

    def _kill_all(self) -> None:
        for place in self._places:
            if place.process:
                place.asked_at = place.asked_at or time.monotonic()
                place.killed = True
                place.process.kill()


@contextlib.contextmanager
def _signals_as_bytes() -> Iterator[int]:
    """Give a descriptor from which each signal that concerns us is read as a byte, its number."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    # What is ignored stays so: `nohup`, or a shell without job control that put us in the background.
    wanted = [each for each in _STOPPING if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, lambda *_: None) for each in (*wanted, signal.SIGCHLD)}
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(previous)
        for each, handler in before.items():
            signal.signal(each, handler)
        os.close(reader)
        os.close(writer)
