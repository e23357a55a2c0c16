"""From rows back to a `Run`: what a decision needs, read from the tables after a restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wfcelery.core.decide.attempts import failure_value
from wfcelery.core.decide.losers import losers
from wfcelery.core.flow import Flow, Foreach, Gate, JoinMode, OnItemError
from wfcelery.core.state import (
    NO_ITEM,
    PEOPLE,
    Attempt,
    Error,
    Key,
    Loop,
    Prepared,
    Run,
    StepStatus,
    StoredSignal,
    Vote,
    WaitsFor,
)
from wfcelery.core.values import Json, canonical

_ACTIVE = (StepStatus.READY, StepStatus.RUNNING)
BEYOND = 2**31
_UNFIRED = (StepStatus.SKIPPED, StepStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `workflow_steps` as it was read: payloads only where they were asked for."""

    attempt: Attempt
    prepared: Prepared | None = None
    result: Json = None


def rebuild(
    flow: Flow,
    run: Run,
    rows: Iterable[Row],
    votes: tuple[Vote, ...] = (),
    signals: tuple[StoredSignal, ...] = (),
) -> Run:
    """Put the newest rows of a run together; with all rows and payloads it is loaded in full."""
    newest: dict[Key, Row] = {}
    for row in rows:
        known = newest.get(row.attempt.key)
        if known is None or known.attempt.attempt < row.attempt.attempt:
            newest[row.attempt.key] = row
    steps = {name: row for (name, item), row in newest.items() if item == NO_ITEM}
    items: dict[str, list[Row]] = {}
    for (name, item), row in newest.items():
        if item != NO_ITEM:
            items.setdefault(name, []).append(row)
    loops = {
        name: loop
        for name, row in steps.items()
        if (loop := _loop(flow, row, items.get(name, []))) is not None
    }
    kept = [row for row in newest.values() if row.attempt.item == NO_ITEM or row.attempt.is_open]
    attempts = {row.attempt.key: row.attempt for row in kept}
    open_rows = [attempt for attempt in attempts.values() if attempt.is_open]
    fired = frozenset(name for name, row in steps.items() if _has_fired(flow, row.attempt))
    return run._replace(
        attempts=attempts,
        prepared={row.attempt.key: row.prepared for row in kept if row.prepared is not None},
        results={name: row.result for name, row in steps.items() if row.attempt.result_digest is not None},
        frozen={
            name: _frozen(row) for name, row in steps.items() if isinstance(flow.steps[name].action, Gate)
        },
        loops=loops,
        votes=votes,
        signals=signals,
        fired=fired,
        losers=losers(flow, fired) if fired else frozenset(),
        open=len(open_rows),
        active=sum(attempt.status in _ACTIVE for attempt in open_rows),
        people=sum(attempt.waits_for in PEOPLE for attempt in open_rows),
    )


def _has_fired(flow: Flow, attempt: Attempt) -> bool:
    """Tell whether it is a join of any or n that has fired."""
    step = flow.steps[attempt.name]
    if step.join_mode is JoinMode.ALL or len(flow.ways_in[step.name]) == 1:
        return False
    begun = attempt.args_digest is not None or attempt.result_digest is not None
    if attempt.status in _UNFIRED:
        return begun
    return attempt.waits_for is not WaitsFor.JOIN


def _frozen(row: Row) -> Mapping[str, Prepared]:
    """Read back what the approvers of a gate were shown."""
    if row.prepared is None or not isinstance(row.prepared.args, Mapping):
        return {}
    frozen = {}
    for name, shown in row.prepared.args.items():
        secrets = row.prepared.secrets.get(name)
        if isinstance(shown, Mapping):
            frozen[name] = Prepared(shown.get("args"), secrets if isinstance(secrets, Mapping) else {})
    return frozen


def _loop(flow: Flow, row: Row, items: list[Row]) -> Loop | None:
    """Put a foreach together from its rows: under way, or ended with its run and ready to be repeated."""
    action = flow.steps[row.attempt.name].action
    if not isinstance(action, Foreach) or row.prepared is None or not isinstance(row.prepared.args, Mapping):
        return None
    elements = row.prepared.args.get("items")
    if not isinstance(elements, Sequence) or row.attempt.took is not None:
        return None
    if row.attempt.waits_for is not WaitsFor.ITEMS:
        return replace(_loop_to_repeat(elements, items), came_in=row.prepared.args.get("result"))
    again = _again(row.prepared.args.get("again"))
    came_in = row.prepared.args.get("result")
    ended = Loop(elements, tuple(again) if again else range(len(elements)), again, came_in=came_in)
    for item in items:
        ended = _take_in(ended, action, item)
    begun = [row for row in items if not again or row.attempt.attempt >= again.get(row.attempt.item, BEYOND)]
    out = sum(row.attempt.is_open for row in items)
    if ended.error is not None:
        return replace(ended, next=len(ended.order), out=out, closed=True)
    return replace(ended, next=len(begun), out=out)


def _take_in(loop: Loop, action: Foreach, row: Row) -> Loop:
    attempt = row.attempt
    value: Json = row.result
    if attempt.status is StepStatus.FAILED and attempt.attempt >= loop.again.get(attempt.item, 1):
        error = attempt.error or Error("internal", "failed without a reason")
        if action.on_item_error is OnItemError.FAIL:
            return loop.with_error(attempt.item, error)
        value = failure_value(error)
    elif attempt.status is not StepStatus.DONE:
        return loop
    return loop.with_result(attempt.item, value, len(canonical(value)))


def _loop_to_repeat(elements: Sequence[Json], items: list[Row]) -> Loop:
    last = {row.attempt.item: row for row in items}
    unfinished = [
        item
        for item in range(len(elements))
        if item not in last or last[item].attempt.status is not StepStatus.DONE
    ]
    again = {item: last[item].attempt.attempt + 1 if item in last else 1 for item in unfinished}
    loop = Loop(elements, unfinished, again)
    for row in items:
        if row.attempt.status is StepStatus.DONE:
            loop = loop.with_result(row.attempt.item, row.result, len(canonical(row.result)))
    return loop


def _again(pairs: Json) -> dict[int, int]:
    again: dict[int, int] = {}
    for pair in pairs if isinstance(pairs, Sequence) else ():
        if isinstance(pair, Sequence) and isinstance(pair[0], int) and isinstance(pair[1], int):
            again[pair[0]] = pair[1]
    return again
