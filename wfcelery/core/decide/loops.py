"""A foreach under way: a window of items is out, results come in, and the last one ends the step."""

from __future__ import annotations

from dataclasses import replace

from wfcelery.core import values
from wfcelery.core.decide import endings
from wfcelery.core.decide.attempts import fail, finish, launch
from wfcelery.core.decide.draft import Draft
from wfcelery.core.decide.render import items_of, render_work, template_of
from wfcelery.core.flow import Foreach
from wfcelery.core.state import NO_ITEM, Attempt, Error, Loop, Prepared, StepStatus, WaitsFor
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError, InvalidInput


def begin_loop(draft: Draft, foreach: Foreach, attempt: Attempt, value: Json) -> None:
    """Let the turn of a foreach come: its items are rendered once, here."""
    items = items_of(draft, draft.step_of(attempt), foreach, value)
    if not isinstance(items, (list, tuple)):
        raise InvalidInput("foreach.items", f"must be a list, not {values.type_name(items)}")
    if len(items) > draft.limits.foreach_items:
        most = f"at most {draft.limits.foreach_items:,} are allowed"
        raise InvalidInput("foreach.items", f"has {len(items):,} items; {most}")
    reads_result = any(reference.root == "result" for reference in template_of(foreach.body).references)
    open_loop(draft, attempt, Loop(items, range(len(items)), came_in=value if reads_result else None))


def open_loop(draft: Draft, attempt: Attempt, loop: Loop) -> None:
    """Open the row of a foreach; its arguments say what a later reader needs to go on with it."""
    args: dict[str, Json] = {"items": loop.items}
    if loop.again:
        args["again"] = [[item, loop.again[item]] for item in loop.order]
    if loop.came_in is not None:
        args["result"] = loop.came_in
    draft.move(attempt._replace(waits_for=WaitsFor.ITEMS), "items_opened", prepared=Prepared(args))
    draft.loops[attempt.name] = loop
    draft.busy_loops.append(attempt.name)


def go_on(draft: Draft, name: str) -> None:
    """Start as many items as may be out; end the step when none is left."""
    loop = draft.loops.get(name)
    row = draft.attempts[name, NO_ITEM]
    foreach = draft.flow.steps[name].action
    if loop is None or not isinstance(foreach, Foreach):
        return
    if loop.size > draft.limits.collected_bytes and loop.error is None:
        reason = f"the results of {name} exceed {draft.limits.collected_bytes:,} bytes of JSON together"
        loop = replace(loop, error=Error("result-too-large", reason))
    if loop.error is not None and not loop.closed:
        loop = _drop_unstarted(draft, name, loop)
    while loop.error is None and loop.out < foreach.concurrency and loop.next < len(loop.order):
        item = loop.order[loop.next]
        loop = replace(loop, next=loop.next + 1, out=loop.out + 1)
        draft.loops[name] = loop
        _start_item(draft, foreach, Attempt(name, item, loop.again.get(item, 1)), loop.items[item])
        loop = draft.loops[name]
    draft.loops[name] = loop
    if loop.out == 0 and (loop.error is not None or loop.next == len(loop.order)):
        _end_loop(draft, row, loop)


def _start_item(draft: Draft, foreach: Foreach, attempt: Attempt, item: Json) -> None:
    came_in = draft.loops[attempt.name].came_in
    try:
        prepared = render_work(draft, foreach.body, item=item, index=attempt.item, result=came_in)
    except ExpressionError as error:
        fail(draft, attempt, Error("bad-template", str(error)), may_retry=False)
    else:
        launch(draft, attempt, prepared)


def _drop_unstarted(draft: Draft, name: str, loop: Loop) -> Loop:
    """After an item has failed for good, cancel those not under way; no more of them can appear."""
    for attempt in list(draft.attempts.values()):
        if attempt.name == name and attempt.item != NO_ITEM and not _is_under_way(attempt):
            endings.cancel_attempt(draft, attempt, "another item failed")
            loop = replace(loop, out=loop.out - 1)
    return replace(loop, next=len(loop.order), closed=True)


def _is_under_way(attempt: Attempt) -> bool:
    """Tell whether somebody works on the item: a worker, a sub-run, or whoever will report."""
    has_child = attempt.waits_for is WaitsFor.FLOW and attempt.sent_at is not None
    return attempt.status is StepStatus.RUNNING or attempt.waits_for is WaitsFor.REPORT or has_child


def _end_loop(draft: Draft, row: Attempt, loop: Loop) -> None:
    del draft.loops[row.name]
    if loop.error is not None:
        fail(draft, row, loop.error, may_retry=False)
        return
    results: list[Json] = [None] * len(loop.items)
    rest = loop.collected
    while rest is not None:
        item, value, rest = rest
        results[item] = value
    finish(draft, row, results)
