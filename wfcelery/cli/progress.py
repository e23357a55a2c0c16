"""What a run is doing, as lines for people: one for each step, kept up to date by every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from wfcelery.cli.output import brief
from wfcelery.core import ids
from wfcelery.core.state import NO_ITEM, PEOPLE, Attempt, StepStatus, WaitsFor
from wfcelery.insight.standing import kind_of_status

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow
    from wfcelery.core.state import Run
    from wfcelery.store.changes import RunChange

FlowOf: TypeAlias = Callable[[str], "Flow"]

_ACTIVE: Final = (StepStatus.READY, StepStatus.RUNNING)
_TIMED: Final = (WaitsFor.TIME, WaitsFor.RETRY)
_OUTSIDE: Final = PEOPLE | {WaitsFor.REPORT}
_WAITS: Final = {
    WaitsFor.JOIN: ("waiting", ""),
    WaitsFor.APPROVAL: ("gate", "waits for approval"),
    WaitsFor.SIGNAL: ("gate", "waits for a signal"),
    WaitsFor.TIME: ("timer", "goes on"),
    WaitsFor.RETRY: ("timer", "retry"),
    WaitsFor.ITEMS: ("running", ""),
    WaitsFor.FLOW: ("running", ""),
    WaitsFor.REPORT: ("waiting", "waits for its result to be reported"),
    WaitsFor.PERSON: ("gate", "its worker vanished; waits for a person"),
}
FAILURES_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class Line:
    """A step as it stands: `kind` names its sign, `due_at` is when it goes on by itself."""

    path: str
    kind: str
    said: str = ""
    due_at: float | None = None

    def text(self, now: float) -> str:
        """Write what stands after the sign."""
        said = self.said
        if self.due_at is not None:
            said = f"{said} in {span(max(0.0, self.due_at - now))}"
        return f"{self.path}  {said}".rstrip()


@dataclass(slots=True)
class _Step:
    """What is known of one step: its newest attempt, and the newest of each item of a foreach by status."""

    path: str
    definition_id: str
    newest: Attempt | None = None
    total: int = 0
    items: dict[int, StepStatus] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    failures_told: int = 0


class Progress:
    """The steps of a run and of its sub-runs, in the order in which they appeared."""

    def __init__(self, root: str, flow_of: FlowOf) -> None:
        self.root = root
        self._flow_of = flow_of
        self._steps: dict[tuple[str, str], _Step] = {}
        self._open: dict[tuple[str, str, int], Attempt] = {}
        self._paths: dict[str, str | None] = {root: ""}
        self._is_held = False

    @property
    def is_moving(self) -> bool:
        """Tell whether anything will go on by itself: a step under way, a retry or delay that comes due."""
        if self._is_held:
            return any(each.status is StepStatus.RUNNING for each in self._open.values())
        return any(each.status in _ACTIVE or each.waits_for in _TIMED for each in self._open.values())

    @property
    def waits_for_people(self) -> bool:
        """Tell whether the run is held, or anything waits for a person, a signal or a report."""
        return self._is_held or any(each.waits_for in _OUTSIDE for each in self._open.values())

    def seed(self, runs: Iterable[Run]) -> None:
        """Take in runs that began earlier; parents before their sub-runs."""
        for run in runs:
            self.note(run, run.attempts.values())

    def take(self, changes: Iterable[RunChange]) -> list[Line]:
        """Take in what a batch has changed; give the lines that tell of it."""
        told = []
        for change in changes:
            told += self.note(change.after, (write.after for write in change.writes.values()))
        return told

    def note(self, run: Run, attempts: Iterable[Attempt]) -> list[Line]:
        """Take in attempts of a run that have changed; give the lines that tell of it."""
        self._look(run)
        return [line for each in attempts if (line := self._take(run, each)) is not None]

    def lines(self) -> list[Line]:
        """Give every step as it stands."""
        return [line for step in self._steps.values() if (line := self._line(step)) is not None]

    def _look(self, run: Run) -> None:
        if run.id == self.root:
            self._is_held = run.held

    def _take(self, run: Run, attempt: Attempt) -> Line | None:
        place = (run.id, attempt.name, attempt.item)
        if attempt.is_open:
            self._open[place] = attempt
        else:
            known = self._open.get(place)
            if known is not None and known.attempt <= attempt.attempt:
                del self._open[place]
        path = self._path(run)
        if path is None:
            return None
        step = self._steps.setdefault(
            (run.id, attempt.name), _Step(f"{path}{attempt.name}", run.definition_id)
        )
        if attempt.item != NO_ITEM:
            return self._count(run, step, attempt)
        before = step.newest
        if before is not None and before.attempt > attempt.attempt:
            return _failure(step.path, attempt)
        step.newest = attempt
        if attempt.waits_for is WaitsFor.ITEMS and attempt.name in run.loops:
            step.total = len(run.loops[attempt.name].items)
        if before is not None and _same(before, attempt):
            return None
        return self._line(step)

    def _count(self, run: Run, step: _Step, attempt: Attempt) -> Line | None:
        before = step.items.get(attempt.item)
        if before is not None:
            step.counts[before] -= 1
        step.items[attempt.item] = attempt.status
        step.counts[attempt.status] += 1
        if attempt.name in run.loops:
            step.total = len(run.loops[attempt.name].items)
        if attempt.status is StepStatus.FAILED and step.failures_told < FAILURES_TOLD:
            step.failures_told += 1
            return _failure(f"{step.path}[{attempt.item}]", attempt)
        return None

    def _path(self, run: Run) -> str | None:
        """Say what stands before the names of a run's steps; None for items: they are counted."""
        if run.id not in self._paths:
            parent = run.parent
            above = self._paths.get(parent.run_id) if parent is not None else None
            hidden = parent is None or above is None or parent.item != NO_ITEM
            self._paths[run.id] = None if hidden or parent is None else f"{above}{parent.step} / "
        return self._paths[run.id]

    def _line(self, step: _Step) -> Line | None:
        attempt = step.newest
        if attempt is None:
            return None
        if attempt.status is StepStatus.PENDING and attempt.waits_for is not None:
            kind, said = _WAITS[attempt.waits_for]
            if attempt.waits_for is WaitsFor.RETRY:
                return Line(step.path, kind, f"retry {self._tries(attempt, step)}", attempt.due_at)
            due_at = attempt.due_at if attempt.waits_for is WaitsFor.TIME else None
            if attempt.waits_for is WaitsFor.ITEMS:
                said = _tally(step)
            return Line(step.path, kind, said, due_at)
        if attempt.status is StepStatus.FAILED:
            return _failure(step.path, attempt)
        return Line(step.path, kind_of_status(attempt.status), _ending(attempt, step))

    def _tries(self, attempt: Attempt, step: _Step) -> str:
        most = self._flow_of(step.definition_id).steps[attempt.name].retry.max_attempts
        return f"{attempt.tries + 1}/{most}"


