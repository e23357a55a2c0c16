"""What must be true of one run, given its rows, history and flow. Pure: `check` reads, this judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfcelery.core import fold
from wfcelery.core.flow import Gate, JoinMode, Label, OnTimeout
from wfcelery.core.state import DEAD, KEPT, NO_ITEM, OPEN, Attempt, Run, RunStatus, StepStatus, WaitsFor
from wfcelery.core.values import canonical, digest

if TYPE_CHECKING:
    from wfcelery.core.decide.draft import Event
    from wfcelery.core.flow import Edge, Flow, Step
    from wfcelery.core.fold import Folded, Place
    from wfcelery.core.values import Json


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; `run_id` is empty where it is not about a run. Codes are stable."""

    run_id: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.run_id or 'database'}: {self.code}: {self.message}"


@dataclass(frozen=True, slots=True)
class History:
    """Everything the tables hold of one run; payloads are the stored texts."""

    run: Run
    input: str
    output: str | None
    steps: Sequence[tuple[Attempt, str | None, str | None]]
    events: Sequence[Event]
    votes: Sequence[tuple[str, int, bool]]


_ENDED_BADLY: Final = (RunStatus.FAILED, RunStatus.CANCELLED)
_NOT_BEGUN: Final = (StepStatus.SKIPPED, StepStatus.CANCELLED)


def problems_of(flow: Flow, history: History) -> Iterator[Problem]:
    """List what is wrong with one run."""
    run_id = history.run.id
    folded, found = _folded(history)
    newest: dict[str, Attempt] = {}
    for attempt, _, _ in history.steps:
        if attempt.item == NO_ITEM:
            newest[attempt.name] = attempt
    for code, message in (
        *found,
        *_of_run(history, folded),
        *_of_rows(history, folded),
        *_of_attempts(history),
        *_of_payloads(history, folded),
        *_of_tokens(flow, newest),
        *_of_gates(flow, history),
        *_of_end(flow, history),
    ):
        yield Problem(run_id, code, message)


def _folded(history: History) -> tuple[Folded, list[tuple[str, str]]]:
    """Fold the events, and look at their order on the way."""
    folded, found = fold.empty(), []
    seen: set[tuple[str | None, int, int, str]] = set()
    for expected, event in enumerate(history.events, 1):
        if event.seq != expected:
            found.append(("event-gap", f"event {expected} is missing; the next one is {event.seq}"))
            break
    if len(history.events) != history.run.seq:
        found.append(
            ("event-count", f"the run counts {history.run.seq} events, there are {len(history.events)}")
        )
    for event in history.events:
        if event.transition and event.step is not None:
            place = (event.step, event.item, event.attempt)
            if (*place, event.type) in seen:
                found.append(("event-twice", f"{_named(place)} has {event.type} twice"))
            seen.add((*place, event.type))
            before = folded.attempts.get((event.step, event.item, event.attempt - 1))
            if place not in folded.attempts and before is not None and before["status"] in OPEN:
                found.append(
                    ("attempt-overlap", f"{_named(place)} began before the attempt before it had ended")
                )
        folded.take(event)
    return folded, found


def _of_run(history: History, folded: Folded) -> Iterator[tuple[str, str]]:
    run = history.run
    told = fold.told_of_run(run) | {
        "definition_id": run.definition_id,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    }
    expected = folded.run | {
        "definition_id": folded.definition_id,
        "created_at": folded.created_at,
        "updated_at": folded.updated_at,
    }
    for name, difference in _differences(told, expected):
        yield "run-differs", f"{name} {difference}"


def _of_rows(history: History, folded: Folded) -> Iterator[tuple[str, str]]:
    unseen = set(folded.attempts)
    for attempt, _, _ in history.steps:
        place = _place(attempt)
        expected = folded.attempts.get(place)
        if expected is None:
            yield "row-without-event", f"{_named(place)} is in no event"
            continue
        unseen.discard(place)
        for name, difference in _differences(fold.told_of_attempt(attempt), expected):
            yield "row-differs", f"{_named(place)}: {name} {difference}"
    for place in sorted(unseen):
        yield "event-without-row", f"{_named(place)} is in the events and has no row"


def _differences(told: dict[str, Json], expected: dict[str, Json]) -> Iterator[tuple[str, str]]:
    if told == expected:
        return
    for name, value in told.items():
        if value != expected.get(name):
            yield name, f"is {canonical(value)}, by its events it is {canonical(expected.get(name))}"


def _of_attempts(history: History) -> Iterator[tuple[str, str]]:
    """Look at the rows of each step in turn: they come ordered by item, name and attempt."""
    before: Attempt | None = None
    for attempt, _, _ in history.steps:
        last = before if before is not None and before.key == attempt.key else None
        expected = 1 if last is None else last.attempt + 1
        if attempt.attempt != expected:
            yield "attempt-gap", f"{_named(_place(attempt))} has no attempt {expected} before it"
        if last is not None and last.is_open:
            yield "attempt-open", f"{_named(_place(last))} is {last.status.value}, but another follows it"
        before = attempt


