"""What a notice says: a title and a body, plain text both, a pure function of what is known.

What is ours stands at the beginning of a line and before all that is not ours: whoever writes a comment, an
argument or the name of a flow cannot write a line of the notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from wfcelery.core.decide.notices import votes_at
from wfcelery.core.effects import NoticeKind
from wfcelery.core.flow import Call, Foreach, Gate, OnTimeout, SubFlow
from wfcelery.core.values import Json
from wfcelery.notify import words
from wfcelery.notify.facts import Facts
from wfcelery.store.notices import Notice

MOST_LINES: Final = 20
"""Arguments that are shown of one step, and steps that are shown of what follows."""


_CLOCK: Final = "timeout"
"""Who has decided when nobody has."""


@dataclass(frozen=True, slots=True)
class Text:
    """What is sent."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Ways:
    """How to answer: a link of one's own, good until a moment, and the page of the run. Or neither."""

    link: str | None = None
    link_until: float | None = None
    console: str | None = None


def text_of(notice: Notice, facts: Facts, ways: Ways) -> Text:
    """Write a notice for one recipient."""
    kind = NoticeKind(notice.kind)
    about = f"{words.name(notice.step)} of {words.name(facts.flow.name)}" if notice.step else ""
    match kind:
        case NoticeKind.GATE_OPENED:
            word = "Waits for a decision" if ways.link is None else "Please decide"
            return _asking(f"{word}: {about}", "asks for an approval", facts, ways)
        case NoticeKind.GATE_REMINDER:
            return _asking(f"Still to be decided: {about}", "still waits for an approval", facts, ways)
        case NoticeKind.GATE_ESCALATED:
            said = "asks you, too, for an approval: nobody has decided in time"
            return _asking(f"Nobody decided yet: {about}", said, facts, ways)
        case NoticeKind.GATE_DECIDED:
            return _decided(notice, about, facts, ways)
        case NoticeKind.RUN_FAILED:
            return _failed(notice, facts, ways)
        case NoticeKind.RUN_FINISHED:
            return _finished(facts, ways)


def moment(at: float) -> str:
    """Write a moment to the minute, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _asking(title: str, asks: str, facts: Facts, ways: Ways) -> Text:
    gate = facts.gate or Gate()
    first = [f"{words.name(facts.run.created_by)} {asks}."]
    link = []
    if ways.link is not None:
        until = "" if ways.link_until is None else f" It is good until {moment(ways.link_until)}."
        alone = f"This link is for you alone: whoever has it can decide in your name.{until}"
        link = ["Look at it and decide here:", ways.link, alone]
    about = _head(facts, ways)
    if facts.attempt is not None:
        about += _step(facts, facts.attempt.name)
    about += [f"It waits for: {', '.join(map(words.name, gate.approvers))}"] if gate.approvers else []
    about += _votes(facts, gate)
    if facts.deadline is not None:
        about.append(f"Without a decision until {moment(facts.deadline)}, {_after(gate, facts)}.")
    if ways.link is None and ways.console is None and facts.attempt is not None:
        which = f"{facts.run.id} {facts.attempt.name}"
        about.append(f"`wfcelery approve {which}` approves it, `wfcelery deny {which}` denies it.")
    return Text(title, _body(first, link, about, _following(facts)))


def _decided(notice: Notice, about: str, facts: Facts, ways: Ways) -> Text:
    data = notice.data
    word = "approved" if data.get("approved") else "denied"
    said = f"{words.name(notice.step or '')} was {word}"
    by = data.get("by")
    people = [str(each) for each in by] if isinstance(by, list) else []
    if people == [_CLOCK]:
        lines = [f"{said}, for nobody decided in time."]
    else:
        lines = [f"{said} by {', '.join(map(words.name, people))}." if people else f"{said}."]
        comment = data.get("comment")
        lines += [f"Comment: {words.remark(str(comment))}"] if comment else []
    lines += ["With that, the run is cancelled."] if data.get("cancelled") else []
    return Text(f"{word.capitalize()}: {about}", _body(lines, _head(facts, ways)))


def _failed(notice: Notice, facts: Facts, ways: Ways) -> Text:
    kind, message = (str(notice.data.get(each) or "") for each in ("type", "message"))
    why = [f"Error: {words.name(kind)}: {words.remark(message)}"] if kind else []
    title = f"Failed: {words.name(facts.flow.name)}"
    return Text(title, _body(["The run has failed.", *why], _head(facts, ways)))


def _finished(facts: Facts, ways: Ways) -> Text:
    title = f"Finished: {words.name(facts.flow.name)}"
    return Text(title, _body(["The run is completed."], _head(facts, ways)))


def _body(*parts: list[str]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _head(facts: Facts, ways: Ways) -> list[str]:
    run = facts.run
    lines = [
        f"Flow: {words.name(facts.flow.name)}, version {facts.version}",
        f"Run: {run.id}, started by {words.name(run.created_by)} at {moment(run.created_at)}",
    ]
    lines += [f"Key: {words.name(run.key)}"] if run.key else []
    lines += [f"Console: {ways.console}"] if ways.console else []
    return lines


def _step(facts: Facts, name: str) -> list[str]:
    description = facts.flow.steps[name].description.strip()
    return [f"Step: {words.name(name)}" + (f" ({words.remark(description)})" if description else "")]


def _votes(facts: Facts, gate: Gate) -> list[str]:
    if gate.quorum == 1 or facts.attempt is None:
        return []
    so_far = ", ".join(words.name(vote.voter) for vote in votes_at(facts.run, facts.attempt)) or "nobody"
    return [f"It takes {gate.quorum} approvals; so far: {so_far}"]


def _after(gate: Gate, facts: Facts) -> str:
    if gate.on_timeout is OnTimeout.APPROVE:
        return "it is approved"
    is_escalated = facts.attempt is not None and facts.attempt.escalated
    if gate.on_timeout is OnTimeout.ESCALATE and gate.escalate_to and not is_escalated:
        return f"{', '.join(map(words.name, gate.escalate_to))} will be asked, too"
    return "it is denied"


def _following(facts: Facts) -> list[str]:
    """Show what runs after the gate, with the arguments that were frozen when it opened."""
    if not isinstance(facts.shown, Mapping) or not facts.shown:
        return []
    lines = ["What runs once it is approved:"]
    steps = list(facts.shown.items())
    for name, shown in steps[:MOST_LINES]:
        args = shown.get("args") if isinstance(shown, Mapping) else shown
        lines += [f"  {words.name(name)}{_does(facts, name)}", *(f"    {line}" for line in _arguments(args))]
    if len(steps) > MOST_LINES:
        lines.append(f"  ... and {len(steps) - MOST_LINES} more steps")
    return lines


def _does(facts: Facts, name: str) -> str:
    step = facts.flow.steps.get(name)
    match None if step is None else step.action:
        case Call(tool=tool) | Foreach(body=Call(tool=tool)):
            return f": calls {words.name(tool)}"
        case SubFlow(name=flow) | Foreach(body=SubFlow(name=flow)):
            return f": runs {words.name(flow)}"
        case _:
            return ""


def _arguments(args: Json) -> Iterator[str]:
    if not isinstance(args, Mapping):
        if args is not None:
            yield words.value(args)
        return
    for name in list(args)[:MOST_LINES]:
        yield f"{words.name(name)} = {words.value(args[name])}"
    if len(args) > MOST_LINES:
        yield f"... and {len(args) - MOST_LINES} more arguments"
