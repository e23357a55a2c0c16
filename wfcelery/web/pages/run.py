"""The page of one run: head, why it waits, picture, steps on a timeline, history; each within bounds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from wfcelery.core import ids
from wfcelery.core.flow import SubFlow
from wfcelery.core.state import LIVE, NO_ITEM, Attempt, Run, WaitsFor
from wfcelery.core.values import Json
from wfcelery.core.words import plain
from wfcelery.drawing.svg import svg
from wfcelery.errors import InvalidInput, NotFound
from wfcelery.insight.reasons import reasons
from wfcelery.rights import Permission, Resource
from wfcelery.store import explain, notices, run_page
from wfcelery.web import run_acts, run_sheet, words
from wfcelery.web.doors import Door
from wfcelery.web.guard import desk_of, visitor_of
from wfcelery.web.rendering import path_to, render
from wfcelery.web.streams import Sight

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.core.flow import Flow
    from wfcelery.store import Connection

STEPS: Final = 100
EVENTS: Final = 15
EVENTS_OF_A_PAGE: Final = 200
NOTICES: Final = 20
MOST_CHILDREN: Final = 50
LONGEST: Final = 20_000
"""Of input and output, in characters: a page is to be read."""


def show(request: Request) -> Response:
    """Show a run."""
    desk, who = desk_of(request), visitor_of(request).who
    now = time.time()
    first = number(request, "from", 0)
    with desk.reading() as conn:
        head = allowed(request, conn)
        run = head.run
        flow = desk.flow_of(conn, run.definition_id)
        attempts = run_page.attempts(conn, run.id)
        tallies = run_sheet.tallies(conn, flow, run.id, attempts)
        span = run_sheet.span_of(run, attempts, now)
        page = run_page.previews(conn, run.id, attempts[first : first + STEPS])
        opened = run_page.opened(conn, run.id, {each.attempt.name for each in page})
        facts = explain.facts(conn, lambda each: desk.flow_of(conn, each), run.id)
        events = run_page.events(conn, run.id, limit=EVENTS)
        sent = notices.of_run(conn, run.id, NOTICES)
        children = _children(conn, flow, run, attempts)
    rows = [
        run_sheet.row(
            flow,
            each,
            opened.get((each.attempt.name, each.attempt.attempt)),
            span,
            now,
            tally=tallies.get(each.attempt.name, ""),
        )
        for each in page
    ]
    drawn = run_sheet.picture(flow, attempts, tallies)
    gates = sorted({each.name for each in attempts if _is_gate(each)})
    return render(
        request,
        "run.html",
        run=run,
        version=head.version,
        sign=words.sign_of_run(run.status),
        took=words.took((run.completed_at or now) - run.created_at),
        error=run.error,
        reasons=[] if facts is None else reasons(facts, now, lease_s=desk.settings.lease_s),
        graph=svg(
            flow,
            drawn.statuses,
            tallies=drawn.tallies,
            taken=drawn.taken,
            href=lambda step: path_to(request, "step", run_id=run.id, step=step),
        ),
        flow=flow,
        rows=rows,
        scale=words.took(span.length),
        total=len(attempts),
        first=first,
        size=STEPS,
        events=events,
        step_path=_step_path(request, run.id),
        notices=sent,
        children=children,
        gates=gates,
        may_decide=desk.may(who, Permission.DECIDE, Resource(run.name, run.id, run.created_by)),
        acts=run_acts.possible(desk, who, run),
        input=written(run.input),
        output=None if head.output is None and run.completed_at is None else written(head.output),
        live=f"{path_to(request, 'run_stream', run_id=run.id)}?seen={run.seq}" if run.status in LIVE else "",
    )


def history(request: Request) -> Response:
    """Show a page of what has happened, the newest first."""
    desk = desk_of(request)
    before = number(request, "before", 0) or None
    with desk.reading() as conn:
        head = allowed(request, conn)
        found = run_page.events(conn, head.run.id, before=before, limit=EVENTS_OF_A_PAGE + 1)
    events = found[:EVENTS_OF_A_PAGE]
    older = events[-1].seq if len(found) > EVENTS_OF_A_PAGE else 0
    return render(
        request,
        "events.html",
        run=head.run,
        version=head.version,
        events=events,
        step_path=_step_path(request, head.run.id),
        older=older,
        before=before,
    )


async def stream(request: Request) -> Response:
    """Tell when a run changes, until it has ended."""
    desk = desk_of(request)
    run_id = request.path_params["run_id"]
    is_allowed = False

    def look(conn: Connection) -> Sight:
        nonlocal is_allowed
        if not is_allowed:  # The first look is each visitor's own; those after it are shared.
            allowed(request, conn)
            is_allowed = True
        found = run_page.position(conn, run_id)
        if found is None:
            raise NotFound("run", run_id)
        seq, status, still_open = found
        return Sight(str(seq), ended=status not in LIVE and not still_open)

    return await desk.streams.response(request, f"run:{run_id}", look)


def allowed(request: Request, conn: Connection) -> run_page.Head:
    """Read the run of a request's path; one that its visitor may not read is not there."""
    head = run_page.head(conn, request.path_params["run_id"])
    resource = Resource(head.run.name, head.run.id, head.run.created_by)
    if not desk_of(request).may(visitor_of(request).who, Permission.READ, resource):
        raise NotFound("run", head.run.id)
    return head


def _children(
    conn: Connection, flow: Flow, run: Run, attempts: Sequence[Attempt]
) -> list[tuple[str, str, str]]:
    """Name the runs that steps of this one have started: step, id and status. Items of loops have pages."""
    wanted = {
        ids.child_id(run.id, each.name, NO_ITEM, each.attempt): each.name
        for each in attempts
        if each.name in flow.steps and isinstance(flow.steps[each.name].action, SubFlow)
    }
    some = list(wanted)[-MOST_CHILDREN:]
    found = run_page.existing(conn, some)
    return [(wanted[each], each, found[each]) for each in some if each in found]


def _step_path(request: Request, run_id: str) -> Callable[[str, int], str]:
    """Give what makes the address of a step, or of an item of it."""

    def path(step: str, item: int) -> str:
        address = path_to(request, "step", run_id=run_id, step=step)
        return address if item == NO_ITEM else f"{address}?item={item}"

    return path


def _is_gate(each: Attempt) -> bool:
    return each.is_open and each.waits_for in (WaitsFor.APPROVAL, WaitsFor.PERSON)


def written(value: Json) -> str:
    """Write a value for people, as much of it as anybody reads on a page."""
    text = plain(json.dumps(value, ensure_ascii=False, indent=2))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters"


def number(request: Request, name: str, default: int) -> int:
    """Read a number from the query of an address. Raises `InvalidInput`."""
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 15:  # noqa: PLR2004 - no number is that long
        raise InvalidInput(name, "must be a number")
    return int(text)


DOORS: Final = (
    Door("GET", "/runs/{run_id}", show, "run", Permission.READ),
    Door("GET", "/runs/{run_id}/events", history, "events", Permission.READ),
    Door("GET", "/runs/{run_id}/stream", stream, "run_stream", Permission.READ),
)
