"""A program, and one process of it: in a session of its own, watched by the guard before it begins."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wfcelery.shell.supervisor.guard import Guard, kill_group
from wfcelery.shell.supervisor.log import Lines

# The shell waits for a word and then becomes the program: until the guard knows of it, nothing has begun, and
# a supervisor that is killed in between leaves a shell that ends by itself.
_WAIT_THEN_BECOME: Final = 'read -r go && exec "$@" </dev/null'
_CHUNK: Final = 64 * 1024
_LAST_LINES: Final = 20
_MOST_LAST_WORDS: Final = 16 * _CHUNK
_GONE_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to be kept running."""

    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    stop_s: float = 10.0
    """How long it may take to stop when it is asked to."""
    is_ready: Callable[[], bool] | None = None
    """The programs after it are started when this says yes."""
    mute: tuple[str, ...] = ()
    """Lines with one of these texts in them are of no interest to anybody."""


class Process:
    """A program that was started. Its output is read from `output`, the descriptor of a pipe."""

    def __init__(self, program: Program, guard: Guard) -> None:
        self.program = program
        self.at_end = False
        self._started_at = time.monotonic()
        self.last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._guard = guard
        self._lines = Lines()
        self.output, writer = os.pipe()
        os.set_blocking(self.output, False)
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - the programs are ours
                ["/bin/sh", "-c", _WAIT_THEN_BECOME, "sh", *program.command],
                env=program.environ,
                stdin=subprocess.PIPE,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
            )
        except OSError:
            os.close(self.output)
            raise
        finally:
            os.close(writer)
        guard.watch(self.pid)
        self._say_go()

    @property
    def pid(self) -> int:
        """Also the id of its session and of its process group."""
        return self._popen.pid

    @property
    def lived_s(self) -> float:
        """How long it has been there."""
        return time.monotonic() - self._started_at

    def read(self) -> list[str]:
        """Give the lines that have come since the last time; `at_end` tells that there will be no more."""
        try:
            data = os.read(self.output, _CHUNK)
        except BlockingIOError:
            return []
        self.at_end = not data
        return self._kept(self._lines.add(data))

    def read_rest(self) -> list[str]:
        """Give what is left, without waiting for more: somebody may have kept an end of the pipe."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            while not self.at_end and len(data) < _MOST_LAST_WORDS:
                more = os.read(self.output, _CHUNK)
                self.at_end = not more
                data += more
        return self._kept(self._lines.add(data) + self._lines.add(b""))

    def close(self) -> None:
        """Read no more."""
        os.close(self.output)

    def ended(self) -> str | None:
        """Tell how it ended, in words; None while it runs. What it left behind in its group is killed."""
        code = self._popen.poll()
        if code is None:
            return None
        kill_group(self.pid)
        self._guard.forget(self.pid)
        return f"was killed by {_name_of(-code)}" if code < 0 else f"ended with exit code {code}"

    def ask_to_stop(self) -> None:
        """Ask the process, not its group: a worker ends its own children when their steps are done."""
        self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with its group."""
        kill_group(self.pid)

    def reap(self) -> None:
        """Wait, for a moment, until a process that was killed is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_GONE_S)
            self._guard.forget(self.pid)

    def _kept(self, lines: list[str]) -> list[str]:
        kept = [line for line in lines if not any(each in line for each in self.program.mute)]
        self.last_lines.extend(kept)
        return kept

    def _say_go(self) -> None:
        if self._popen.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.write(b"go\n")
                self._popen.stdin.flush()
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
