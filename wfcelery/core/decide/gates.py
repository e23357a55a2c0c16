"""Who may decide a gate, and when it is decided."""

from __future__ import annotations

from wfcelery.core.decide import endings
from wfcelery.core.decide.attempts import finish
from wfcelery.core.decide.draft import Draft
from wfcelery.core.flow import Gate, Label, OnTimeout
from wfcelery.core.messages import Answer, CastVote, Decide, Kind, Principal
from wfcelery.core.schemas import problems
from wfcelery.core.state import Attempt, Error, Run, StepStatus, Vote
from wfcelery.core.values import Json


def objection(gate: Gate, run: Run, attempt: Attempt, request: Decide) -> str | None:
    """Say why this request may not decide this gate, or None if it may."""
    by = request.by
    if by.kind is not Kind.PERSON:
        return f"{by.id} is an {by.kind.value}; only a person may decide a gate"
    # Escalation adds approvers: where anybody may decide, it must not narrow that to those it adds.
    added = gate.escalate_to if attempt.escalated and gate.approvers else ()
    allowed = gate.approvers + added
    if allowed and not _is_among(by, allowed):
        return f"{by.id} is not an approver of {attempt.name}; it waits for {', '.join(allowed)}"
    if by.id == run.created_by and not gate.allow_self and not by.at_terminal:
        return f"{by.id} started this run and may not decide its gate {attempt.name}"
    if gate.require_comment and not request.comment.strip():
        return f"{attempt.name} asks for a comment; give one"
    if gate.form is not None and request.approve:
        wrong = problems(gate.form, request.form)
        if wrong:
            return f"the form of {attempt.name} is not filled in: {wrong[0]}"
    if any(vote.voter == by.id for vote in _votes(run, attempt)):
        return f"{by.id} has already voted at {attempt.name}"
    return None


def vote(draft: Draft, gate: Gate, attempt: Attempt, request: Decide) -> Answer:
    """Count one person's word: one deny denies, a quorum approves."""
    reason = objection(gate, draft.run, attempt, request)
    if reason is not None:
        return Answer(ok=False, reason=reason)
    cast = Vote(attempt.name, attempt.attempt, request.by.id, request.approve, request.comment, request.form)
    draft.run = draft.run._replace(votes=(*draft.run.votes, cast))
    draft.effects.append(
        CastVote(draft.run.id, cast.step, cast.attempt, cast.voter, cast.approve, cast.comment, cast.form)
    )
    draft.note("vote_cast", attempt, request.by.id, approve=cast.approve, comment=cast.comment)
    if not request.approve:
        _deny(draft, attempt, request.by.id, request.comment)
        return Answer(ok=True, data={"decided": True, "approved": False})
    votes = _votes(draft.run, attempt)
    if len(votes) < gate.quorum:
        return Answer(ok=True, data={"decided": False, "votes": len(votes), "quorum": gate.quorum})
    _approve(draft, attempt, [vote.voter for vote in votes], request.comment, request.form)
    return Answer(ok=True, data={"decided": True, "approved": True})


def time_out(draft: Draft, gate: Gate, attempt: Attempt) -> None:
    """Nobody answered in time: deny, approve where the flow says so, or ask others once more."""
    if gate.on_timeout is OnTimeout.ESCALATE and not attempt.escalated and gate.escalate_to:
        due_at = round(draft.now + (gate.timeout_s or 0.0), 3)
        draft.move(attempt._replace(escalated=True, due_at=due_at), "gate_escalated", actor="timeout")
    elif gate.on_timeout is OnTimeout.APPROVE:
        _approve(draft, attempt, ["timeout"], "", None)
    else:
        _deny(draft, attempt, "timeout", "nobody decided in time")


def _approve(draft: Draft, attempt: Attempt, by: list[str], comment: str, form: Json) -> None:
    result: Json = {"approved": True, "by": by, "comment": comment, "form": form}
    finish(draft, attempt, result, actor=by[-1])


def _deny(draft: Draft, attempt: Attempt, by: str, comment: str) -> None:
    result: Json = {"approved": False, "by": [by], "comment": comment, "form": None}
    if draft.step_of(attempt).edge(Label.DENY) is not None:
        finish(draft, attempt, result, actor=by, choice=Label.DENY.value)
        return
    said = f": {comment}" if comment else ""
    error = Error("denied", f"{attempt.name} was denied by {by}{said}")
    denied = attempt._replace(
        status=StepStatus.FAILED, waits_for=None, due_at=None, completed_at=draft.now, error=error
    )
    draft.move(denied, "step_failed", actor=by)
    endings.cancel_run(draft, error, by)


def _votes(run: Run, attempt: Attempt) -> list[Vote]:
    return [vote for vote in run.votes if vote.step == attempt.name and vote.attempt == attempt.attempt]


def _is_among(by: Principal, allowed: tuple[str, ...]) -> bool:
    return by.id in allowed or any(f"group:{group}" in allowed for group in by.groups)
