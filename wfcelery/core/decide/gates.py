"""Who may decide a gate, when it is decided, and what happens while nobody does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wfcelery.core import gate_clock
from wfcelery.core.decide import endings, notices
from wfcelery.core.decide.attempts import finish
from wfcelery.core.decide.draft import Draft
from wfcelery.core.decide.notices import votes_at
from wfcelery.core.effects import CastVote
from wfcelery.core.flow import Flow, Gate, Label, OnTimeout
from wfcelery.core.messages import Answer, Decide, Kind, Principal
from wfcelery.core.schemas import problems
from wfcelery.core.state import Attempt, Error, Run, StepStatus, Vote
from wfcelery.core.values import Json

_TIMEOUT = "timeout"
_FORBIDDEN = "forbidden"
_INCOMPLETE = "invalid-input"
_CONFLICT = "refused"
_ALLOW = "`allow_self: true` in the gate would allow it"


class Objection(NamedTuple):
    """Why somebody may not decide a gate; `code` as in `Answer`."""

    reason: str
    code: str


def objection(flow: Flow, gate: Gate, run: Run, attempt: Attempt, request: Decide) -> Objection | None:
    """Say why this request may not decide this gate, or None if it may."""
    objected = objection_to(flow, gate, run, attempt, request.by)
    if objected is not None:
        return objected
    if gate.require_comment and not request.comment.strip():
        return Objection(f"{attempt.name} asks for a comment; give one", _INCOMPLETE)
    if gate.form is not None and request.approve:
        wrong = _asked(gate.form) if request.form is None else problems(gate.form, request.form)
        if wrong:
            return Objection(f"the form of {attempt.name} is not filled in: {wrong[0]}", _INCOMPLETE)
    return None


def objection_to(flow: Flow, gate: Gate, run: Run, attempt: Attempt, by: Principal) -> Objection | None:
    """Say why somebody may not decide this gate, whatever they would say; None if they may."""
    if by.kind is not Kind.PERSON:
        return Objection(f"{by.id} is an {by.kind.value}; only a person may decide a gate", _FORBIDDEN)
    allowed = approvers(gate, attempt)
    if allowed and not _is_among(by, allowed):
        waits = f"it waits for {', '.join(allowed)}"
        return Objection(f"{by.id} is not an approver of {attempt.name}; {waits}", _FORBIDDEN)
    part = _own_part(flow, run, by.id)
    if part and not gate.allow_self and not by.at_terminal:
        reason = f"{by.id} {part} and may not decide its gate {attempt.name} ({_ALLOW})"
        return Objection(reason, _FORBIDDEN)
    if any(vote.voter == by.id for vote in votes_at(run, attempt)):
        return Objection(f"{by.id} has already voted at {attempt.name}", _CONFLICT)
    return None


def approvers(gate: Gate, attempt: Attempt) -> tuple[str, ...]:
    """Name those who may decide; nobody is named where every person may."""
    # Escalation adds approvers: where anybody may decide, it must not narrow that to those it adds.
    return gate.approvers + (gate.escalate_to if attempt.escalated and gate.approvers else ())


def vote(draft: Draft, gate: Gate, attempt: Attempt, request: Decide) -> Answer:
    """Count one person's word: one deny denies, a quorum approves."""
    objected = objection(draft.flow, gate, draft.run, attempt, request)
    if objected is not None:
        return Answer(ok=False, reason=objected.reason, code=objected.code)
    cast = Vote(attempt.name, attempt.attempt, request.by.id, request.approve, request.comment, request.form)
    draft.run = draft.run._replace(votes=(*draft.run.votes, cast))
    draft.effects.append(
        CastVote(draft.run.id, cast.step, cast.attempt, cast.voter, cast.approve, cast.comment, cast.form)
    )
    said: dict[str, Json] = {"via": request.via} if request.via else {}
    draft.note("vote_cast", attempt, request.by.id, approve=cast.approve, comment=cast.comment, **said)
    if not request.approve:
        _deny(draft, gate, attempt, request.by.id, request.comment)
        return Answer(ok=True, data={"decided": True, "approved": False})
    votes = votes_at(draft.run, attempt)
    if len(votes) < gate.quorum:
        return Answer(ok=True, data={"decided": False, "votes": len(votes), "quorum": gate.quorum})
    _approve(draft, gate, attempt, [vote.voter for vote in votes], cast)
    return Answer(ok=True, data={"decided": True, "approved": True})


