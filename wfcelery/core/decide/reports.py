"""How tools, clocks and sub-runs say that something ended: taken in once, refused with the reason later."""

from __future__ import annotations

from wfcelery.core import values
from wfcelery.core.decide import endings, gates
from wfcelery.core.decide.attempts import abandon, fail, finish, is_needed, launch
from wfcelery.core.decide.begin import begin_run, is_start
from wfcelery.core.decide.draft import Draft
from wfcelery.core.decide.handover import held_by_worker
from wfcelery.core.flow import Gate, Label
from wfcelery.core.messages import ChildEnded, Report, StepDone, StepFailed, StepPostponed, TimerDue
from wfcelery.core.state import Attempt, Error, RunStatus, StepStatus, WaitsFor


def take_report(draft: Draft, report: Report) -> None:
    """Take in how a tool ended, if the report names the current attempt and fence."""
    attempt = held_by_worker(draft, report.ref)
    if attempt is None:
        _refuse(draft, report)
        return
    match report:
        case StepDone():
            finish(
                draft,
                attempt,
                report.result,
                event=report.event,
                worker=report.worker,
                started_at=report.started_at,
            )
        case StepFailed():
            fail(
                draft,
                attempt,
                report.error,
                ancestors=report.ancestors,
                may_retry=report.retry,
                retry_after=report.retry_after,
                worker=report.worker,
                started_at=report.started_at,
            )
        case StepPostponed():
            _postpone(draft, attempt, report)


def _postpone(draft: Draft, attempt: Attempt, report: StepPostponed) -> None:
    limit = draft.step_of(attempt).timeout_s
    waiting = attempt._replace(
        status=StepStatus.PENDING,
        waits_for=WaitsFor.REPORT,
        due_at=None if limit is None else round(draft.now + limit, 3),
        worker=report.worker or attempt.worker,
        started_at=report.started_at or attempt.started_at,
    )
    if is_needed(draft, attempt):
        draft.move(waiting, "step_postponed")
    else:
        abandon(draft, waiting)


def _refuse(draft: Draft, report: Report) -> None:
    """Record a report that comes too late or from nowhere, unless it repeats one that was taken in."""
    ref = report.ref
    attempt = draft.attempts.get((ref.step, ref.item))
    if attempt is not None and (attempt.attempt, attempt.fence) == (ref.attempt, ref.fence):
        if _repeats(attempt, report):
            return
        reason = f"the attempt is already {attempt.status.value}"
    elif attempt is None:
        reason = "the run has no such step open"
    else:
        reason = f"attempt {attempt.attempt} with fence {attempt.fence} is the current one"
    named = Attempt(ref.step, ref.item, ref.attempt) if ref.step in draft.flow.steps else None
    kind = type(report).__name__
    draft.note("report_refused", named, report.worker or "", report=kind, fence=ref.fence, reason=reason)


def _repeats(attempt: Attempt, report: Report) -> bool:
    match report:
        case StepDone():
            return attempt.result_digest == values.digest(values.canonical(report.result))
        case StepFailed():
            return attempt.error == report.error
        case StepPostponed():
            return attempt.waits_for is WaitsFor.REPORT


def ring(draft: Draft, message: TimerDue) -> None:
    """Look at the clock for one pending step; an early or repeated call changes nothing."""
    attempt = draft.attempts.get((message.step, message.item))
    if attempt is None or attempt.attempt != message.attempt or attempt.status is not StepStatus.PENDING:
        return
    if draft.run.held or attempt.due_at is None or attempt.due_at > draft.now:
        return
    step = draft.step_of(attempt)
    match attempt.waits_for:
        case WaitsFor.RETRY:
            launch(draft, attempt, draft.prepared[attempt.key])
        case WaitsFor.TIME if is_start(draft, attempt):
            begin_run(draft, attempt)
        case WaitsFor.TIME:
            finish(draft, attempt, draft.results.get(attempt.name))
        case WaitsFor.APPROVAL if isinstance(step.action, Gate):
            gates.ring(draft, step.action, attempt)
        case WaitsFor.SIGNAL if step.edge(Label.TIMEOUT) is not None:
            finish(draft, attempt, None, actor="timeout", choice=Label.TIMEOUT.value)
        case WaitsFor.SIGNAL:
            fail(draft, attempt, Error("timeout", "the signal did not come in time"), may_retry=False)
        case WaitsFor.REPORT:
            fail(draft, attempt, Error("timeout", f"no report came within {step.timeout_s:g} s"))
        case WaitsFor.FLOW:
            endings.cancel_child(draft, attempt, "it took too long")
            fail(draft, attempt, Error("timeout", f"the sub-run did not end within {step.timeout_s:g} s"))


def take_child(draft: Draft, message: ChildEnded) -> None:
    """Take in how a sub-run ended."""
    ref = message.parent
    attempt = draft.attempts.get((ref.step, ref.item))
    if attempt is None or attempt.attempt != ref.attempt or attempt.waits_for is not WaitsFor.FLOW:
        return
    if message.status is RunStatus.COMPLETED:
        finish(draft, attempt, message.output)
        return
    said = message.error.message if message.error else message.status.value
    kind = "sub-run-failed" if message.status is RunStatus.FAILED else "sub-run-cancelled"
    fail(draft, attempt, Error(kind, said), may_retry=message.status is RunStatus.FAILED)
