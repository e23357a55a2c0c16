"""An operator's retry: a failed run goes on from what failed, with fresh budgets. Gates stay gates."""

from __future__ import annotations

from wfcelery.core.decide.attempts import launch, pass_on
from wfcelery.core.decide.begin import activate, count_again, incoming, is_live, value_of
from wfcelery.core.decide.draft import Draft, Token
from wfcelery.core.decide.loops import open_loop
from wfcelery.core.flow import Call, SubFlow
from wfcelery.core.messages import Answer, RetryRun
from wfcelery.core.state import KEPT, NO_ITEM, Attempt, RunStatus, StepStatus


def reopen(draft: Draft, message: RetryRun) -> Answer:
    """Make new attempts for what failed or was cancelled by the failure; the run must be loaded in full."""
    if draft.run.status is not RunStatus.FAILED:
        return Answer(
            ok=False, reason=f"only a failed run can be retried; this one is {draft.run.status.value}"
        )
    if not draft.is_idle:
        return Answer(ok=False, reason="a step of the run is still running; retry when it has ended")
    draft.set_run("run_reopened", actor=message.by.id, status=RunStatus.RUNNING, reopened=True)
    ended = [attempt for attempt in draft.attempts.values() if _kept_its_tokens(attempt)]
    counting = [attempt for attempt in ended if _was_counting(draft, attempt)]
    # All is counted before the first of them may fire and send tokens of its own.
    counted = [_counted(draft, attempt) for attempt in counting]
    undelivered = _undelivered(draft)
    for following in counted:
        count_again(draft, draft.step_of(following), following)
    for attempt in ended:
        if attempt.status is StepStatus.DONE:
            pass_on(draft, attempt)
        elif draft.is_live and attempt not in counting:
            _repeat(draft, attempt)
    draft.tokens.extend(undelivered)
    return Answer(ok=True, data={"status": draft.run.status.value})


def _kept_its_tokens(attempt: Attempt) -> bool:
    return attempt.took is None or attempt.took.startswith(KEPT)


def _undelivered(draft: Draft) -> list[Token]:
    """Find the tokens that were sent when the run failed and have not reached their step."""
    tokens = []
    for attempt in draft.attempts.values():
        for edge in () if _kept_its_tokens(attempt) else draft.step_of(attempt).edges:
            if (edge.target, NO_ITEM) not in draft.attempts:
                live = is_live(draft, edge)
                tokens.append(Token(edge, live, value_of(draft, edge) if live else None))
    return tokens


def _counted(draft: Draft, ended: Attempt) -> Attempt:
    """Give the next attempt at a join that had not fired, with all tokens sent to it until the run failed."""
    ways = draft.flow.ways_in[ended.name]
    sources = [draft.attempts.get((edge.source, NO_ITEM)) for edge in ways]
    came = sum(source is not None and not _kept_its_tokens(source) for source in sources)
    live = sum(is_live(draft, edge) for edge in ways)
    return Attempt(ended.name, attempt=ended.attempt + 1, missing=len(ways) - came, live=live)


def _repeat(draft: Draft, ended: Attempt) -> None:
    step = draft.step_of(ended)
    following = Attempt(step.name, attempt=ended.attempt + 1)
    prepared = draft.prepared.pop(ended.key, None)
    loop = draft.loops.pop(step.name, None)
    if step.name in draft.run.losers:
        activate(draft, step, None, following)
    elif loop is not None:
        open_loop(draft, following, loop)
    elif isinstance(step.action, (Call, SubFlow)) and prepared is not None:
        launch(draft, following, prepared)
    else:
        activate(draft, step, incoming(draft, step), following)


def _was_counting(draft: Draft, ended: Attempt) -> bool:
    """Tell whether it was a join that had not fired: cancelled without ever having begun."""
    begun = ended.args_digest is not None or ended.result_digest is not None
    is_join = len(draft.flow.ways_in[ended.name]) > 1
    return is_join and ended.status is StepStatus.CANCELLED and not begun