def ring(draft: Draft, gate: Gate, attempt: Attempt) -> None:
    """The clock has come to the gate: its time is up, or those who have not answered are reminded, once."""
    deadline = gate_clock.deadline(gate, attempt)
    if deadline is not None and deadline <= draft.now:
        _time_out(draft, gate, attempt)
        return
    coming = attempt._replace(due_at=gate_clock.due(gate, attempt, draft.now))
    draft.move(coming, "gate_reminded")
    notices.gate_reminder(draft, gate, attempt)


def _time_out(draft: Draft, gate: Gate, attempt: Attempt) -> None:
    """Nobody answered in time: deny, approve where the flow says so, or ask others once more."""
    if gate.on_timeout is OnTimeout.ESCALATE and not attempt.escalated and gate.escalate_to:
        escalated = attempt._replace(escalated=True, ready_at=draft.now)
        escalated = escalated._replace(due_at=gate_clock.due(gate, escalated, draft.now))
        draft.move(escalated, "gate_escalated", actor=_TIMEOUT)
        notices.gate_escalated(draft, gate, escalated)
    elif gate.on_timeout is OnTimeout.APPROVE:
        _approve(draft, gate, attempt, [_TIMEOUT])
    else:
        _deny(draft, gate, attempt, _TIMEOUT, "nobody decided in time")


def _approve(draft: Draft, gate: Gate, attempt: Attempt, by: list[str], last: Vote | None = None) -> None:
    comment, form = ("", None) if last is None else (last.comment, last.form)
    notices.gate_decided(draft, gate, attempt, approved=True, by=list(by), comment=comment)
    result: dict[str, Json] = {"approved": True, "by": list(by), "comment": comment, "form": form}
    passed = (
        draft.results.get(attempt.name) if gate.pass_result else _with_votes(draft, gate, attempt, result)
    )
    finish(draft, attempt, passed, actor=by[-1])


def _deny(draft: Draft, gate: Gate, attempt: Attempt, by: str, comment: str) -> None:
    result: dict[str, Json] = {"approved": False, "by": [by], "comment": comment, "form": None}
    cancels = draft.step_of(attempt).edge(Label.DENY) is None
    told: dict[str, Json] = {"cancelled": True} if cancels else {}
    notices.gate_decided(draft, gate, attempt, approved=False, by=[by], comment=comment, **told)
    if not cancels:
        result = _with_votes(draft, gate, attempt, result)
        finish(draft, attempt, result, actor=by, choice=Label.DENY.value)
        return
    said = f": {comment}" if comment else ""
    error = Error("denied", f"{attempt.name} was denied by {by}{said}")
    denied = attempt._replace(
        status=StepStatus.FAILED, waits_for=None, due_at=None, completed_at=draft.now, error=error
    )
    draft.move(denied, "step_failed", actor=by)
    endings.cancel_run(draft, error, by)


def _with_votes(draft: Draft, gate: Gate, attempt: Attempt, result: dict[str, Json]) -> dict[str, Json]:
    """Where several must approve, keep what each wrote: `comment` and `form` are those of the last."""
    if gate.quorum > 1:
        result["votes"] = [
            {"by": vote.voter, "approved": vote.approve, "comment": vote.comment, "form": vote.form}
            for vote in votes_at(draft.run, attempt)
        ]
    return result


def _own_part(flow: Flow, run: Run, person: str) -> str:
    """Say what somebody has to do with the run, so that another must decide; empty if nothing."""
    if person == run.created_by:
        return "started this run"
    return "defined this flow" if flow.author and person == flow.author else ""


def _is_among(by: Principal, allowed: tuple[str, ...]) -> bool:
    return by.id in allowed or any(f"group:{group}" in allowed for group in by.groups)


def _asked(form: Mapping[str, Json]) -> list[str]:
    """Say what a form asks for that nobody has seen; nothing if it takes an empty one."""
    fields = form.get("properties")
    if not problems(form, None) or not isinstance(fields, Mapping) or not fields:
        return problems(form, None)
    return [f"it asks for {', '.join(sorted(fields))}"]
