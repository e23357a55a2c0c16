"""The life of one attempt: handed to a worker, ended well, failed, tried again, lost."""

from __future__ import annotations

from dataclasses import replace

from wfcelery.core import ids, retry, values
from wfcelery.core.decide import endings
from wfcelery.core.decide.draft import Draft
from wfcelery.core.decide.scope import scope_of
from wfcelery.core.effects import Dispatch, StartChild
from wfcelery.core.flow import Call, Foreach, Label, OnItemError, OnLost, Step, SubFlow
from wfcelery.core.state import DEAD, KEPT, NO_ITEM, Attempt, Error, Prepared, StepStatus, WaitsFor
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError


def launch(draft: Draft, attempt: Attempt, prepared: Prepared, actor: str = "") -> None:
    """Begin `attempt` with its arguments: a tool becomes ready for a worker, a sub-flow becomes a sub-run."""
    work = work_of(draft.step_of(attempt))
    if isinstance(work, Call):
        ready = attempt._replace(
            status=StepStatus.READY,
            tool=work.tool,
            waits_for=None,
            due_at=None,
            ready_at=draft.now,
            fence=draft.next_seq,
        )
        dispatch(draft, draft.move(ready, "step_ready", actor=actor, prepared=prepared))
    else:
        _start_child(draft, attempt, work, prepared)


def release(draft: Draft, attempt: Attempt) -> None:
    """Send what was kept back while the run was held."""
    if attempt.status is StepStatus.READY:
        dispatch(draft, attempt)
    elif attempt.waits_for is WaitsFor.FLOW and attempt.sent_at is None:
        launch(draft, attempt, draft.prepared[attempt.key])


def dispatch(draft: Draft, attempt: Attempt) -> None:
    """Ask for a ready step to be handed over, unless the run is held: then `Resume` will."""
    if draft.run.held or attempt.tool is None:
        return
    step = draft.step_of(attempt)
    suspect = attempt.sent_at is not None or attempt.losses > 0
    draft.effects.append(
        Dispatch(
            ref=draft.ref(attempt),
            flow=draft.flow.name,
            tool=attempt.tool,
            prepared=draft.prepared[attempt.key],
            user=draft.run.created_by,
            timeout_s=step.timeout_s,
            queue=step.queue,
            priority=step.priority,
            again=suspect or step.on_lost is OnLost.HOLD,
        )
    )


def finish(
    draft: Draft,
    attempt: Attempt,
    value: Json,
    *,
    actor: str = "",
    event: str | None = None,
    choice: str | None = None,
    worker: str | None = None,
    started_at: float | None = None,
) -> None:
    """End `attempt` well with `value`, and go on by `choice` or by what the step says of the value."""
    step = draft.step_of(attempt)
    text = values.canonical(value)

    def end(took: str | None = None) -> None:
        done = attempt._replace(
            status=StepStatus.DONE,
            waits_for=None,
            due_at=None,
            completed_at=draft.now,
            worker=worker or attempt.worker,
            started_at=started_at or attempt.started_at,
            took=took,
        )
        draft.move(done, "step_done", actor=actor, result=text)

    if attempt.item != NO_ITEM:
        end()
        _collect(draft, step, attempt.item, value, len(text))
        return
    named = DEAD if attempt.name in draft.run.losers else choice or named_way(step, event)
    if isinstance(named, Error):
        fail(draft, attempt, named, may_retry=False, worker=worker, started_at=started_at)
        return
    if attempt.name in draft.flow.kept:
        draft.results[attempt.name] = value
    if not draft.is_live:
        end(None if named is None else f"{KEPT}{named}")
        return
    taken = named or _choose(draft, step, value)
    if isinstance(taken, Error):
        end()
        endings.fail_run(draft, taken)
        return
    end(taken)
    if step.done and taken == Label.NEXT.value:
        draft.set_run("done_reached", last_done=step.name)
    draft.send(step, taken, value)


def pass_on(draft: Draft, attempt: Attempt) -> None:
    """Send the tokens of a step that ended well while its run was down."""
    step = draft.step_of(attempt)
    value = draft.results.get(attempt.name)
    if step.name in draft.run.losers:
        taken: str | Error = DEAD
    elif attempt.took is not None:
        taken = attempt.took.removeprefix(KEPT)
    else:
        taken = _choose(draft, step, value)
    if isinstance(taken, Error):
        endings.fail_run(draft, taken)
        return
    draft.move(attempt._replace(took=taken), "step_passed_on")
    if step.done and taken == Label.NEXT.value:
        draft.set_run("done_reached", last_done=step.name)
    draft.send(step, taken, value)


