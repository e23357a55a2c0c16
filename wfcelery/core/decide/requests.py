"""What people and programs ask for: done, or answered with the reason and without a change."""

from __future__ import annotations

from wfcelery.core import ids
from wfcelery.core.decide import endings, gates
from wfcelery.core.decide.attempts import fail, finish, launch, named_way, release
from wfcelery.core.decide.begin import begin_run, is_start, settle
from wfcelery.core.decide.draft import Draft
from wfcelery.core.decide.reports import ring
from wfcelery.core.effects import HoldChild, KeepSignal
from wfcelery.core.flow import Gate, Wait
from wfcelery.core.messages import Answer, Cancel, Decide, EndStep, Hold, Resume, Signal, StepReady, TimerDue
from wfcelery.core.state import NO_ITEM, Attempt, Error, RunStatus, StepStatus, StoredSignal, WaitsFor


def _refused(reason: str) -> Answer:
    return Answer(ok=False, reason=reason)


def _waiting(draft: Draft, step: str, item: int = NO_ITEM) -> Attempt | Answer:
    """Give the pending attempt that a request names, or the reason why there is none."""
    if step not in draft.flow.steps:
        known = ", ".join(sorted(draft.flow.steps)[:10])
        return _refused(f"{draft.run.name} has no step {step}; it has {known}")
    if not draft.is_live:
        return _refused(f"the run is already {draft.run.status.value}")
    attempt = draft.attempts.get((step, item))
    if attempt is None:
        return _refused(f"{step} has not begun yet")
    if attempt.status is not StepStatus.PENDING:
        return _refused(f"{step} is not waiting: it is {attempt.status.value}")
    return attempt


def decide_gate(draft: Draft, message: Decide) -> Answer:
    """Take one person's word at a gate."""
    attempt = _waiting(draft, message.step)
    if isinstance(attempt, Answer):
        return attempt
    gate = draft.step_of(attempt).action
    if attempt.waits_for is not WaitsFor.APPROVAL or not isinstance(gate, Gate):
        return _refused(f"{message.step} does not wait for an approval")
    if message.attempt not in (None, attempt.attempt):
        meant = f"this decision is for attempt {message.attempt} of {message.step}"
        return _refused(f"{meant}, attempt {attempt.attempt} is open")
    return gates.vote(draft, gate, attempt, message)


def take_signal(draft: Draft, message: Signal) -> Answer:
    """Give a signal to the step that waits for it, or keep it until one does."""
    if not draft.is_live:
        return _refused(f"the run is already {draft.run.status.value}")
    for attempt in draft.attempts.values():
        action = draft.step_of(attempt).action
        if attempt.waits_for is not WaitsFor.SIGNAL or not isinstance(action, Wait):
            continue
        if action.signal == message.name and message.key in (None, _wait_key(draft, attempt)):
            finish(draft, attempt, message.payload, actor=message.by.id)
            return Answer(ok=True, data={"taken_by": attempt.name})
    known = {step.action.signal for step in draft.flow.steps.values() if isinstance(step.action, Wait)}
    if message.name not in known:
        waits = f"it waits for {', '.join(sorted(known))}" if known else "it waits for none"
        return _refused(f"no step of {draft.run.name} waits for the signal {message.name}; {waits}")
    if len(draft.run.signals) >= draft.limits.stored_signals:
        return _refused(f"{draft.limits.stored_signals:,} signals are already kept for this run")
    stored = StoredSignal(message.command_id, message.name, message.key, message.payload)
    draft.run = draft.run._replace(signals=(*draft.run.signals, stored))
    draft.effects.append(KeepSignal(stored.id, draft.run.id, stored.name, stored.key, stored.payload))
    draft.note("signal_kept", None, message.by.id, signal=message.name)
    return Answer(ok=True, data={"taken_by": None})


