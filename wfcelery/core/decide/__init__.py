"""The rules by which a run changes. There are no others, and nothing else changes a run.

**Tokens.** Each edge of the flow carries one token in a run: live if it was taken, dead if not. A step with
one way in begins on a live token and is skipped on a dead one. A step with several ways in is a join: a
pending row that counts. `all` fires when every token has come and one at least is live; `any` on the first
live one; `n` on the n-th. A join that can no longer get what it needs is skipped. A skipped step sends dead
tokens on every way out, so no join ever waits for a branch that was not taken.

**Beginning.** When its turn comes, a tool becomes `ready` with a fresh fence; a gate, wait or timer becomes
`pending` until a decision, a signal or the clock; a foreach opens as many items as may be out at a time; a
sub-flow becomes a run of its own; a pass-through ends at once with the result that came in. Arguments are
rendered here. Where an approver has seen the rendered arguments, those are what runs. The first step of a run
that is to start later waits `pending` for the clock, and its turn comes then.

**Handing over.** `ready` must be on its way to a worker; `running` is known to be handed over; the first word
that the tool is being called is written down. A step that comes back, or is lost, before anybody is known to
have begun it is `ready` once more: the same attempt and fence, and no budget spent. If nobody needs it any
more, it is cancelled instead.

**Ending.** A step that ends well takes one way: `next`/`join`/`parallel` (all of them), the first branch
that holds, the edge of the outcome it named. A failed attempt is followed by another while the policy
allows; then the step has failed for good: it takes `on_error`; or, if optional, sends dead tokens; or the
run fails. A worker that vanished under a step has a budget of its own. A denied gate takes `on_deny` or
cancels the run.

**Gates.** One denial denies, a quorum of different people approves; neither who started the run nor who
defined its flow, unless the gate allows it. Its time and its reminders are counted from its opening. When its
time is up it is denied, approved, or others are asked as well, once. People are told of all this, and of the
end of a run that is nobody's sub-run, by effects.

**Losers.** When a join of any or n fires, steps all of whose paths end in joins that have fired are needed
by nobody: those not handed over are cancelled, the others asked to stop, and however they end, their tokens
are dead.

**The run.** It is completed when nothing is open and a `done` was reached; with nothing open and no `done`
it is stuck, and fails. A run that failed or was cancelled starts nothing; reports of what still runs are
written down. It is paused when held, or when nothing is ready or running and something waits for a person
or a signal.

**Late and repeated.** A report must name the current attempt and fence. The exact repeat of a report that
was taken in is silent; any other is refused, and the refusal recorded. A request that may not be is
answered with the reason and changes nothing. News of a handing-over that is no longer the current one, or
that was known, is silent.

`decide` sees no clock, no tables and no user code: the same flow, run, message and time give the same
decision.

Read on in `begin` (tokens arrive, a step's turn comes), `attempts` (how an attempt goes on and ends), `loops`
and `gates`, `endings` (of the run), `notices` (who is told), `handover`, `reports` and `requests` (who says
what), `reopen`, and `draft`, in which all of them write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from wfcelery.core import values
from wfcelery.core.decide import endings, handover, reports, requests
from wfcelery.core.decide.begin import activate, set_start, settle
from wfcelery.core.decide.draft import Decision, Draft, Event, Write
from wfcelery.core.decide.reopen import reopen
from wfcelery.core.flow import Flow, KeyScope
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.messages import (
    Answer,
    Broken,
    Cancel,
    ChildEnded,
    Decide,
    EndStep,
    Hold,
    NewRun,
    Request,
    Resume,
    RetryRun,
    RunMessage,
    Signal,
    StepBegun,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReady,
    StepReturned,
    StepSent,
    StepUnsent,
    TimerDue,
)
from wfcelery.core.state import Attempt, Error, Run, RunStatus

__all__ = ["Decision", "Event", "Write", "decide", "decide_in_turn", "key_space", "start"]


def start(flow: Flow, new: NewRun, now: float, limits: Limits = DEFAULT) -> Decision:
    """Begin a run: its row, its first event, its first step, which waits if the run is to start later."""
    run = Run(
        id=new.run_id,
        definition_id=new.definition_id,
        name=flow.name,
        input=new.input,
        created_by=new.by.id,
        created_at=now,
        key=new.key,
        key_space=key_space(flow, new.key, new.version),
        tags=tuple(dict.fromkeys((*flow.tags, *new.tags))),
        parent=new.parent,
        root_id=new.root_id or new.run_id,
    )
    draft = Draft(flow, run, now, limits)
    input_digest = values.digest(values.canonical(new.input))
    draft.note("run_started", None, new.by.id, definition=new.definition_id, input_digest=input_digest)
    if new.objection is not None:
        endings.fail_run(draft, Error("invalid-input", new.objection))
    elif new.at is not None and new.at > now:
        set_start(draft, new.at)
    else:
        activate(draft, flow.steps[flow.start], None, Attempt(flow.start))
    return _close(draft, Answer(ok=True, data={"run_id": run.id, "created": True}))


def decide(flow: Flow, run: Run, message: RunMessage, now: float, limits: Limits = DEFAULT) -> Decision:
    """Say what follows from `message`. A late or repeated one is answered, never an error."""
    draft = Draft(flow, run, now, limits)
    return _close(draft, _apply(draft, message))


def decide_in_turn(
    flow: Flow, run: Run, messages: Sequence[RunMessage], now: float, limits: Limits = DEFAULT
) -> Decision:
    """Decide several messages that ask for no answer, as if one after the other, with one copy of the run."""
    draft = Draft(flow, run, now, limits)
    for message in messages:
        _apply(draft, message)
        _settle(draft)
    return draft.decision(None)


def _close(draft: Draft, answer: Answer | None) -> Decision:
    _settle(draft)
    return draft.decision(answer)


def _settle(draft: Draft) -> None:
    settle(draft)
    endings.complete_if_idle(draft)
    if draft.is_live:
        due = draft.due_status()
        if due is not draft.run.status:
            draft.set_run("run_paused" if due is RunStatus.PAUSED else "run_went_on", status=due)


def _apply(draft: Draft, message: RunMessage) -> Answer | None:
    match message:
        case StepDone() | StepFailed() | StepPostponed():
            reports.take_report(draft, message)
        case StepSent():
            handover.mark_sent(draft, message.ref)
        case StepUnsent():
            handover.send_again(draft, message.ref)
        case StepLost():
            handover.give_up(draft, message)
        case StepBegun():
            handover.note_beginning(draft, message)
        case StepReturned():
            handover.take_back(draft, message)
        case TimerDue():
            reports.ring(draft, message)
        case ChildEnded():
            reports.take_child(draft, message)
        case Broken():
            endings.fail_run(draft, Error("internal", message.reason))
        case _:
            return _grant(draft, message)
    return None


def _grant(draft: Draft, request: Request) -> Answer:
    match request:
        case Decide():
            return requests.decide_gate(draft, request)
        case Signal():
            return requests.take_signal(draft, request)
        case Cancel():
            return requests.cancel(draft, request)
        case Hold() | Resume():
            return requests.hold(draft, request)
        case StepReady():
            return requests.hurry(draft, request)
        case EndStep():
            return requests.end_step(draft, request)
        case RetryRun():
            return reopen(draft, request)
        case _:
            assert_never(request)


def key_space(flow: Flow, key: str | None, version: int) -> str | None:
    """Name the set of runs among which the key is unique while they live; None if it need not be."""
    if key is None:
        return None
    match flow.key_scope:
        case KeyScope.FLOW:
            return f"flow:{flow.name}"
        case KeyScope.VERSION:
            return f"flow:{flow.name}@{version}"
        case KeyScope.GLOBAL:
            return "global"
        case KeyScope.NONE:
            return None