def _of_payloads(history: History, folded: Folded) -> Iterator[tuple[str, str]]:
    texts = [
        ("input", history.input, folded.input_digest),
        ("output", history.output, history.run.output_digest),
    ]
    for attempt, args, result in history.steps:
        step = _named(_place(attempt))
        texts += [
            (f"args of {step}", args, attempt.args_digest),
            (f"result of {step}", result, attempt.result_digest),
        ]
    for what, text, expected in texts:
        if (None if text is None else digest(text)) != expected:
            yield "payload-changed", f"the {what} is not what its digest says"


def _of_tokens(flow: Flow, newest: dict[str, Attempt]) -> Iterator[tuple[str, str]]:
    """Compare what each step did with the tokens on its ways in."""
    for name, attempt in newest.items():
        step = flow.steps.get(name)
        if step is None:
            yield "unknown-step", f"the flow has no step {name}"
            continue
        ways = flow.ways_in[name]
        live = sum(_is_live(newest, edge) for edge in ways)
        if attempt.is_open and attempt.waits_for is WaitsFor.JOIN:
            missing = sum(not _is_settled(newest, edge) for edge in ways)
            if (attempt.missing, attempt.live) != (missing, live):
                counted = f"{attempt.missing} missing and {attempt.live} live"
                yield "join-miscounts", f"{name} counts {counted}; there are {missing} and {live}"
        elif ways and _has_begun(attempt) and live < _needed(step):
            yield "begun-without-way", f"{name} has begun with {live} of {_needed(step)} live ways in"


def _needed(step: Step) -> int:
    return step.join_count if step.join_mode is JoinMode.COUNT else 1


def _has_begun(attempt: Attempt) -> bool:
    if attempt.status in _NOT_BEGUN:
        return attempt.args_digest is not None or attempt.result_digest is not None
    return attempt.waits_for is not WaitsFor.JOIN


def _is_live(newest: dict[str, Attempt], edge: Edge) -> bool:
    source = newest.get(edge.source)
    return source is not None and source.took == edge.choice


def _is_settled(newest: dict[str, Attempt], edge: Edge) -> bool:
    source = newest.get(edge.source)
    return source is not None and source.took is not None and not source.took.startswith(KEPT)


def _of_gates(flow: Flow, history: History) -> Iterator[tuple[str, str]]:
    """Look for gates that were passed without the votes they ask for, or the timeout that the flow allows."""
    late = {
        (event.step, event.attempt)
        for event in history.events
        if event.type == "step_done" and event.actor == "timeout"
    }
    for attempt, _, _ in history.steps:
        gate = flow.steps[attempt.name].action if attempt.name in flow.steps else None
        if not isinstance(gate, Gate) or attempt.status is not StepStatus.DONE or attempt.took == DEAD:
            continue
        place = (attempt.name, attempt.attempt)
        words = [approve for step, number, approve in history.votes if (step, number) == place]
        denied = attempt.took == Label.DENY.value
        if place in late and (denied or gate.on_timeout is OnTimeout.APPROVE):
            continue
        if denied and False not in words:
            yield "gate-without-vote", f"{attempt.name} was denied, but no vote says so"
        elif not denied and (words.count(True) < gate.quorum or False in words):
            yield (
                "gate-without-vote",
                f"{attempt.name} was passed with {words.count(True)} of {gate.quorum} votes",
            )


def _of_end(flow: Flow, history: History) -> Iterator[tuple[str, str]]:
    status = history.run.status
    rows = [attempt for attempt, _, _ in history.steps]
    if status is RunStatus.COMPLETED and not any(_reached_done(flow, attempt) for attempt in rows):
        yield "completed-without-done", "the run is completed, but no step with `done: true` is done"
    for attempt in rows:
        waits = attempt.status in (StepStatus.PENDING, StepStatus.READY)
        if (status is RunStatus.COMPLETED and attempt.is_open) or (status in _ENDED_BADLY and waits):
            place = _named(_place(attempt))
            yield "open-after-end", f"the run is {status.value}, but {place} is {attempt.status.value}"


def _reached_done(flow: Flow, attempt: Attempt) -> bool:
    step = flow.steps.get(attempt.name)
    return step is not None and step.done and attempt.status is StepStatus.DONE


def _place(attempt: Attempt) -> Place:
    return attempt.name, attempt.item, attempt.attempt


def _named(place: Place) -> str:
    name, item, attempt = place
    return f"{name if item == NO_ITEM else f'{name}[{item}]'} attempt {attempt}"
