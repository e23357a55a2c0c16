"""How a step begins: tokens arrive, a join counts them, and the step's turn comes or it is skipped."""

from __future__ import annotations

from datetime import UTC, datetime

from wfcelery.core import gate_clock, values
from wfcelery.core.decide import endings, notices
from wfcelery.core.decide.attempts import fail, failure_value, finish, launch
from wfcelery.core.decide.draft import Draft, Token
from wfcelery.core.decide.loops import begin_loop, go_on
from wfcelery.core.decide.losers import losers
from wfcelery.core.decide.render import prepare, preview_of, render
from wfcelery.core.effects import FindSignal, UseSignal
from wfcelery.core.flow import (
    Call,
    Delay,
    Edge,
    Foreach,
    Gate,
    JoinMode,
    Label,
    Pass,
    Step,
    SubFlow,
    Until,
    Wait,
)
from wfcelery.core.state import DEAD, NO_ITEM, Attempt, Error, Prepared, StepStatus, WaitsFor
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError, InvalidInput

MAX_WAIT_S = 10 * 366 * 86_400.0


def settle(draft: Draft) -> None:
    """Let every token arrive and every loop go on, until nothing moves by itself."""
    while draft.is_live and (draft.tokens or draft.busy_loops):
        if draft.tokens:
            _arrive(draft, draft.tokens.popleft())
        else:
            go_on(draft, draft.busy_loops.popleft())


def activate(draft: Draft, step: Step, value: Json, attempt: Attempt) -> None:
    """Let the step's turn come, with `value` as the result that came in."""
    if step.name in draft.run.losers:
        endings.cancel_attempt(draft, attempt, "a join it led to has fired without it", DEAD)
        draft.send(step, DEAD, None)
        return
    if step.join_mode is not JoinMode.ALL and len(draft.flow.ways_in[step.name]) > 1:
        fired = draft.run.fired | {step.name}
        draft.run = draft.run._replace(fired=fired, losers=losers(draft.flow, fired))
        endings.cancel_losers(draft)
    try:
        _begin(draft, step, value, attempt._replace(waits_for=None))
    except ExpressionError as error:
        fail(draft, attempt, Error("bad-template", str(error)), may_retry=False)
    except InvalidInput as error:
        fail(draft, attempt, Error(error.code, str(error)), may_retry=False)


def set_start(draft: Draft, at: float) -> None:
    """Let the run's first step wait until its turn comes: the token that the clock will bring is missing."""
    waiting = Attempt(draft.flow.start, waits_for=WaitsFor.TIME, due_at=round(at, 3), missing=1)
    draft.move(waiting, "start_set")


def is_start(draft: Draft, attempt: Attempt) -> bool:
    """Tell whether a step that waits for the clock waits for its turn, as the first of its run."""
    return attempt.name == draft.flow.start and attempt.missing > 0


def begin_run(draft: Draft, waiting: Attempt) -> None:
    """Let the turn come of a first step that has waited for it."""
    activate(draft, draft.step_of(waiting), None, waiting._replace(due_at=None, missing=0))


def incoming(draft: Draft, step: Step) -> Json:
    """Give the `result` that the step sees: of the step before it; at a join, a map of the live arrivals."""
    ways = draft.flow.ways_in[step.name]
    if not ways:
        return None
    if len(ways) == 1:
        return value_of(draft, ways[0])
    under_way = {token.edge for token in draft.tokens}
    seen: dict[str, Json] = {}
    for edge in ways:
        if is_live(draft, edge) and edge not in under_way:
            seen[edge.source] = value_of(draft, edge)
    return seen


def is_live(draft: Draft, edge: Edge) -> bool:
    """Tell whether the edge has carried a live token."""
    source = draft.attempts.get((edge.source, NO_ITEM))
    return source is not None and source.took == edge.choice


def value_of(draft: Draft, edge: Edge) -> Json:
    """Give what goes along a live edge: the result of its source, or its failure."""
    error = draft.attempts[edge.source, NO_ITEM].error
    if edge.label is Label.ERROR and error is not None:
        return failure_value(error)
    return draft.results.get(edge.source)


def _arrive(draft: Draft, token: Token) -> None:
    step = draft.flow.steps[token.edge.target]
    ways = len(draft.flow.ways_in[step.name])
    if ways == 1:
        if token.live:
            activate(draft, step, token.value, Attempt(step.name))
        else:
            _skip(draft, step, Attempt(step.name))
        return
    row = draft.attempts.get((step.name, NO_ITEM))
    if row is None:
        counted = Attempt(step.name, waits_for=WaitsFor.JOIN, missing=ways - 1, live=int(token.live))
    elif row.waits_for is WaitsFor.JOIN and row.is_open:
        counted = row._replace(missing=row.missing - 1, live=row.live + int(token.live))
    else:
        return  # It has fired or was skipped before this token came: nothing more depends on it.
    if not _weigh(draft, step, counted):
        if row is None:
            draft.move(counted, "join_opened")
        else:
            draft.count(counted)


