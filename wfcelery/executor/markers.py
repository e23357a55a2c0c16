"""Who waits in which queue, and the markers that prove that somebody waits no longer.

A queue hands out first what came first, within one priority: call that a line. A marker that went down a line
after a step and has come back says that the step has been taken too. Nothing else says so, however long the
line may be.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from wfcelery.core.state import StepRef
from wfcelery.executor.messages import MarkerSeen

CAP_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Marker:
    """A message that goes down a queue among the steps. Numbers rise within an epoch."""

    queue: str
    priority: int
    epoch: int
    number: int


class Place(NamedTuple):
    """Where a step waits, `since` when. `after` is the number of the last marker sent before it."""

    queue: str
    priority: int
    after: int
    since: float


@dataclass(slots=True)
class _Line:
    """One priority of one queue: the steps in it in order, and the markers under way with their moments."""

    waiting: dict[StepRef, Place] = field(default_factory=dict)
    under_way: deque[tuple[int, float]] = field(default_factory=deque)


class Lines:
    """The steps that no marker has passed. Every call costs what it changes, however many wait."""

    def __init__(self, epoch: int, mark_after_s: float) -> None:
        self._epoch = epoch
        self._mark_after_s = mark_after_s
        self._number = 0
        self._lines: dict[tuple[str, int], _Line] = {}
        self._line_of: dict[StepRef, _Line] = {}
        self._last = Place("", 0, 0, 0.0)

    def __len__(self) -> int:
        return len(self._line_of)

    def __contains__(self, ref: StepRef) -> bool:
        return ref in self._line_of

    def add(self, ref: StepRef, queue: str, priority: int, since: float) -> None:
        """Put a step at the end of its line, also one that stood somewhere before."""
        self.drop(ref)
        place = self._last  # A fan-out of 100,000 shares one.
        if place != (queue, priority, self._number, since):
            place = self._last = Place(queue, priority, self._number, since)
        line = self._lines.get((queue, priority))
        if line is None:
            line = self._lines[queue, priority] = _Line()
        line.waiting[ref] = place
        self._line_of[ref] = line

    def drop(self, ref: StepRef) -> None:
        """Take a step out of its line, wherever it stands."""
        line = self._line_of.pop(ref, None)
        if line is not None:
            del line.waiting[ref]

    def place(self, ref: StepRef) -> Place | None:
        """Tell where a step waits; None if it does not."""
        line = self._line_of.get(ref)
        return None if line is None else line.waiting[ref]

    def due(self, now: float) -> list[Marker]:
        """Give the markers to send now; they must go out after everything that was added so far."""
        due = [key for key, line in self._lines.items() if self._wants_marker(line, now)]
        markers = []
        for queue, priority in due:
            self._number += 1
            self._lines[queue, priority].under_way.append((self._number, now))
            markers.append(Marker(queue, priority, self._epoch, self._number))
        return markers

    def came_back(self, seen: MarkerSeen) -> list[StepRef] | None:
        """Take the steps that this marker has passed out of their line; None if the marker is not ours."""
        line = self._lines.get((seen.queue, seen.priority))
        if line is None or seen.epoch != self._epoch or not 0 < seen.number <= self._number:
            return None
        while line.under_way and line.under_way[0][0] <= seen.number:
            line.under_way.popleft()
        passed = []
        for ref, place in line.waiting.items():
            if place.after >= seen.number:
                break
            passed.append(ref)
        for ref in passed:
            self.drop(ref)
        return passed

    def flushed(self) -> None:
        """Expect no marker back: the queues were emptied."""
        for line in self._lines.values():
            line.under_way.clear()

    def _wants_marker(self, line: _Line, now: float) -> bool:
        oldest = next(iter(line.waiting.values()), None)
        if oldest is None or now - oldest.since < self._mark_after_s:
            return False
        if not line.under_way:
            return True
        # The age of the oldest marker under way is how far the line lags. A third of it makes each gap half
        # as long again; past the cap a sixth keeps even a queue that nobody consumes at some dozens.
        lag = now - line.under_way[0][1]
        gap = max(self._mark_after_s, min(lag / 3, max(CAP_S, lag / 6)))
        return now - line.under_way[-1][1] >= gap
