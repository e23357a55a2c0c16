"""Gates in words: what a denial does, what the clock does, what has happened, what is not as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfcelery.core import values
from wfcelery.core.flow import (
    Call,
    Delay,
    Edge,
    Flow,
    Foreach,
    Gate,
    Label,
    OnTimeout,
    Pass,
    Step,
    SubFlow,
    Until,
    Wait,
)
from wfcelery.core.state import Attempt, Run, StepStatus
from wfcelery.core.values import Json
from wfcelery.core.words import visible
from wfcelery.insight.reasons import about

if TYPE_CHECKING:
    from wfcelery.insight.gate_view import Ending
    from wfcelery.store.gates import GateVote, PastStep

MOST_CHANGES: Final = 20
WIDTH: Final = 120


@dataclass(frozen=True, slots=True)
class Past:
    """A step that ended before: what it did, how it ended, and in short what came of it."""

    step: str
    attempt: int
    what: str
    status: str
    at: float | None
    said: str


@dataclass(frozen=True, slots=True)
class Change:
    """One place of the arguments that is not as it was; None: it was not there, or is no more."""

    place: str
    before: str | None
    after: str | None


def on_deny(step: Step, run: Run) -> str:
    """Say what a denial does."""
    way = step.edge(Label.DENY)
    if way is not None:
        return f"the run goes on with {way.target}"
    return f"the run is cancelled, and {run.created_by} is told"


def on_timeout(step: Step, gate: Gate, attempt: Attempt, run: Run) -> str:
    """Say what happens if nobody decides."""
    if gate.timeout_s is None:
        return "it waits until somebody decides"
    denied = f"it is denied: {on_deny(step, run)}"
    match gate.on_timeout:
        case OnTimeout.APPROVE:
            return "it is approved without anybody"
        case OnTimeout.ESCALATE if gate.escalate_to and not attempt.escalated:
            more = "are asked, too" if len(gate.escalate_to) > 1 else "is asked, too"
            again = f"after another {about(gate.timeout_s)} {denied}"
            return f"{', '.join(gate.escalate_to)} {more}; {again}"
        case _:
            return denied


def state(step: str, word: str, ending: Ending | None) -> str:
    """Say that a gate is decided, by whom."""
    if ending is None or not ending.by:
        return f"{step} was {word}"
    if ending.timed_out:
        return f"{step} was {word}, for nobody decided in time"
    return f"{step} was {word} by {', '.join(ending.by)}"


def does(step: Step) -> tuple[str, str]:
    """Say what kind of step it is, and what it calls, runs or waits for."""
    match step.action:
        case Call(tool=tool):
            return "tool", tool
        case SubFlow(name=name):
            return "flow", name
        case Foreach(body=Call(tool=tool)):
            return "foreach", tool
        case Foreach(body=SubFlow(name=name)):
            return "foreach", name
        case Gate():
            return "gate", ""
        case Wait(signal=signal):
            return "wait", signal
        case Delay() | Until():
            return "delay", ""
        case Pass():
            return "pass", ""
    return "step", ""


def when(gate: Step, edge: Edge) -> str:
    """Say on which condition a way is taken; empty: always."""
    if edge.label is Label.IF and edge.index < len(gate.conditions):
        return f"if {gate.conditions[edge.index].source}"
    return "otherwise" if edge.label is Label.ELSE else ""


def past(ended: Sequence[PastStep], gate: Attempt, flow: Flow, cast: Sequence[GateVote]) -> tuple[Past, ...]:
    """Tell of the steps that ended before, with the decisions of other gates; the gate itself is left out."""
    told = []
    for each in ended:
        attempt = each.attempt
        step = flow.steps.get(attempt.name)
        if step is None or (attempt.name, attempt.attempt) == (gate.name, gate.attempt):
            continue
        kind, what = does(step)
        said = _decision(attempt, cast) if kind == "gate" else _outcome(each)
        told.append(
            Past(
                attempt.name, attempt.attempt, what or kind, attempt.status.value, attempt.completed_at, said
            )
        )
    return tuple(told)


def _decision(attempt: Attempt, cast: Sequence[GateVote]) -> str:
    own = [
        each.vote for each in cast if (each.vote.step, each.vote.attempt) == (attempt.name, attempt.attempt)
    ]
    if not own:
        return "nobody decided in time" if attempt.status is not StepStatus.CANCELLED else ""
    parts = []
    for vote in own:
        word = "approved" if vote.approve else "denied"
        parts.append(f"{word} by {vote.voter}" + (f": {short(vote.comment, WIDTH)}" if vote.comment else ""))
    return "; ".join(parts)


def _outcome(each: PastStep) -> str:
    error = each.attempt.error
    if error is not None:
        return short(f"{error.type}: {error.message}", WIDTH)
    if each.attempt.status is StepStatus.CANCELLED or each.result in (None, "null"):
        return ""
    return short(each.result, WIDTH)


def changes(before: Json, after: Json) -> tuple[tuple[Change, ...], int]:
    """List the places that differ, and how many more there are."""
    old, new = dict(_leaves(before, "")), dict(_leaves(after, ""))
    places = [place for place in {**old, **new} if old.get(place) != new.get(place)]
    found = tuple(_change(place, old.get(place), new.get(place)) for place in places[:MOST_CHANGES])
    return found, len(places) - len(found)


def short(text: str, width: int = WIDTH) -> str:
    """Write a text in one line, with nothing hidden in it."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _change(place: str, old: str | None, new: str | None) -> Change:
    """Show both texts from where they begin to differ, if that is far behind their beginning."""
    if old is None or new is None:
        return Change(place, None if old is None else short(old), None if new is None else short(new))
    same = next(
        (place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    start = max(0, same - WIDTH // 3)
    cut = "…" if start else ""
    return Change(place, cut + short(old[start:]), cut + short(new[start:]))


def _leaves(value: Json, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            # What is shown of a step are its arguments: the word itself says nothing.
            own = place if key == "args" and place and "." not in place else f"{place}.{key}".lstrip(".")
            yield from _leaves(inner, own)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]")
    elif place:
        yield place, values.canonical(value)
