"""The guard: a tiny process that outlives a supervisor that was killed, and takes its children with it.

The supervisor holds the one writing end of a pipe and tells the guard by it which process groups it has. When
the supervisor is gone, however it went, the pipe ends and the guard kills what is left. The guard also holds
the lock of the folder, so that no second system starts before the first is gone.

This file is also the guard's program. It is run alone, without the package: it must import nothing of ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Final

_GONE_S: Final = 5.0
_LOOK_S: Final = 0.01


class Guard:
    """The supervisor's side. A guard that was killed is replaced by the next call."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._groups: set[int] = set()
        self._process = self._start()

    def watch(self, group: int) -> None:
        """Kill this process group if we are gone. When this returns, the guard will know."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Leave this process group alone: it has ended."""
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def renew(self) -> None:
        """Start another guard if this one has been killed."""
        if self._process.poll() is not None:
            self._close()
            self._process = self._start()
            self._write("".join(f"+{group}\n" for group in self._groups))

    def stop(self) -> None:
        """Let the guard kill what it still watches, and wait for its end."""
        self._close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        try:
            self._write(line)
        except BrokenPipeError:
            self._process.wait()
            self.renew()

    def _start(self) -> subprocess.Popen[bytes]:
        # Isolated and without `site`: it starts in a few milliseconds and nothing of the user's can break it.
        # In a session of its own: Ctrl-C in the terminal is for the supervisor.
        return subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(self._lock,),
            start_new_session=True,
        )

    def _write(self, text: str) -> None:
        if self._process.stdin:
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()

    def _close(self) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()


def kill_group(group: int) -> None:
    """Kill every process of a group, at once; none left is no trouble."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _wait_until_gone(groups: Iterable[int]) -> None:
    # Nobody's parent, we cannot wait for them; and a zombie that no init collects is never gone.
    deadline = time.monotonic() + _GONE_S
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            while time.monotonic() < deadline:
                os.killpg(group, 0)
                time.sleep(_LOOK_S)


def main() -> None:
    """Listen until the supervisor is gone, then kill what it has left."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        kill_group(group)
    _wait_until_gone(groups)


if __name__ == "__main__":
    main()
