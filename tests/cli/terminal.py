"""A terminal for tests: a process on a pseudo-terminal, read until it says what is expected."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.calling import WFCELERY, environment

TIMEOUT_S = 30.0


class Terminal:
    """`wfcelery ARGS` on a terminal of 24 lines and 100 columns; stdout goes to a pipe."""

    def __init__(self, *args: str, cwd: Path, **more: str) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen(
            [WFCELERY, *args],
            cwd=cwd,
            env=environment(TERM="xterm", **more),
            stdin=side,
            stderr=side,
            stdout=subprocess.PIPE,
            text=True,
            # A session of its own with this terminal, so that Ctrl-C reaches it as from a keyboard.
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call, no locks
        )
        os.close(side)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        os.close(self._main)

    def read_until(self, text: str) -> str:
        """Read until `text` is shown; give everything that was shown since the last time."""
        until = time.monotonic() + TIMEOUT_S
        while text not in self.shown:
            readable, _, _ = select.select([self._main], [], [], max(0.0, until - time.monotonic()))
            assert readable, f"{text!r} was not shown in time; this was: {self.shown!r}"
            assert self._read(), f"the process ended without {text!r}; it said: {self.shown!r}"
        before, _, self.shown = self.shown.partition(text)
        return plain(before + text)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._main, text.encode())

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; give the exit code, stdout, and what was shown since the last reading."""
        while self._read():
            pass
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out, plain(self.shown)

    def _read(self) -> bool:
        try:
            read = os.read(self._main, 65_536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            read = b""  # Linux says it so when nobody has the other side open any more.
        self.shown += read.decode(errors="replace")
        return bool(read)


def plain(text: str) -> str:
    """Take out what only moves the cursor or colours."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")
