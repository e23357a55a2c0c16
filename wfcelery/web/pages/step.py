"""One step of a run, or one item of a foreach: what it was given, what came of it, every attempt."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from wfcelery.core import ids
from wfcelery.core.flow import Foreach, SubFlow
from wfcelery.core.state import NO_ITEM, Attempt, WaitsFor
from wfcelery.drawing.words import kind, what
from wfcelery.errors import NotFound
from wfcelery.rights import Permission, Resource
from wfcelery.store import notices, run_page
from wfcelery.store.run_page import Shown
from wfcelery.web import run_sheet
from wfcelery.web.doors import Door
from wfcelery.web.guard import desk_of, visitor_of
from wfcelery.web.pages.run import LONGEST, allowed, number, written
from wfcelery.web.rendering import render

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.core.flow import Flow
    from wfcelery.store import Connection
    from wfcelery.store.run_page import Head

ITEMS: Final = 100


def show(request: Request) -> Response:
    """Show a step; `?item=` one item of a foreach."""
    desk, now = desk_of(request), time.time()
    name = request.path_params["step"]
    item = number(request, "item", NO_ITEM)
    after = number(request, "after", NO_ITEM), number(request, "after_attempt", 0)
    with desk.reading() as conn:
        head = allowed(request, conn)
        flow = desk.flow_of(conn, head.run.definition_id)
        if name not in flow.steps:
            raise NotFound("step", f"{name} of {head.run.name}@{head.version}")
        attempts = run_page.attempts_at(conn, head.run.id, name, item)
        if item != NO_ITEM and not attempts:
            raise NotFound("item", f"{item} of step {name} (it has not begun, or there is none)")
        newest = attempts[0] if attempts else None
        payload = (
            None
            if newest is None
            else run_page.payload(conn, head.run.id, name, item, newest.attempt, longest=LONGEST)
        )
        is_loop = isinstance(flow.steps[name].action, Foreach) and item == NO_ITEM
        items = run_page.items(conn, head.run.id, name, after=after, limit=ITEMS + 1) if is_loop else []
        counts = run_page.tally(conn, head.run.id, name) if is_loop else None
        total = run_page.total_items(conn, head.run.id, name) if is_loop else None
        opened = run_page.opened(conn, head.run.id, {name}) if item == NO_ITEM else {}
        sent = [each for each in notices.of_run(conn, head.run.id) if each.step == name]
        children = _children(conn, flow, head, name, [*attempts, *(each.attempt for each in items)])
    span = run_sheet.span_of(head.run, attempts, now)
    return render(
        request,
        "step.html",
        run=head.run,
        version=head.version,
        step=flow.steps[name],
        kind=kind(flow.steps[name].action),
        what=what(flow, flow.steps[name]),
        item=None if item == NO_ITEM else item,
        newest=None if newest is None else run_sheet.row(flow, Shown(newest, None), None, span, now),
        rows=[
            run_sheet.row(flow, Shown(each, None), opened.get((name, each.attempt)), span, now)
            for each in attempts
        ],
        args=None if payload is None else _pretty(payload.args),
        result=None if payload is None else _pretty(payload.result),
        items=[run_sheet.row(flow, each, None, span, now) for each in items[:ITEMS]],
        counts=None if counts is None else sorted(counts.counts.items()),
        is_exact=counts is None or counts.is_exact,
        total=total,
        next_item=items[ITEMS - 1].attempt if len(items) > ITEMS else None,
        is_first=after[0] == NO_ITEM,
        notices=sent,
        children=children,
        may_decide=desk.may(
            visitor_of(request).who,
            Permission.DECIDE,
            Resource(head.run.name, head.run.id, head.run.created_by),
        ),
        is_gate=newest is not None
        and newest.is_open
        and newest.waits_for in (WaitsFor.APPROVAL, WaitsFor.PERSON),
        live=head.run.is_live,
    )


def _children(
    conn: Connection, flow: Flow, head: Head, name: str, attempts: list[Attempt]
) -> dict[tuple[int, int], tuple[str, str]]:
    """Give id and status of the runs that these attempts have started, by item and attempt."""
    action = flow.steps[name].action
    body = action.body if isinstance(action, Foreach) else action
    if not isinstance(body, SubFlow):
        return {}
    wanted = {
        (each.item, each.attempt): ids.child_id(head.run.id, name, each.item, each.attempt)
        for each in attempts
    }
    found = run_page.existing(conn, list(wanted.values()))
    return {place: (each, found[each]) for place, each in wanted.items() if each in found}


def _pretty(text: str | None) -> str | None:
    """Write a column for people; one that was cut is no JSON any more and stays as it is."""
    if text is None:
        return None
    try:
        return written(json.loads(text))
    except ValueError:
        return f"{text}\n… and more"


DOORS: Final = (Door("GET", "/runs/{run_id}/steps/{step}", show, "step", Permission.READ),)
