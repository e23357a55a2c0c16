"""An operator's retry: a failed run goes on from what failed, with fresh budgets. Gates stay gates."""

from __future__ import annotations

from dataclasses import replace

from wfcelery.core.decide.attempts import launch, pass_on
from wfcelery.core.decide.begin import activate, count_again, incoming, open_loop
from wfcelery.core.decide.draft import Draft
from wfcelery.core.flow import Call, Step, SubFlow
from wfcelery.core.messages import Answer, RetryRun
from wfcelery.core.state import Attempt, RunStatus, StepStatus


def reopen(draft: Draft, message: RetryRun) -> Answer:
    """Make new attempts for what failed or was cancelled by the failure; the run must be loaded in full."""
    if draft.run.status is not RunStatus.FAILED:
        return Answer(
            ok=False, reason=f"only a failed run can be retried; this one is {draft.run.status.value}"
        )
    if not draft.is_idle:
        return Answer(ok=False, reason="a step of the run is still running; retry when it has ended")
    draft.set_run("run_reopened", actor=message.by.id, status=RunStatus.RUNNING, reopened=True)
    for attempt in list(draft.attempts.values()):
        if attempt.took is None and attempt.status is StepStatus.DONE:
            pass_on(draft, attempt)
        elif attempt.took is None and draft.is_live:
            _repeat(draft, draft.step_of(attempt), attempt)
    return Answer(ok=True, data={"status": draft.run.status.value})


def _repeat(draft: Draft, step: Step, ended: Attempt) -> None:
    following = Attempt(step.name, attempt=ended.attempt + 1)
    prepared = draft.prepared.pop(ended.key, None)
    loop = draft.loops.pop(step.name, None)
    if _was_counting(draft, step, ended):
        count_again(draft, step, replace(following, missing=ended.missing, live=ended.live))
    elif loop is not None:
        open_loop(draft, following, loop)
    elif isinstance(step.action, (Call, SubFlow)) and prepared is not None:
        launch(draft, following, prepared)
    else:
        activate(draft, step, incoming(draft, step), following)


def _was_counting(draft: Draft, step: Step, ended: Attempt) -> bool:
    """Tell whether it was a join that had not fired: cancelled without ever having begun."""
    begun = ended.args_digest is not None or ended.result_digest is not None
    is_join = len(draft.flow.ways_in[step.name]) > 1
    return is_join and ended.status is StepStatus.CANCELLED and not begun
