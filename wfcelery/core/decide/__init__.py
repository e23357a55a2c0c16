"""The rules by which a run changes. There are no others, and nothing else changes a run.

**Tokens.** Each edge of the flow carries one token in a run: live if it was taken, dead if not. A step with one way
in begins on a live token and is skipped on a dead one. A step with several ways in is a join: a pending row that
counts. `all` fires when every token has come and one at least is live; `any` on the first live one; `n` on the n-th.
A join that can no longer get what it needs is skipped. A skipped step sends dead tokens on every way out, so no join
ever waits for a branch that was not taken.

**Beginning.** When its turn comes, a tool becomes `ready` with a fresh fence; a gate, wait or timer becomes `pending`
until a decision, a signal or the clock; a foreach opens as many items as may be out at a time; a sub-flow becomes a
run of its own; a pass-through ends at once with the result that came in. Arguments are rendered here. Where an
approver has seen the rendered arguments, those are what runs.

**Ending.** A step that ends well takes one way: `next`/`join`/`parallel` (all of them), the first branch that holds,
the edge of the outcome it named. A failed attempt is followed by another while the policy allows; then the step has
failed for good: it takes `on_error`; or, if optional, sends dead tokens; or the run fails. A vanished worker has a
budget of its own. A denied gate takes `on_deny` or cancels the run.

**Losers.** When a join of any or n fires, steps all of whose paths end in joins that have fired are needed by nobody:
those not handed over are cancelled, the others asked to stop, and however they end, their tokens are dead.

**The run.** It is completed when nothing is open and a `done` was reached; with nothing open and no `done` it is
stuck, and fails. A run that failed or was cancelled starts nothing; reports of what still runs are written down.
It is paused when held, or when nothing is ready or running and something waits for a person or a signal.

**Late and repeated.** A report must name the current attempt and fence. The exact repeat of a report that was taken
in is silent; any other is refused, and the refusal recorded. A request that may not be is answered with the reason
and changes nothing.

`decide` sees no clock, no tables and no user code: the same flow, run, message and time give the same decision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from wfcelery.core import values
from wfcelery.core.decide import endings, gates
from wfcelery.core.decide.attempts import dispatch, fail, finish, launch, lose
from wfcelery.core.decide.begin import activate, settle
from wfcelery.core.decide.draft import Decision, Draft, Event, Write
from wfcelery.core.decide.reopen import reopen
from wfcelery.core.flow import Flow, Gate, KeyScope, Label, Wait
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.messages import (
    Answer,
    Broken,
    Cancel,
    ChildEnded,
    Decide,
    EndStep,
    Hold,
    KeepSignal,
    NewRun,
    Report,
    Resume,
    RetryRun,
    RunMessage,
    Signal,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReady,
    StepSent,
    TimerDue,
)
from wfcelery.core.state import (
    NO_ITEM,
    Attempt,
    Error,
    Run,
    RunStatus,
    StepRef,
    StepStatus,
    StoredSignal,
    WaitsFor,
)

__all__ = ["Decision", "Event", "Write", "decide", "start"]

_WITH_A_WORKER = (StepStatus.READY, StepStatus.RUNNING)


def start(flow: Flow, new: NewRun, now: float, limits: Limits = DEFAULT) -> Decision:
    """Begin a run: its row, its first event, its first step."""
    run = Run(
        id=new.run_id,
        definition_id=new.definition_id,
        name=flow.name,
        input=new.input,
        created_by=new.by.id,
        created_at=now,
        key=new.key,
        key_space=_key_space(flow, new),
        tags=tuple(dict.fromkeys((*flow.tags, *new.tags))),
        parent=new.parent,
        root_id=new.root_id or new.run_id,
    )
    draft = Draft(flow, run, now, limits)
    input_digest = values.digest(values.canonical(new.input))
    draft.note("run_started", None, new.by.id, definition=new.definition_id, input_digest=input_digest)
    activate(draft, flow.steps[flow.start], None, Attempt(flow.start))
    return _close(draft, Answer(ok=True, data={"run_id": run.id, "created": True}))


def decide(flow: Flow, run: Run, message: RunMessage, now: float, limits: Limits = DEFAULT) -> Decision:
    """Say what follows from `message`. A late or repeated one is answered, never an error."""
    draft = Draft(flow, run, now, limits)
    return _close(draft, _apply(draft, message))


def _close(draft: Draft, answer: Answer | None) -> Decision:
    settle(draft)
    endings.complete_if_idle(draft)
    if draft.is_live:
        due = draft.due_status()
        if due is not draft.run.status:
            draft.set_run("run_paused" if due is RunStatus.PAUSED else "run_went_on", status=due)
    return draft.decision(answer)


def _apply(draft: Draft, message: RunMessage) -> Answer | None:
    match message:
        case StepDone() | StepFailed() | StepPostponed():
            _take_report(draft, message)
        case StepSent():
            _mark_sent(draft, message.ref)
        case StepLost():
            attempt = _held_by_worker(draft, message.ref)
            if attempt is not None:
                lose(draft, attempt, counted=message.counted)
        case TimerDue():
            _ring(draft, message)
        case ChildEnded():
            _take_child(draft, message)
        case Broken():
            endings.fail_run(draft, Error("internal", message.reason))
        case Decide():
            return _decide_gate(draft, message)
        case Signal():
            return _take_signal(draft, message)
        case Cancel():
            return _cancel(draft, message)
        case Hold() | Resume():
            return _hold(draft, message)
        case StepReady():
            return _hurry(draft, message)
        case EndStep():
            return _end_step(draft, message)
        case RetryRun():
            return reopen(draft, message)
        case _:
            assert_never(message)
    return None


# -- reports and findings


def _held_by_worker(draft: Draft, ref: StepRef) -> Attempt | None:
    attempt = draft.attempts.get((ref.step, ref.item))
    if attempt is None or (attempt.attempt, attempt.fence) != (ref.attempt, ref.fence):
        return None
    return attempt if attempt.status in _WITH_A_WORKER else None


def _mark_sent(draft: Draft, ref: StepRef) -> None:
    attempt = _held_by_worker(draft, ref)
    if attempt is not None and attempt.status is StepStatus.READY:
        draft.move(replace(attempt, status=StepStatus.RUNNING, sent_at=draft.now), "step_running")


def _take_report(draft: Draft, report: Report) -> None:
    attempt = _held_by_worker(draft, report.ref)
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
    waiting = replace(
        attempt,
        status=StepStatus.PENDING,
        waits_for=WaitsFor.REPORT,
        due_at=None if limit is None else round(draft.now + limit, 3),
        worker=report.worker,
        started_at=report.started_at,
    )
    if draft.is_live:
        draft.move(waiting, "step_postponed")
    else:
        endings.cancel_attempt(draft, waiting, "the run has ended")


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


def _ring(draft: Draft, message: TimerDue) -> None:
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
        case WaitsFor.TIME:
            finish(draft, attempt, draft.results.get(attempt.name))
        case WaitsFor.APPROVAL if isinstance(step.action, Gate):
            gates.time_out(draft, step.action, attempt)
        case WaitsFor.SIGNAL if step.edge(Label.TIMEOUT) is not None:
            finish(draft, attempt, None, actor="timeout", choice=Label.TIMEOUT.value)
        case WaitsFor.SIGNAL:
            fail(draft, attempt, Error("timeout", "the signal did not come in time"), may_retry=False)
        case WaitsFor.REPORT:
            fail(draft, attempt, Error("timeout", f"no report came within {step.timeout_s:g} s"))


def _take_child(draft: Draft, message: ChildEnded) -> None:
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


# -- requests


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


def _decide_gate(draft: Draft, message: Decide) -> Answer:
    attempt = _waiting(draft, message.step)
    if isinstance(attempt, Answer):
        return attempt
    gate = draft.step_of(attempt).action
    if attempt.waits_for is not WaitsFor.APPROVAL or not isinstance(gate, Gate):
        return _refused(f"{message.step} does not wait for an approval")
    return gates.vote(draft, gate, attempt, message)


def _take_signal(draft: Draft, message: Signal) -> Answer:
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
    draft.run = replace(draft.run, signals=(*draft.run.signals, stored))
    draft.effects.append(KeepSignal(stored.id, draft.run.id, stored.name, stored.key, stored.payload))
    draft.note("signal_kept", None, message.by.id, signal=message.name)
    return Answer(ok=True, data={"taken_by": None})


def _wait_key(draft: Draft, attempt: Attempt) -> str | None:
    shown = draft.prepared[attempt.key].args
    key = shown.get("key") if isinstance(shown, dict) else None
    return key if isinstance(key, str) else None


def _cancel(draft: Draft, message: Cancel) -> Answer:
    if draft.run.status is RunStatus.CANCELLED:
        return Answer(ok=True, data={"status": draft.run.status.value})
    if not draft.is_live:
        return _refused(f"the run is already {draft.run.status.value}")
    said = f": {message.reason}" if message.reason else ""
    endings.cancel_run(draft, Error("cancelled", f"cancelled by {message.by.id}{said}"), message.by.id)
    return Answer(ok=True, data={"status": draft.run.status.value})


def _hold(draft: Draft, message: Hold | Resume) -> Answer:
    if not draft.is_live:
        return _refused(f"the run is already {draft.run.status.value}")
    hold = isinstance(message, Hold)
    if draft.run.held != hold:
        draft.set_run("run_held" if hold else "run_released", actor=message.by.id, held=hold)
        if not hold:
            for attempt in draft.attempts.values():
                if attempt.status is StepStatus.READY:
                    dispatch(draft, attempt)
    return Answer(ok=True, data={"held": hold})


def _hurry(draft: Draft, message: StepReady) -> Answer:
    attempt = _waiting(draft, message.step, message.item)
    if isinstance(attempt, Answer):
        return attempt
    actor = message.by.id
    match attempt.waits_for:
        case WaitsFor.APPROVAL:
            request = Decide(message.command_id, draft.run.id, message.step, approve=True, by=message.by)
            return _decide_gate(draft, request)
        case WaitsFor.SIGNAL:
            finish(draft, attempt, None, actor=actor)
        case WaitsFor.TIME:
            finish(draft, attempt, draft.results.get(attempt.name), actor=actor)
        case WaitsFor.RETRY | WaitsFor.PERSON:
            launch(draft, attempt, draft.prepared[attempt.key], actor)
        case _:
            return _refused(f"{message.step} waits for {attempt.waits_for}; that cannot be hurried")
    return Answer(ok=True)


def _end_step(draft: Draft, message: EndStep) -> Answer:
    attempt = _waiting(draft, message.step, message.item)
    if isinstance(attempt, Answer):
        return attempt
    if attempt.waits_for is not WaitsFor.REPORT:
        return _refused(f"{message.step} waits for {attempt.waits_for}, not for a report")
    if message.error is None:
        finish(draft, attempt, message.result, event=message.event, actor=message.by.id)
    else:
        fail(draft, attempt, message.error)
    return Answer(ok=True)


def _key_space(flow: Flow, new: NewRun) -> str | None:
    """Name the set of runs among which the key is unique while they live."""
    if new.key is None:
        return None
    match flow.key_scope:
        case KeyScope.FLOW:
            return f"flow:{flow.name}"
        case KeyScope.VERSION:
            return f"flow:{flow.name}@{new.version}"
        case KeyScope.GLOBAL:
            return "global"
        case KeyScope.NONE:
            return None
