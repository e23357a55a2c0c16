"""Calling code of others so that it cannot hang us: in a few threads, and for a short time only."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Final

THREADS: Final = 8
SECONDS: Final = 2.0


class Overdue(Exception):
    """No answer in time, or nobody free to fetch one."""


class Failed(Exception):
    """The call raised `error`, which may be of any kind, and must not spread as what it is."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Bounded:
    """Runs calls in at most `threads` daemon threads, and waits for each at most `seconds`.

    A call that hangs keeps its thread. When all threads hang, further calls are refused at once: neither
    threads nor waiting add up.
    """

    def __init__(self, *, threads: int = THREADS, seconds: float = SECONDS) -> None:
        self._threads = threads
        self._seconds = seconds
        self._begin()
        # Threads do not follow into a forked process: it begins anew, else every call there waits in vain.
        again = weakref.WeakMethod(self._begin)
        os.register_at_fork(after_in_child=lambda: (begin := again()) and begin())

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._alive = 0
        self._busy = 0
        self._overdue = 0

    def call(self, function: Callable[..., object], *args: object) -> object:
        """Give what the function returns; raise `Failed` if it raises, `Overdue` after the time."""
        call = _Call(function, args)
        with self._lock:
            if self._overdue >= self._threads:
                raise Overdue
            self._busy += 1
            if self._busy > self._alive and self._alive < self._threads and not self._hire():
                self._busy -= 1
                raise Overdue
        self._waiting.put(call)
        if not call.done.wait(self._seconds):
            self._give_up(call)
        if call.error is not None:
            raise Failed(call.error)
        return call.result

    def _hire(self) -> bool:
        """Begin one more thread; tell whether there is any to do the work."""
        thread = threading.Thread(
            target=self._serve, args=(self._waiting,), name=f"wfcelery-rights-{self._alive + 1}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # The machine has no thread to give.
            return self._alive > 0
        self._alive += 1
        return True

    def _give_up(self, call: _Call) -> None:
        with self._lock:
            if call.done.is_set():
                return
            call.given_up = True
            if call.begun:
                self._overdue += 1
        raise Overdue

    def _serve(self, waiting: queue.SimpleQueue[_Call]) -> None:
        while True:
            call = waiting.get()
            with self._lock:
                call.begun = not call.given_up
            if call.begun:
                call.run()
            with self._lock:
                self._busy -= 1
                if call.begun and call.given_up:
                    self._overdue -= 1
                call.done.set()


class _Call:
    """One call, and what came of it."""

    def __init__(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        self.done = threading.Event()
        self.begun = False
        self.given_up = False
        self.result: object = None
        self.error: BaseException | None = None
        self._function = function
        self._args = args

    def run(self) -> None:
        try:
            self.result = self._function(*self._args)
        except BaseException as error:  # noqa: BLE001 - whatever others raise, SystemExit too, ends no thread of ours
            self.error = error
