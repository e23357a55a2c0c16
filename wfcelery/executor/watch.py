"""Alive or lost: the judgement about every step that is out, made from what workers and markers say.

A step waits in its queue until a marker that was sent after it has come back, or until a worker names it: so
long it is never lost. Then somebody must have it. If nobody ever named it, it is lost once every living
worker has spoken since the marker came back, and a round has passed. If somebody named it, it is lost after a
lease in which nobody did, counted from the marker if that came back later. Of a step that was sent again a
worker may hold an earlier copy: that one is named does not say that the last one has left the queue, and only
its marker does.

All moments are watch time (`WatchClock`): it stands still while the broker is silent, so that nobody gets
older by a silence that is not his own. Nothing here knows a clock, a broker or a database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wfcelery.core.messages import StepBegun, StepLost
from wfcelery.core.state import StepRef
from wfcelery.executor.living import Living
from wfcelery.executor.markers import Lines, Marker
from wfcelery.executor.messages import Holding, MarkerSeen, Sign

__all__ = ["Marker", "Standing", "Watch", "WatchClock", "Where"]

LONGEST_TICK_S: Final = 2.0


class WatchClock:
    """Seconds during which the broker was heard and this process ran."""

    def __init__(self) -> None:
        self._watch_time = 0.0
        self._last: float | None = None

    def tick(self, monotonic: float, heard: bool) -> float:  # noqa: FBT001  (part of what is ticked)
        """Let time pass up to `monotonic`, unless the broker was silent; give the watch time.

        A tick adds two seconds at most: a process that was stopped for an hour has heard nobody in it.
        """
        elapsed = 0.0 if self._last is None else monotonic - self._last
        self._last = monotonic
        if heard:
            self._watch_time += min(max(elapsed, 0.0), LONGEST_TICK_S)
        return self._watch_time


class Where(StrEnum):
    """Where a step that is out is, as far as is known."""

    QUEUED = "queued"
    HELD = "held"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a step is: in a `queue`, with a `worker` (running there, if `begun`), or nobody knows.

    `since` is watch time: when it was sent, or first named by that worker.
    """

    where: Where
    queue: str | None = None
    worker: str | None = None
    since: float | None = None
    begun: bool = False


@dataclass(slots=True)
class _Case:
    """A step that has left its queue: a marker has `passed` it, or a worker has `named` it, or both.

    `since` is when this worker named it first; `counted`: its tool was called while this executor was here.
    """

    passed: float | None = None
    named: float | None = None
    since: float | None = None
    worker: str | None = None
    begun: bool = False
    counted: bool = False
    judged: float | None = None


