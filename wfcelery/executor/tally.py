"""What an executor has seen since it began: counters and histograms, for whoever draws curves of them.

Kept in memory, told about once a second, gone with the executor. The tables are the truth; this is what
would cost a scan of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wfcelery.core.state import Attempt
    from wfcelery.core.values import Json
    from wfcelery.store.changes import RunChange

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0)
MESSAGES: Final = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0)
LOST: Final = "lost"


@dataclass(slots=True)
class Histogram:
    """How often a value fell below which bound; the last number is for all above."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count one value. Clocks of two machines may make it negative: then it is none at all."""
        value = max(value, 0.0)
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def as_json(self) -> dict[str, Json]:
        """Write it for whoever knows the bounds."""
        return {"counts": list(self.counts), "sum": round(self.total, 6)}


class Tally:
    """Shown every batch by the executor. Nothing in it takes longer than counting, or raises."""

    def __init__(self, epoch: int, now: float) -> None:
        self.epoch = epoch
        self.started_at = now
        self.caught_up_at = now
        self.runs_started = 0
        self.runs_ended: Counter[str] = Counter()
        self.steps_ended: Counter[str] = Counter()
        self.retried = 0
        self.lost = 0
        self.events: Counter[str] = Counter()
        self.waited = Histogram(SECONDS)
        self.ran = Histogram(SECONDS)
        self.batch_messages = Histogram(MESSAGES)
        self.batch_seconds = Histogram(SECONDS)

    def see(self, written: Sequence[RunChange]) -> None:
        """Count what a batch has changed; it is committed."""
        for change in written:
            before, after = change.before, change.after
            if before is None:
                self.runs_started += 1
            if not after.is_live and (before is None or before.is_live):
                self.runs_ended[after.status.value] += 1
            for event in change.events:
                self.events[event.type] += 1
            for write in change.writes.values():
                if write.before is None and write.after.attempt > 1:
                    self.retried += 1
                if not write.after.is_open and (write.before is None or write.before.is_open):
                    self._end(write.after)

    def took(self, messages: int, seconds: float) -> None:
        """Count one batch that held messages."""
        if messages:
            self.batch_messages.add(messages)
            self.batch_seconds.add(seconds)

    def as_json(self, now: float) -> dict[str, Json]:
        """Write everything, as of now."""
        return {
            "epoch": self.epoch,
            "started_at": self.started_at,
            "at": now,
            "caught_up_at": self.caught_up_at,
            "runs_started": self.runs_started,
            "runs_ended": _plain(self.runs_ended),
            "steps_ended": _plain(self.steps_ended),
            "retried": self.retried,
            "lost": self.lost,
            "events": _plain(self.events),
            "waited": self.waited.as_json(),
            "ran": self.ran.as_json(),
            "batch_messages": self.batch_messages.as_json(),
            "batch_seconds": self.batch_seconds.as_json(),
        }

    def _end(self, attempt: Attempt) -> None:
        self.steps_ended[attempt.status.value] += 1
        if attempt.error is not None and attempt.error.type == LOST:
            self.lost += 1
        if attempt.started_at is not None:
            if attempt.ready_at is not None:
                self.waited.add(attempt.started_at - attempt.ready_at)
            if attempt.completed_at is not None:
                self.ran.add(attempt.completed_at - attempt.started_at)


def _plain(counter: Mapping[str, int]) -> dict[str, Json]:
    return dict(counter)
