"""What the page of one run shows, from what was read: rows with bars, and the colours of the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfcelery.core.flow import Flow, Foreach
from wfcelery.core.state import DEAD, Attempt, Run, StepStatus
from wfcelery.core.words import brief
from wfcelery.store import run_page
from wfcelery.web import words

if TYPE_CHECKING:
    from wfcelery.store import Connection

OUTCOME: Final = 120
NARROWEST: Final = 1.0
"""The least width of a bar, in percent: what took no time is still to be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of the timeline, in percent of its width: first the waiting, then the work."""

    wait_x: float
    wait_width: float
    work_x: float
    work_width: float


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt as the table shows it."""

    attempt: Attempt
    sign: str
    word: str
    began: float | None
    took: str
    outcome: str
    is_error: bool
    bar: Bar | None
    tally: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """What the drawing is told of a run."""

    statuses: dict[str, str]
    tallies: dict[str, str]
    taken: set[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when the timeline goes."""

    begin: float
    end: float

    @property
    def length(self) -> float:
        """Give its length in seconds."""
        return self.end - self.begin

    def place(self, moment: float) -> float:
        """Give the place of a moment, in percent."""
        return 100.0 * min(1.0, max(0.0, (moment - self.begin) / self.length))


def span_of(run: Run, attempts: Sequence[Attempt], now: float) -> Span:
    """Say from when to when a run went, or goes."""
    ends = [each.completed_at for each in attempts if each.completed_at is not None]
    last = now if run.is_live else max([run.completed_at or run.updated_at, *ends])
    return Span(run.created_at, max(last, run.created_at + 0.001))


def picture(flow: Flow, attempts: Sequence[Attempt], tallies: Mapping[str, str]) -> Picture:
    """Say how each step stands, by its newest attempt, and which ways were gone."""
    newest = {each.name: each for each in attempts}
    taken = {
        (name, edge.id)
        for name, each in newest.items()
        if each.took is not None and each.took != DEAD and name in flow.steps
        for edge in flow.steps[name].edges
        if edge.choice == each.took
    }
    statuses = {name: words.sign_of_step(each) for name, each in newest.items() if name in flow.steps}
    return Picture(statuses, dict(tallies), taken)


def tallies(conn: Connection, flow: Flow, run_id: str, attempts: Sequence[Attempt]) -> dict[str, str]:
    """Count the items of each foreach that has begun: `3/10`, with a plus where nobody counts on."""
    found = {}
    for name in {each.name for each in attempts if each.status is not StepStatus.SKIPPED}:
        if name in flow.steps and isinstance(flow.steps[name].action, Foreach):
            total = run_page.total_items(conn, run_id, name)
            if total is not None:
                counted = run_page.tally(conn, run_id, name)
                done = f"{counted.counts.get('done', 0):,}{'' if counted.is_exact else '+'}"
                found[name] = f"{done}/{total:,}"
    return found


def row(
    flow: Flow, shown: run_page.Shown, opened: float | None, span: Span, now: float, *, tally: str = ""
) -> Row:
    """Make one row. `opened` is when it was first heard of, for those that no worker gets."""
    each = shown.attempt
    asked = each.ready_at or each.sent_at
    began = each.started_at or asked or (None if each.status is StepStatus.SKIPPED else opened)
    ended = each.completed_at if not each.is_open else now
    return Row(
        attempt=each,
        sign=words.sign_of_step(each),
        word=_word(each),
        began=began,
        took="" if began is None or ended is None else words.took(ended - began),
        outcome=_outcome(flow, shown, now),
        is_error=each.error is not None,
        bar=None if began is None or ended is None else _bar(span, asked or began, began, ended),
        tally=tally,
    )


def _word(each: Attempt) -> str:
    sign = words.sign_of_step(each)
    return each.status.value if sign == each.status.value else sign


def _outcome(flow: Flow, shown: run_page.Shown, now: float) -> str:
    each = shown.attempt
    if each.error is not None:
        return brief(f"{each.error.type}: {each.error.message}", OUTCOME)
    if each.is_open:
        told = words.waits_for(flow, each, now) if each.name in flow.steps else ""
        if told:
            return f"waits for {told}"
        return f"on {each.worker}" if each.worker else ""
    if shown.preview is None or each.status is not StepStatus.DONE or shown.preview == "null":
        return ""
    return brief(shown.preview, OUTCOME)


def _bar(span: Span, asked: float, began: float, ended: float) -> Bar:
    start, work, end = span.place(asked), span.place(began), span.place(ended)
    width = max(NARROWEST, end - work)
    work = min(work, 100.0 - width)
    return Bar(round(start, 2), round(max(0.0, work - start), 2), round(work, 2), round(width, 2))