def fail(
    draft: Draft,
    attempt: Attempt,
    error: Error,
    *,
    ancestors: tuple[str, ...] = (),
    may_retry: bool = True,
    retry_after: float | None = None,
    worker: str | None = None,
    started_at: float | None = None,
) -> None:
    """End `attempt` with `error`; another follows if the policy allows, else it has failed for good."""
    step = draft.step_of(attempt)
    failures = attempt.tries + 1
    failed = attempt._replace(
        worker=worker or attempt.worker, started_at=started_at or attempt.started_at, error=error
    )
    if may_retry and is_needed(draft, attempt) and retry.may_retry(step.retry, failures, ancestors):
        prepared = draft.prepared[attempt.key]
        _end_failed(draft, failed, took=None)
        seed = ids.step_id(draft.run.id, attempt.name, attempt.item, attempt.attempt)
        wait = retry.wait_before(step.retry, failures, seed) if retry_after is None else retry_after
        _try_again(draft, failed._replace(tries=failures), prepared, WaitsFor.RETRY, wait)
    else:
        _fail_for_good(draft, step, failed, error)


def lose(draft: Draft, attempt: Attempt, *, counted: bool, reason: str = "") -> None:
    """End an attempt whose worker vanished; its budget is its own. `on_lost: hold` parks it for a person."""
    step = draft.step_of(attempt)
    losses = attempt.losses + (1 if counted else 0)
    error = Error("lost", reason or f"the worker that ran attempt {attempt.attempt} vanished")
    parks = step.on_lost is OnLost.HOLD
    if not is_needed(draft, attempt) or (losses > draft.limits.losses and not parks):
        _fail_for_good(draft, step, attempt._replace(error=error), error)
        return
    prepared = draft.prepared[attempt.key]
    _end_failed(draft, attempt._replace(error=error), took=None)
    waits = WaitsFor.PERSON if parks else None
    _try_again(draft, attempt._replace(losses=losses), prepared, waits, 0.0)


def abandon(draft: Draft, attempt: Attempt) -> None:
    """Cancel an attempt that would go on without a worker, though nobody needs it any more."""
    reason = "nobody needs it any more"
    if attempt.item != NO_ITEM:
        endings.cancel_attempt(draft, attempt, reason)
        _leave_loop(draft, attempt.name)
    elif draft.is_live:
        endings.cancel_attempt(draft, attempt, reason, DEAD)
        draft.send(draft.step_of(attempt), DEAD, None)
    else:
        endings.cancel_attempt(draft, attempt, reason)


def work_of(step: Step) -> Call | SubFlow:
    """Give the tool call or sub-flow that the step, or each item of it, stands for."""
    work = step.action.body if isinstance(step.action, Foreach) else step.action
    if not isinstance(work, (Call, SubFlow)):
        message = f"step {step.name} calls nothing"
        raise TypeError(message)
    return work


def _start_child(draft: Draft, attempt: Attempt, work: SubFlow, prepared: Prepared) -> None:
    opened = attempt._replace(status=StepStatus.PENDING, waits_for=WaitsFor.FLOW, due_at=None)
    if draft.run.held:
        draft.move(opened, "child_held", prepared=prepared)
        return
    limit = draft.step_of(attempt).timeout_s
    due_at = None if limit is None else round(draft.now + limit, 3)
    opened = opened._replace(due_at=due_at, sent_at=draft.now, fence=draft.next_seq)
    child = ids.child_id(draft.run.id, attempt.name, attempt.item, attempt.attempt)
    opened = draft.move(opened, "child_started", prepared=prepared, told={"child": child})
    run = draft.run
    draft.effects.append(
        StartChild(
            child_id=child,
            definition_id=work.definition_id or "",
            input=prepared.args,
            parent=draft.ref(opened),
            root_id=run.root_id,
            created_by=run.created_by,
            wait=work.wait,
        )
    )
    if not work.wait:
        finish(draft, opened, {"run_id": child})


def named_way(step: Step, event: str | None) -> str | Error | None:
    """Say which way out the tool has named, or why it cannot be taken; None for a step without `on`."""
    events = [edge.event for edge in step.edges if edge.label is Label.ON]
    if not events:
        return None
    if event is None:
        return Error("unknown-event", f"the tool of {step.name} named no outcome, and `on` needs one")
    if event not in events:
        message = f"the tool of {step.name} named {event!r}, which `on` does not list"
        return Error("unknown-event", message)
    return f"on:{event}"


