"""A step on its way to a worker: sent, begun, handed back, lost.

A step that goes out again as the same attempt is `ready` once more and keeps its `sent_at`: by that every
later reader knows that it was handed over before. One that was handed back gets a new fence: the copy that
came back is known to be gone, so that whatever still names it, another word of the return too, is about
nothing. One that is thought lost keeps its fence: its first copy may turn up, and its report then counts.
"""

from __future__ import annotations

from wfcelery.core.decide.attempts import abandon, dispatch, is_needed, lose
from wfcelery.core.decide.draft import Draft
from wfcelery.core.messages import StepBegun, StepLost, StepReturned
from wfcelery.core.state import Attempt, StepRef, StepStatus

_WITH_A_WORKER = (StepStatus.READY, StepStatus.RUNNING)


def held_by_worker(draft: Draft, ref: StepRef) -> Attempt | None:
    """Give the attempt that `ref` names, if it is the current one and a worker may have it."""
    attempt = draft.attempts.get((ref.step, ref.item))
    if attempt is None or (attempt.attempt, attempt.fence) != (ref.attempt, ref.fence):
        return None
    return attempt if attempt.status in _WITH_A_WORKER else None


def mark_sent(draft: Draft, ref: StepRef) -> None:
    """Note that a ready step was handed over."""
    attempt = held_by_worker(draft, ref)
    if attempt is not None:
        _handed_over(draft, attempt)


def send_again(draft: Draft, ref: StepRef) -> None:
    """Ask for a ready step to be handed over that is on its way to nobody."""
    attempt = held_by_worker(draft, ref)
    if attempt is not None and attempt.status is StepStatus.READY:
        dispatch(draft, attempt)


def note_beginning(draft: Draft, message: StepBegun) -> None:
    """Note that the tool is being called; the first word of it counts."""
    attempt = held_by_worker(draft, message.ref)
    if attempt is None or attempt.started_at is not None:
        return
    started_at = draft.now if message.started_at is None else round(message.started_at, 3)
    begun = _handed_over(draft, attempt)._replace(started_at=started_at, worker=message.worker)
    draft.move(begun, "step_started")


def take_back(draft: Draft, message: StepReturned) -> None:
    """Hand a step over again that a worker gave back before it began."""
    attempt = held_by_worker(draft, message.ref)
    if attempt is not None and attempt.started_at is None:
        handed = _handed_over(draft, attempt)
        _hand_over_again(draft, handed, draft.next_seq, "step_returned", message)


def give_up(draft: Draft, message: StepLost) -> None:
    """Take note that no living worker has the step: one that nobody began is simply handed over again."""
    attempt = held_by_worker(draft, message.ref)
    if attempt is None:
        return
    if message.begun or attempt.started_at is not None:
        seen = attempt._replace(worker=message.worker or attempt.worker)
        lose(draft, seen, counted=message.counted, reason=message.reason)
        return
    if draft.run.held and attempt.status is StepStatus.READY and attempt.sent_at is not None:
        return  # That it is on its way to nobody is known: `Resume` will hand it over.
    _hand_over_again(draft, attempt, attempt.fence, "step_resent", message)


def _handed_over(draft: Draft, attempt: Attempt) -> Attempt:
    if attempt.status is not StepStatus.READY:
        return attempt
    event = "step_running" if attempt.sent_at is None else "step_running_again"
    return draft.move(attempt._replace(status=StepStatus.RUNNING, sent_at=draft.now), event)


def _hand_over_again(
    draft: Draft, attempt: Attempt, fence: int, event: str, message: StepReturned | StepLost
) -> None:
    if not is_needed(draft, attempt):
        abandon(draft, attempt)
        return
    sent_at = draft.now if attempt.sent_at is None else attempt.sent_at
    ready = attempt._replace(status=StepStatus.READY, sent_at=sent_at, fence=fence)
    dispatch(draft, draft.move(ready, event, actor=message.worker or "", told={"reason": message.reason}))