def _wait_key(draft: Draft, attempt: Attempt) -> str | None:
    shown = draft.prepared[attempt.key].args
    key = shown.get("key") if isinstance(shown, dict) else None
    return key if isinstance(key, str) else None


def cancel(draft: Draft, message: Cancel) -> Answer:
    """Stop the run for good; a repeat is harmless."""
    if draft.run.status is RunStatus.CANCELLED:
        return Answer(ok=True, data={"status": draft.run.status.value})
    if not draft.is_live:
        return _refused(f"the run is already {draft.run.status.value}")
    said = f": {message.reason}" if message.reason else ""
    endings.cancel_run(draft, Error("cancelled", f"cancelled by {message.by.id}{said}"), message.by.id)
    return Answer(ok=True, data={"status": draft.run.status.value})


def hold(draft: Draft, message: Hold | Resume) -> Answer:
    """Let nothing new start, or let what was held back go out now."""
    if not draft.is_live:
        return _refused(f"the run is already {draft.run.status.value}")
    hold = isinstance(message, Hold)
    if draft.run.held != hold:
        draft.set_run("run_held" if hold else "run_released", actor=message.by.id, held=hold)
        _hold_children(draft, hold=hold)
        if not hold:
            for attempt in list(draft.attempts.values()):
                release(draft, attempt)
            _ring_overdue(draft)
    return Answer(ok=True, data={"held": hold})


def _hold_children(draft: Draft, *, hold: bool) -> None:
    for attempt in draft.attempts.values():
        if attempt.waits_for is WaitsFor.FLOW and attempt.sent_at is not None:
            child = ids.child_id(draft.run.id, *attempt.key, attempt.attempt)
            draft.effects.append(HoldChild(child, hold))


def _ring_overdue(draft: Draft) -> None:
    """Let the timers act that ran out while the run was held, in the order of their time."""
    timed = [attempt for attempt in draft.attempts.values() if attempt.is_open and attempt.due_at is not None]
    for attempt in sorted(timed, key=lambda each: (each.due_at, each.key)):
        ring(draft, TimerDue(draft.run.id, *attempt.key, attempt.attempt))
        settle(draft)


def hurry(draft: Draft, message: StepReady) -> Answer:
    """Let a pending step go on now, as its kind allows."""
    attempt = _waiting(draft, message.step, message.item)
    if isinstance(attempt, Answer):
        return attempt
    actor = message.by.id
    match attempt.waits_for:
        case WaitsFor.APPROVAL:
            request = Decide(message.command_id, draft.run.id, message.step, approve=True, by=message.by)
            return decide_gate(draft, request)
        case WaitsFor.SIGNAL:
            finish(draft, attempt, None, actor=actor)
        case WaitsFor.TIME if is_start(draft, attempt):
            draft.note("start_hurried", attempt, actor)
            begin_run(draft, attempt)
        case WaitsFor.TIME:
            finish(draft, attempt, draft.results.get(attempt.name), actor=actor)
        case WaitsFor.RETRY | WaitsFor.PERSON:
            launch(draft, attempt, draft.prepared[attempt.key], actor)
        case _:
            return _refused(f"{message.step} waits for {attempt.waits_for}; that cannot be hurried")
    return Answer(ok=True)


def end_step(draft: Draft, message: EndStep) -> Answer:
    """End a step whose tool said `later()`."""
    attempt = _waiting(draft, message.step, message.item)
    if isinstance(attempt, Answer):
        return attempt
    if attempt.waits_for is not WaitsFor.REPORT:
        return _refused(f"{message.step} waits for {attempt.waits_for}, not for a report")
    named = named_way(draft.step_of(attempt), message.event) if message.item == NO_ITEM else None
    if message.error is None and isinstance(named, Error):
        return _refused(named.message)
    if message.error is None:
        finish(draft, attempt, message.result, event=message.event, actor=message.by.id)
    else:
        fail(draft, attempt, message.error)
    return Answer(ok=True)
