"""How a run ends, and what happens to the steps that are open then."""

from __future__ import annotations

from collections.abc import Container

from wfcelery.core import ids, values
from wfcelery.core.decide import notices
from wfcelery.core.decide.draft import Draft
from wfcelery.core.decide.scope import scope_of
from wfcelery.core.effects import CancelChild, StopStep, TellParent
from wfcelery.core.messages import ChildEnded
from wfcelery.core.state import DEAD, NO_ITEM, Attempt, Error, RunStatus, StepStatus, WaitsFor
from wfcelery.core.values import Json
from wfcelery.errors import WfceleryError


def complete_if_idle(draft: Draft) -> None:
    """End a live run in which nothing is open: completed if a `done` was reached, else failed as stuck."""
    if not draft.is_live or not draft.is_idle:
        return
    if draft.run.last_done is None:
        fail_run(draft, Error("stuck", "nothing is left to run and no step with `done: true` was reached"))
        return
    try:
        output = _output(draft, draft.run.last_done)
    except WfceleryError as error:
        fail_run(draft, Error("bad-output", f"the flow's output has no value: {error}"))
        return
    draft.set_run("run_completed", status=RunStatus.COMPLETED, output=values.canonical(output))
    notices.run_finished(draft)
    _tell_parent(draft, output)


def fail_run(draft: Draft, error: Error) -> None:
    """Fail the run: what has not started is cancelled, what runs may finish and starts nothing."""
    if draft.is_live:
        draft.set_run("run_failed", status=RunStatus.FAILED, error=error)
        cancel_open(draft, reason="the run failed")
        notices.run_failed(draft, error)
        _tell_parent(draft, None)


def cancel_run(draft: Draft, error: Error, actor: str) -> None:
    """Cancel the run: what has not started is cancelled, what runs is asked to stop."""
    if draft.is_live:
        draft.set_run("run_cancelled", actor=actor, status=RunStatus.CANCELLED, error=error)
        cancel_open(draft, reason="the run was cancelled", stop=True)
        _tell_parent(draft, None)


def cancel_open(
    draft: Draft,
    *,
    reason: str,
    among: Container[str] | None = None,
    stop: bool = False,
    took: str | None = None,
) -> list[Attempt]:
    """Cancel the open attempts without a worker (of steps in `among`); `stop` asks the others to stop."""
    cancelled = []
    for attempt in list(draft.attempts.values()):
        if not attempt.is_open or (among is not None and attempt.name not in among):
            continue
        if attempt.status is StepStatus.RUNNING:
            if stop:
                draft.effects.append(StopStep(draft.ref(attempt)))
                draft.note("step_asked_to_stop", attempt, reason=reason)
            continue
        cancelled.append(cancel_attempt(draft, attempt, reason, took))
    return cancelled


def cancel_attempt(draft: Draft, attempt: Attempt, reason: str, took: str | None = None) -> Attempt:
    """Cancel one attempt that no worker has, with the sub-run or the loop behind it."""
    if attempt.waits_for is WaitsFor.FLOW:
        cancel_child(draft, attempt, reason)
    if attempt.item == NO_ITEM:
        draft.loops.pop(attempt.name, None)
    ended = attempt._replace(
        status=StepStatus.CANCELLED, waits_for=None, due_at=None, completed_at=draft.now, took=took
    )
    return draft.move(ended, "step_cancelled", told={"reason": reason})


def cancel_child(draft: Draft, attempt: Attempt, reason: str) -> None:
    """Cancel the sub-run behind `attempt`, if it has begun."""
    if attempt.sent_at is not None:
        child = ids.child_id(draft.run.id, attempt.name, attempt.item, attempt.attempt)
        draft.effects.append(CancelChild(child, reason))


def cancel_losers(draft: Draft) -> None:
    """Cancel what is open and no longer needed since a join of any or n has fired; its tokens are dead."""
    losers = draft.run.losers
    reason = "a join it led to has fired without it"
    for attempt in cancel_open(draft, reason=reason, among=losers, stop=True, took=DEAD):
        if attempt.item == NO_ITEM:
            draft.send(draft.step_of(attempt), DEAD, None)


def _output(draft: Draft, last_done: str) -> Json:
    template = draft.flow.output
    if template is None:
        return draft.results.get(last_done)
    limit = draft.limits.payload_bytes
    rendered = template.render(scope_of(draft), lenient_input=draft.flow.lenient, max_size=limit)
    return rendered.value


def _tell_parent(draft: Draft, output: Json) -> None:
    run = draft.run
    if run.parent is not None:
        draft.effects.append(TellParent(ChildEnded(run.parent, run.status, output, run.error)))
