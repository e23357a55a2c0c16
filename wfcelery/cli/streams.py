"""Stdout is for what was asked for. While a run goes on, whatever tools print goes to stderr instead."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO


@contextmanager
def only_ours(tell: Callable[[str], None]) -> Iterator[TextIO]:
    """Give the stream for what was asked for. Lines that anybody else prints are handed to `tell`.

    Descriptor 1 stays with stderr for good: a tool that hangs may still print after the result was written.
    """
    ours = _own_stdout()
    above = _Lines(tell)
    handler = logging.StreamHandler(above)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with redirect_stdout(above), redirect_stderr(above):
            yield ours
    finally:
        root.removeHandler(handler)
        above.flush_rest()
        _finish(ours)


def _finish(ours: TextIO) -> None:
    try:
        ours.flush()
    except OSError:
        if ours is not sys.stdout:
            with suppress(OSError):
                ours.close()  # What cannot be written is not tried again, and complained of, at exit.
        raise


def _own_stdout() -> TextIO:
    sys.stdout.flush()
    try:
        descriptor = sys.stdout.fileno()
    except (io.UnsupportedOperation, ValueError):
        return sys.stdout
    if descriptor != 1:
        return sys.stdout
    ours = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    os.dup2(2, 1)
    return ours


class _Lines(io.TextIOBase):
    """A stream that hands on whole lines. Each thread that writes has its own unfinished line."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell
        self._unfinished: dict[int, str] = {}
        self._turn = threading.Lock()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        thread = threading.get_ident()
        with self._turn:
            *lines, rest = (self._unfinished.pop(thread, "") + text).split("\n")
            if rest:
                self._unfinished[thread] = rest
        for line in lines:
            self._tell(line)
        return len(text)

    def flush_rest(self) -> None:
        """Hand on what was printed without an end of line."""
        with self._turn:
            rest = list(self._unfinished.values())
            self._unfinished.clear()
        for line in rest:
            self._tell(line)