def child_ids(run: Run) -> list[str]:
    """Name the sub-runs that a run waits for."""
    return [
        ids.child_id(run.id, each.name, each.item, each.attempt)
        for each in run.attempts.values()
        if each.waits_for is WaitsFor.FLOW
    ]


def span(seconds: float) -> str:
    """Write a length of time as people say it."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 100:  # noqa: PLR2004 - seconds are read easily up to here
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:  # noqa: PLR2004 - and minutes up to here
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"  # noqa: PLR2004 - same


def _failure(path: str, attempt: Attempt) -> Line:
    error = attempt.error
    if error is not None and error.type == "cancelled":
        return Line(path, "cancelled", error.message)
    reason = f"{error.type}: {error.message}" if error is not None else "failed"
    which = f"attempt {attempt.attempt}: " if attempt.attempt > 1 else ""
    return Line(path, "failed", which + brief(reason, 200))


def _ending(attempt: Attempt, step: _Step) -> str:
    if attempt.status is not StepStatus.DONE:
        return f"attempt {attempt.attempt}" if attempt.attempt > 1 and attempt.is_open else ""
    began = attempt.started_at or attempt.ready_at
    took = span(attempt.completed_at - began) if began and attempt.completed_at else ""
    return "  ".join(part for part in (_tally(step), took) if part)


def _tally(step: _Step) -> str:
    if not step.total:
        return ""
    counts = step.counts
    parts = [f"{counts[StepStatus.DONE]}/{step.total} done"]
    out = counts[StepStatus.READY] + counts[StepStatus.RUNNING] + counts[StepStatus.PENDING]
    parts += [f"{out} under way"] if out else []
    parts += [f"{counts[StepStatus.FAILED]} failed"] if counts[StepStatus.FAILED] else []
    return ", ".join(parts)


def _same(before: Attempt, after: Attempt) -> bool:
    """Tell whether nothing has changed that people are told of: to be handed over is still to run."""
    if before.attempt != after.attempt:
        return False
    if before.status in _ACTIVE and after.status in _ACTIVE:
        return True
    return (before.status, before.waits_for, before.due_at) == (after.status, after.waits_for, after.due_at)
