"""Showing progress: redrawn in place on a terminal, a line for each event elsewhere, nothing if quiet."""

from __future__ import annotations

import shutil
import threading
import time
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, Protocol, TextIO

from wfcelery.cli.output import plain
from wfcelery.cli.progress import Line
from wfcelery.cli.symbols import sign, signs_for, wants_colour

REDRAW_EVERY_S: Final = 0.1


class View(Protocol):
    """What a run shows of itself while it goes on."""

    def show(self, news: Sequence[Line]) -> None:
        """Tell of what has changed."""

    def refresh(self) -> None:
        """Bring what is shown up to date."""

    def say(self, text: str) -> None:
        """Tell a line of text."""

    def stop(self) -> None:
        """Leave what is shown as it is; it may go on later."""


class Quiet:
    """Shows no progress; what tools print is still told."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, news: Sequence[Line]) -> None:
        """Tell nothing."""

    def refresh(self) -> None:
        """Show nothing."""

    def say(self, text: str) -> None:
        """Tell a line of text."""
        # In one piece, for threads of tools say things too.
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def stop(self) -> None:
        """Nothing is shown."""


class Plain(Quiet):
    """A line for each event, for logs and pipes."""

    def __init__(self, stream: TextIO, now: Callable[[], float]) -> None:
        super().__init__(stream)
        self._now = now
        self._signs = signs_for(stream)

    def show(self, news: Sequence[Line]) -> None:
        """Write one line for each."""
        now = self._now()
        for line in news:
            if line.kind != "waiting":
                self.say(f"{sign(self._signs, line.kind)} {plain(line.text(now))}")


class Live:
    """A line for each step, redrawn in place. Threads may `say` things, which then stand above."""

    def __init__(self, stream: TextIO, now: Callable[[], float], lines: Callable[[], list[Line]]) -> None:
        self._stream = stream
        self._now = now
        self._lines = lines
        self._signs = signs_for(stream)
        self._colour = wants_colour(stream)
        self._height = 0
        self._is_stale = False
        self._drawn_at = 0.0
        self._turn = threading.RLock()

    def show(self, news: Sequence[Line]) -> None:  # noqa: ARG002 - the lines are asked for when drawn
        """Remember that something has changed; what counts up (the items of a foreach) is no news."""
        self._is_stale = True

    def refresh(self) -> None:
        """Draw again if something is new or time is counted down, but not too often."""
        moment = time.monotonic()
        if moment - self._drawn_at < REDRAW_EVERY_S:
            return
        lines = self._lines()
        if self._is_stale or any(line.due_at is not None for line in lines):
            self._drawn_at = moment
            self._draw(lines)

    def say(self, text: str) -> None:
        """Write a line above what is shown."""
        with self._turn:
            self._erase()
            self._stream.write(text + "\n")
            self._draw(self._lines())

    def stop(self) -> None:
        """Draw a last time, and begin below it when there is more to show."""
        with self._turn:
            self._draw(self._lines())
            self._height = 0
            self._is_stale = False

    def _draw(self, lines: list[Line]) -> None:
        with self._turn:
            self._erase()
            columns, rows = shutil.get_terminal_size()
            now = self._now()
            shown = lines[-max(1, rows - 3) :]
            texts = [f"  {len(lines) - len(shown)} steps before these"] if len(shown) < len(lines) else []
            for line in shown:
                mark = sign(self._signs, line.kind, colour=self._colour)
                texts.append(f"{mark} {cut(line.text(now), columns - 3)}")
            self._stream.write("".join(f"{text}\n" for text in texts))
            self._stream.flush()
            self._height = len(texts)
            self._is_stale = False

    def _erase(self) -> None:
        if self._height:
            self._stream.write(f"\x1b[{self._height}A\r\x1b[J")
            self._height = 0


def cut(text: str, width: int) -> str:
    """Cut text to what fits `width` columns: some characters take two, control characters are left out."""
    shown = "".join(filter(str.isprintable, text))
    if sum(map(_columns, shown)) <= width:
        return shown
    used = list(accumulate(map(_columns, shown)))
    return shown[: bisect_right(used, width - 1)] + "…"


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