def count_again(draft: Draft, step: Step, counted: Attempt) -> None:
    """Reopen a join that was cancelled while it counted."""
    counted = counted._replace(waits_for=WaitsFor.JOIN)
    if not _weigh(draft, step, counted):
        draft.move(counted, "join_opened")


def _weigh(draft: Draft, step: Step, counted: Attempt) -> bool:
    """Let the join fire or be skipped if its tokens say so; tell whether they do."""
    needed = _needed(step, counted)
    if counted.live >= needed:
        activate(draft, step, incoming(draft, step), counted)
    elif counted.live + counted.missing < needed:
        _skip(draft, step, counted)
    else:
        return False
    return True


def _needed(step: Step, counted: Attempt) -> int:
    """Say how many live tokens let the join fire, as far as is known; for `all`, those that were taken."""
    if step.join_mode is JoinMode.ANY:
        return 1
    if step.join_mode is JoinMode.COUNT:
        return step.join_count
    return max(1, counted.live + counted.missing)


def _skip(draft: Draft, step: Step, attempt: Attempt) -> None:
    skipped = attempt._replace(status=StepStatus.SKIPPED, waits_for=None, completed_at=draft.now, took=DEAD)
    draft.move(skipped, "step_skipped")
    draft.send(step, DEAD, None)


def _begin(draft: Draft, step: Step, value: Json, attempt: Attempt) -> None:
    action = step.action
    match action:
        case Call() | SubFlow():
            launch(draft, attempt, prepare(draft, step, value))
        case Gate():
            _open_gate(draft, step, action, attempt, value)
        case Wait():
            _open_wait(draft, action, attempt, value)
        case Delay() | Until():
            _set_timer(draft, action, attempt, value)
        case Foreach():
            begin_loop(draft, action, attempt, value)
        case Pass():
            finish(draft, attempt, value)


def _open_gate(draft: Draft, step: Step, gate: Gate, attempt: Attempt, value: Json) -> None:
    preview = preview_of(draft, step, gate, value)
    opened = attempt._replace(waits_for=WaitsFor.APPROVAL, ready_at=draft.now)
    opened = opened._replace(due_at=gate_clock.due(gate, opened, draft.now))
    shown: Json = {name: {"args": prepared.args} for name, prepared in preview.items()}
    secrets: dict[str, Json] = {name: dict(each.secrets) for name, each in preview.items() if each.secrets}
    came_in = None
    if gate.pass_result:
        draft.results[attempt.name] = value
        came_in = values.canonical(value)
    opened = draft.move(opened, "gate_opened", prepared=Prepared(shown, secrets), result=came_in)
    notices.gate_opened(draft, gate, opened)
    draft.run = draft.run._replace(frozen={**draft.run.frozen, step.name: preview})


def _open_wait(draft: Draft, wait: Wait, attempt: Attempt, value: Json) -> None:
    key = None
    if wait.key is not None:
        rendered = render(draft, wait.key, result=value).args
        key = rendered if isinstance(rendered, str) else values.canonical(rendered)
    for signal in draft.run.signals:
        if signal.name == wait.signal and (signal.key is None or signal.key == key):
            remaining = tuple(other for other in draft.run.signals if other.id != signal.id)
            draft.run = draft.run._replace(signals=remaining)
            draft.effects.append(UseSignal(signal.id))
            finish(draft, attempt, signal.payload)
            return
    due_at = None if wait.timeout_s is None else round(draft.now + wait.timeout_s, 3)
    opened = attempt._replace(waits_for=WaitsFor.SIGNAL, due_at=due_at)
    draft.move(opened, "wait_opened", prepared=Prepared({"signal": wait.signal, "key": key}))
    if key is not None:
        draft.effects.append(FindSignal(draft.run.id, wait.signal, key))


def _set_timer(draft: Draft, action: Delay | Until, attempt: Attempt, value: Json) -> None:
    template = action.seconds if isinstance(action, Delay) else action.moment
    rendered = render(draft, template, result=value).args
    due_at = draft.now + _seconds(rendered) if isinstance(action, Delay) else _moment(rendered)
    if due_at <= draft.now:
        finish(draft, attempt, value)
        return
    draft.results[attempt.name] = value
    waiting = attempt._replace(waits_for=WaitsFor.TIME, due_at=round(due_at, 3))
    draft.move(waiting, "timer_set", result=values.canonical(value))


def _seconds(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_WAIT_S:
        raise InvalidInput("delay", f"must be a number of seconds from 0 to ten years, not {value!r}")
    return float(value)


def _moment(value: Json) -> float:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput("until", f"must be a time like 2030-01-31T09:00:00Z, not {value!r}")
    if moment.tzinfo is None:
        raise InvalidInput("until", f"must say its zone, as in {value}Z or {value}+02:00")
    try:
        return moment.astimezone(UTC).timestamp()
    except OverflowError:
        raise InvalidInput("until", f"must lie between the years 1 and 9999 in UTC, not {value!r}") from None
