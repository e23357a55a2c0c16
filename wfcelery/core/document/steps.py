"""From the spec of one step to the step: its action, its ways on in their fixed order, its policies."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from wfcelery.core.document.actions import action_of
from wfcelery.core.document.schemas import check_schema
from wfcelery.core.flow import (
    Action,
    Call,
    Edge,
    Exponential,
    Foreach,
    Gate,
    JoinMode,
    Label,
    OnLost,
    Retry,
    Step,
    SubFlow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wfcelery.core.document.report import Report
    from wfcelery.core.document.spec import BranchSpec, PolicySpec, RetrySpec, StepSpec
    from wfcelery.core.expressions import Condition
    from wfcelery.core.reading.place import Path

WAYS: Final = ("next", "branch", "on", "parallel", "join")


def make_step(name: str, spec: StepSpec, defaults: PolicySpec, path: Path, report: Report) -> Step:
    """Make the step, noting what does not belong together in it."""
    action = action_of(spec, path, report)
    if isinstance(action, Gate) and action.form is not None:
        check_schema(action.form, (*path, "approval", "form"), report)
    _check_ways(spec, action, path, report)
    conditions, arms = _branch(name, spec.branch or [], (*path, "branch"), report)
    mode, count = _join_mode(spec.join_mode, (*path, "join_mode"), report)
    calls = isinstance(action, Call) or (isinstance(action, Foreach) and isinstance(action.body, Call))
    # A time limit meant for tools must not deny gates or cut sub-flows short.
    timeout_s = spec.timeout_s if spec.timeout_s is not None or not calls else defaults.timeout_s
    return Step(
        name=name,
        action=action,
        edges=(*_plain_ways(name, spec), *arms, *_outcomes(name, spec), *_ways_out(name, spec)),
        conditions=conditions,
        done=spec.done,
        join_mode=mode,
        join_count=count,
        optional=spec.optional,
        retry=_retry(spec.retry, defaults.retry, action),
        timeout_s=timeout_s if calls or isinstance(action, (SubFlow, Foreach)) else None,
        queue=spec.queue if spec.queue is not None else defaults.queue,
        priority=spec.priority if spec.priority is not None else defaults.priority,
        on_lost=OnLost(spec.on_lost or defaults.on_lost or "retry"),
        description=spec.description or "",
    )


def count_edges(spec: StepSpec) -> int:
    """Say how many ways lead out of a step, before any is made."""
    single = (spec.next, spec.join, spec.on_error)
    return len(spec.parallel or ()) + len(spec.branch or ()) + len(spec.on or ()) + 3 - single.count(None)


def ways_said(spec: StepSpec) -> list[str]:
    """Name the fields by which a step goes on; `join` beside `parallel` speaks for the branches."""
    said = [name for name in WAYS if getattr(spec, name) is not None]
    return [name for name in said if name != "join" or "parallel" not in said]


def _check_ways(spec: StepSpec, action: Action, path: Path, report: Report) -> None:
    said = ways_said(spec)
    if spec.done and said:
        message = f"the step is `done` and also says `{said[0]}`"
        report.add("done-with-next", (*path, "done"), message, "remove one of them")
    if len(said) > 1:
        words = " and ".join(f"`{name}`" for name in said)
        report.add("several-ways", path, f"the step says {words}; it can go on in one way", "keep one")
    if spec.on is not None and not isinstance(action, Call):
        message = "only a tool names its outcome"
        report.add("misplaced-field", (*path, "on"), message, "use `branch` on the result")
    for target, times in Counter(spec.parallel or ()).items():
        if times > 1:
            message = f"`{target[:64]}` is listed {times} times"
            report.add("duplicate-name", (*path, "parallel"), message, "each branch is a step of its own")


def _plain_ways(name: str, spec: StepSpec) -> Iterator[Edge]:
    if spec.next is not None:
        yield Edge(name, Label.NEXT, spec.next)
    if spec.join is not None and spec.parallel is None:
        yield Edge(name, Label.JOIN, spec.join)
    for index, target in enumerate(dict.fromkeys(spec.parallel or ())):
        yield Edge(name, Label.PARALLEL, target, index)


def _outcomes(name: str, spec: StepSpec) -> Iterator[Edge]:
    for index, (event, target) in enumerate((spec.on or {}).items()):
        yield Edge(name, Label.ON, target, index, event)


def _ways_out(name: str, spec: StepSpec) -> Iterator[Edge]:
    if spec.on_error is not None:
        yield Edge(name, Label.ERROR, spec.on_error)
    if spec.approval is not None and spec.approval.on_deny is not None:
        yield Edge(name, Label.DENY, spec.approval.on_deny)
    if spec.wait is not None and spec.wait.on_timeout is not None:
        yield Edge(name, Label.TIMEOUT, spec.wait.on_timeout)


def _branch(
    name: str, arms: list[BranchSpec], path: Path, report: Report
) -> tuple[tuple[Condition, ...], tuple[Edge, ...]]:
    conditions: list[Condition] = []
    edges: list[Edge] = []
    for index, arm in enumerate(arms):
        place = (*path, index)
        if arm.else_ is not None and arm.if_ is None and arm.then is None:
            if index < len(arms) - 1:
                message = "nothing after `else` is ever taken"
                report.add("else-not-last", (*place, "else"), message, "move it last")
            edges.append(Edge(name, Label.ELSE, arm.else_))
        elif arm.else_ is not None:
            message = "`else` stands beside `if` or `then`; it is an arm of its own"
            report.add("bad-value", place, message, "write `- else: step` as the last arm")
        elif arm.if_ is None or arm.then is None:
            missing = "if" if arm.if_ is None else "then"
            message = f"the field `{missing}` is required"
            report.add("missing-field", (*place, missing), message, f"add `{missing}`")
        else:
            conditions.append(report.condition(arm.if_, (*place, "if")))
            edges.append(Edge(name, Label.IF, arm.then, index))
    return tuple(conditions), tuple(edges)


def _join_mode(value: object, path: Path, report: Report) -> tuple[JoinMode, int]:
    match value:
        case "all":
            return JoinMode.ALL, 0
        case "any":
            return JoinMode.ANY, 0
        case int(count):
            return JoinMode.COUNT, count
        case _:
            message = f"must be `all`, `any` or a whole number; it is `{str(value)[:64]}`"
            report.add("bad-value", path, message, "write a number without quotes")
            return JoinMode.ALL, 0


def _retry(own: RetrySpec | None, default: RetrySpec | None, action: Action) -> Retry:
    """Resolve each part: step, then flow, then engine. A sub-flow is repeated only where its step says so."""
    repeats_flow = isinstance(action, SubFlow) or (
        isinstance(action, Foreach) and isinstance(action.body, SubFlow)
    )
    sources = [each for each in (own, None if repeats_flow else default) if each is not None]
    engine = Retry(max_attempts=1) if repeats_flow else Retry()
    attempts = next((each.max_attempts for each in sources if each.max_attempts is not None), None)
    backoff = next((each.backoff for each in sources if each.backoff is not None), None)
    no_retry_on = next((each.no_retry_on for each in sources if each.no_retry_on is not None), None)
    waits: tuple[float, ...] | Exponential
    if backoff is None:
        waits = engine.backoff
    elif isinstance(backoff, list):
        waits = tuple(float(seconds) for seconds in backoff)
    else:
        waits = Exponential(backoff.initial_s, backoff.factor, backoff.max_s, backoff.jitter)
    return Retry(
        max_attempts=engine.max_attempts if attempts is None else attempts,
        backoff=waits,
        no_retry_on=engine.no_retry_on if no_retry_on is None else tuple(no_retry_on),
    )