class Watch:
    """Everything that is out, and who is known to have it."""

    def __init__(
        self, epoch: int, *, lease_s: float = 30.0, round_s: float = 5.0, mark_after_s: float = 2.0
    ) -> None:
        self._lease_s = lease_s
        self._round_s = round_s
        self._mark_after_s = mark_after_s
        self._lines = Lines(epoch, mark_after_s)
        self._living = Living(lease_s)
        self._cases: dict[StepRef, _Case] = {}
        self._again: set[StepRef] = set()  # sent more than once, and no marker has passed the last copy
        self._now = 0.0

    def __contains__(self, ref: StepRef) -> bool:
        return ref in self._cases or ref in self._lines

    def __len__(self) -> int:
        return len(self._cases) + len(self._lines)

    def sent(self, steps: Iterable[tuple[StepRef, str, int]], now: float) -> None:
        """Take note of steps that were handed over just now, with queue and priority; each is as new."""
        self._now = now
        for ref, queue, priority in steps:
            if self._cases.pop(ref, None) is not None or ref in self._lines:
                self._again.add(ref)
            self._lines.add(ref, queue, priority, now)

    def found(self, steps: Iterable[tuple[StepRef, str, int]], now: float) -> None:
        """Take over steps from the tables: sent nobody knows when, or never. A marker is due at once."""
        self.sent(steps, now - self._mark_after_s)
        self._now = now

    def found_held(self, ref: StepRef, worker: str, now: float) -> None:
        """Take over that a worker had begun a step that was `found`: it gets a full lease to say so again."""
        self._now = now
        case = self._name(ref, worker, now)
        if case is not None:
            case.begun = True

    def known(self, workers: Iterable[tuple[str, str]], now: float) -> None:
        """Take over the workers of the tables, as name and boot id: they have a lease's time to speak."""
        self._now = now
        for name, boot_id in workers:
            self._living.expect(name, boot_id, now)

    def ended(self, ref: StepRef) -> None:
        """Stop watching a step."""
        self._cases.pop(ref, None)
        self._lines.drop(ref)
        self._again.discard(ref)

    def begun(self, told: StepBegun, now: float) -> None:
        """Take in a worker's own word that it calls a tool, before any holding names the step."""
        self._now = now
        case = self._name(told.ref, told.worker, now)
        if case is not None:
            case.begun = case.counted = True

    def hear(self, sign: Sign, now: float) -> list[StepBegun]:
        """Take in a sign of life; tell of each step when it is named as running for the first time."""
        self._now = now
        match sign:
            case Holding():
                return self._hear_holding(sign, now)
            case MarkerSeen():
                self._hear_marker(sign, now)
                return []

    def markers(self, now: float) -> list[Marker]:
        """Give the markers to send now, after everything that was `sent`."""
        self._now = now
        return self._lines.due(now)

    def flushed(self, now: float) -> None:
        """Take note that the broker was emptied: the markers under way are gone with the rest."""
        self._now = now
        self._lines.flushed()

    def judge(self, now: float) -> list[StepLost]:
        """Give the steps that are lost, after all signs were heard; again only after another lease."""
        self._now = now
        self._living.forget_silent(now)
        round_since = self._living.round_since()
        lost = []
        for ref, case in self._cases.items():
            if self._is_lost(case, now, round_since) and ref not in self._again:
                case.judged = now
                lost.append(StepLost(ref, case.counted, case.begun, self._reason(case), case.worker))
        return lost

    def standing(self, ref: StepRef) -> Standing:
        """Tell where a step is."""
        case = self._cases.get(ref)
        if case is None:
            place = self._lines.place(ref)
            return (
                Standing(Where.UNKNOWN)
                if place is None
                else Standing(Where.QUEUED, place.queue, since=place.since)
            )
        if case.named is None or self._now - case.named >= self._lease_s:
            return Standing(Where.UNKNOWN, begun=case.begun)
        return Standing(Where.HELD, worker=case.worker, since=case.since, begun=case.begun)

    @property
    def living(self) -> tuple[Holding, ...]:
        """What the workers that are alive said last."""
        return self._living.holdings(self._now)

    def _hear_holding(self, holding: Holding, now: float) -> list[StepBegun]:
        if not self._living.hear(holding, now):
            return []
        for ref in holding.reserved:
            self._name(ref, holding.worker, now)
        begun = []
        for ref, started_at in holding.active:
            case = self._name(ref, holding.worker, now)
            if case is not None:
                if not case.begun:
                    begun.append(StepBegun(ref, holding.worker, started_at))
                case.begun = case.counted = True
        for ref in holding.unsent:
            case = self._name(ref, holding.worker, now)
            if case is not None:
                # There is a report, so its tool was called: what must not run twice is not simply sent again.
                case.begun = case.counted = True
        return begun

    def _hear_marker(self, seen: MarkerSeen, now: float) -> None:
        passed = self._lines.came_back(seen)
        if passed is None:
            return
        if seen.worker is not None:
            # A worker that took a marker may have taken steps, and has a lease's time to name them.
            self._living.expect(seen.worker, None, now)
        self._again.difference_update(passed)
        for ref in passed:
            self._case(ref).passed = now

    def _name(self, ref: StepRef, worker: str | None, now: float) -> _Case | None:
        """Note that a worker has a step; None if the step is not out, as when it ended meanwhile."""
        if ref not in self._cases and ref not in self._lines:
            return None
        case = self._case(ref)
        if case.since is None or case.worker != worker:
            case.worker, case.since = worker, now
        case.named = now
        return case

    def _case(self, ref: StepRef) -> _Case:
        case = self._cases.get(ref)
        if case is None:
            case = self._cases[ref] = _Case()
        return case

    def _is_lost(self, case: _Case, now: float, round_since: float) -> bool:
        if case.judged is not None and now - case.judged < self._lease_s:
            return False
        if case.named is not None:
            heard = case.named if case.passed is None else max(case.named, case.passed)
            return now - heard >= self._lease_s
        # At the same moment is not later: the holding may have been written before the marker was taken.
        return case.passed is not None and now - case.passed >= self._round_s and case.passed < round_since

    def _reason(self, case: _Case) -> str:
        if case.named is None:
            return "its message has left the queue, and no worker has it"
        return f"worker {case.worker} had it, and no worker has named it for {self._lease_s:g} s"
