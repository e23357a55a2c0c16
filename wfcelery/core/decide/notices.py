"""Whom a run tells of what: gates that open, remind, escalate and are decided, and its own end.

Only names go out from here. Who has which address, and who is told in any case, is for others to say: a
notice is sent off even where nobody is named.
"""

from __future__ import annotations

from collections.abc import Iterable

from wfcelery.core.decide.draft import Draft
from wfcelery.core.effects import NoticeKind, Notify
from wfcelery.core.flow import Gate
from wfcelery.core.state import Attempt, Error, Run, Vote
from wfcelery.core.values import Json


def gate_opened(draft: Draft, gate: Gate, attempt: Attempt) -> None:
    """Tell those who are to decide, and those who want to know."""
    _tell_of_gate(draft, NoticeKind.GATE_OPENED, (*gate.approvers, *_told(draft, gate)), attempt)


def gate_escalated(draft: Draft, gate: Gate, attempt: Attempt) -> None:
    """Tell those who are asked now, too."""
    _tell_of_gate(draft, NoticeKind.GATE_ESCALATED, (*gate.escalate_to, *_told(draft, gate)), attempt)


def gate_reminder(draft: Draft, gate: Gate, attempt: Attempt) -> None:
    """Tell those who were asked and have not voted; where nobody is named, those who were told of the gate.

    Of a group nobody can say here who has voted: the names go along.
    """
    voted = [vote.voter for vote in votes_at(draft.run, attempt)]
    asked = (*gate.approvers, *(gate.escalate_to if attempt.escalated else ()))
    if not gate.approvers:
        asked = (*asked, *_told(draft, gate))
    silent = [who for who in asked if who not in voted]
    _tell_of_gate(draft, NoticeKind.GATE_REMINDER, silent, attempt, voted=list(voted))


def gate_decided(draft: Draft, gate: Gate, attempt: Attempt, **verdict: Json) -> None:
    """Tell who started the run how a gate was decided, and by whom."""
    to = (draft.run.created_by, *_told(draft, gate))
    _tell_of_gate(draft, NoticeKind.GATE_DECIDED, to, attempt, **verdict)


def run_failed(draft: Draft, error: Error) -> None:
    """Tell who started the run that it failed; of a sub-run its parent will tell."""
    run = draft.run
    if run.parent is None:
        to = _once((run.created_by, *draft.flow.notify))
        draft.effects.append(Notify(run.id, NoticeKind.RUN_FAILED, to, data=error.as_json()))


def run_finished(draft: Draft) -> None:
    """Tell those who want to know that the run is completed."""
    if draft.run.parent is None:
        draft.effects.append(Notify(draft.run.id, NoticeKind.RUN_FINISHED, draft.flow.notify))


def votes_at(run: Run, attempt: Attempt) -> list[Vote]:
    """List the votes that count at a gate: those that were cast since it opened this time."""
    return [vote for vote in run.votes if vote.step == attempt.name and vote.attempt == attempt.attempt]


def _tell_of_gate(draft: Draft, kind: NoticeKind, to: Iterable[str], attempt: Attempt, **data: Json) -> None:
    draft.effects.append(Notify(draft.run.id, kind, _once(to), attempt.name, attempt.attempt, data))


def _told(draft: Draft, gate: Gate) -> tuple[str, ...]:
    return gate.notify or draft.flow.notify


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