def _choose(draft: Draft, step: Step, value: Json) -> str | Error:
    """Say which way out `value` takes, or why there is none."""
    has_else = step.edge(Label.ELSE) is not None
    if not step.conditions and not has_else:
        return "next"
    scope = scope_of(draft, result=value)
    for index, condition in enumerate(step.conditions):
        try:
            verdict = condition.judge(scope, lenient_input=draft.flow.lenient)
        except ExpressionError as error:
            return Error("bad-condition", f"branch {index + 1} of {step.name} cannot be decided: {error}")
        if verdict.missing:
            draft.note("input_missing", None, names=list(verdict.missing))
        if verdict.holds:
            return f"if:{index}"
    if has_else:
        return Label.ELSE.value
    return Error("stuck", f"no branch of {step.name} holds and it has no else")


def is_needed(draft: Draft, attempt: Attempt) -> bool:
    """Tell whether how the attempt ends can still matter to the run."""
    if not draft.is_live or attempt.name in draft.run.losers:
        return False
    if attempt.item == NO_ITEM:
        return True
    loop = draft.loops.get(attempt.name)
    return loop is not None and loop.error is None


def _try_again(
    draft: Draft, attempt: Attempt, prepared: Prepared, waits: WaitsFor | None, wait: float
) -> None:
    following = Attempt(
        name=attempt.name,
        item=attempt.item,
        attempt=attempt.attempt + 1,
        tool=attempt.tool,
        tries=attempt.tries,
        losses=attempt.losses,
    )
    if waits is None or (waits is WaitsFor.RETRY and wait <= 0):
        launch(draft, following, prepared)
        return
    due_at = round(draft.now + wait, 3) if waits is WaitsFor.RETRY else None
    event = "retry_set" if waits is WaitsFor.RETRY else "step_parked"
    draft.move(following._replace(waits_for=waits, due_at=due_at), event, prepared=prepared)


def _fail_for_good(draft: Draft, step: Step, attempt: Attempt, error: Error) -> None:
    if attempt.item != NO_ITEM:
        _end_failed(draft, attempt, took=None)
        _collect_error(draft, step, attempt.item, error)
        return
    if not draft.is_live:
        _end_failed(draft, attempt, took=None)
        return
    if step.name in draft.run.losers:
        took: str | None = DEAD
    elif step.edge(Label.ERROR) is not None:
        took = Label.ERROR.value
    else:
        took = DEAD if step.optional else None
    _end_failed(draft, attempt, took=took)
    if took is None:
        endings.fail_run(draft, Error(error.type, f"step {step.name} failed: {error.message}"))
    else:
        draft.send(step, took, failure_value(error))


def failure_value(error: Error) -> Json:
    """Write a failure as the value that goes along `on_error`, or stands in a collected item's place."""
    return {"error": error.as_json()}


def _end_failed(draft: Draft, attempt: Attempt, *, took: str | None) -> None:
    ended = attempt._replace(
        status=StepStatus.FAILED, waits_for=None, due_at=None, completed_at=draft.now, took=took
    )
    draft.move(ended, "step_failed")


def _collect(draft: Draft, step: Step, item: int, value: Json, size: int) -> None:
    """Take in an item's result; the loop looks afterwards what to start next."""
    loop = draft.loops.get(step.name)
    if loop is None:
        return
    draft.loops[step.name] = replace(loop.with_result(item, value, size), out=loop.out - 1)
    draft.busy_loops.append(step.name)


def _leave_loop(draft: Draft, name: str) -> None:
    loop = draft.loops.get(name)
    if loop is not None:
        draft.loops[name] = replace(loop, out=loop.out - 1)
        draft.busy_loops.append(name)


def _collect_error(draft: Draft, step: Step, item: int, error: Error) -> None:
    loop = draft.loops.get(step.name)
    if loop is None:
        return
    action = step.action
    if isinstance(action, Foreach) and action.on_item_error is OnItemError.COLLECT:
        value = failure_value(error)
        _collect(draft, step, item, value, len(values.canonical(value)))
        return
    draft.loops[step.name] = replace(loop.with_error(item, error), out=loop.out - 1)
    draft.busy_loops.append(step.name)
