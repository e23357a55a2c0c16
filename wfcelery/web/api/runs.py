"""Reading runs: lists, one run, its steps, its events, and why it does not move."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal, cast

from pydantic import Field

from wfcelery.insight import explaining
from wfcelery.rights import Permission
from wfcelery.store import pages, views
from wfcelery.web.api import cursor
from wfcelery.web.api.access import resource_of, run_of
from wfcelery.web.api.fields import (
    AfterSeq,
    Asked,
    Cursor,
    Limit,
    Line,
    LongLimit,
    Moment,
    Nothing,
    seconds,
)
from wfcelery.web.api.operation import Call, Reply

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.store import Connection

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of payloads on one page; one thing is on it at least, however large."""
FIRST_STEPS: Final = 200
MOST_SCANNED: Final = 5_000
_SCAN: Final = 500


class RunsQuery(Asked):
    """Which runs, and which page of them."""

    status: list[Literal["running", "paused", "completed", "failed", "cancelled"]] = Field(
        default_factory=list
    )
    flow: Line | None = None
    key: Line | None = None
    tag: Line | None = None
    user: Line | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class StepsQuery(Asked):
    """Which page of steps."""

    limit: LongLimit = FIRST_STEPS
    cursor: Cursor | None = None


class EventsQuery(Asked):
    """Which events."""

    after: AfterSeq = 0
    limit: LongLimit = 200


def listing(call: Call[RunsQuery, None]) -> Reply:
    """List the runs that may be read; those that may not are passed over, and bounded many at a time."""
    query, desk = call.query, call.desk
    wanted = pages.Wanted(
        statuses=query.status,
        name=query.flow,
        key=query.key,
        created_by=query.user,
        tag=query.tag,
        since=seconds(query.since),
        until=seconds(query.until),
    )
    after: tuple[float, str] | None = None
    if query.cursor is not None:
        at, last = cast("list[Json]", cursor.read(desk, "runs", query.cursor))
        after = (float(cast("float", at)), str(last))
    with desk.reading() as conn:
        chosen, after = _chosen(call, conn, wanted, after)
        items = pages.runs(conn, chosen)
    following = None if after is None else cursor.write(desk, "runs", list(after))
    return Reply({"items": items, "next": following})


def one(call: Call[Nothing, None]) -> Reply:
    """Show a run with its first steps."""
    with call.desk.reading() as conn:
        run_id = run_of(call, conn).id
        [shown] = pages.runs(conn, [run_id])
        steps, last = pages.steps(conn, run_id, limit=FIRST_STEPS, most_bytes=MOST_BYTES)
    return Reply({**shown, "steps": steps, "steps_next": _after_step(call, run_id, last)})


def steps(call: Call[StepsQuery, None]) -> Reply:
    """Show a page of a run's steps."""
    query = call.query
    with call.desk.reading() as conn:
        run_id = run_of(call, conn).id
        after = -1
        if query.cursor is not None:
            after = int(cast("int", cursor.read(call.desk, f"steps:{run_id}", query.cursor)))
        items, last = pages.steps(conn, run_id, after=after, limit=query.limit, most_bytes=MOST_BYTES)
    return Reply({"items": items, "next": _after_step(call, run_id, last)})


def events(call: Call[EventsQuery, None]) -> Reply:
    """Show what has happened in a run after an event."""
    with call.desk.reading() as conn:
        run_id = run_of(call, conn).id
        items, following = page_of_events(conn, run_id, call.query.after, call.query.limit)
    return Reply({"items": items, "next": following})


def page_of_events(
    conn: Connection, run_id: str, after: int, limit: int
) -> tuple[list[dict[str, Json]], int | None]:
    """Read events, bounded in number and bytes; give also the last number, if there may be more."""
    last = pages.last_event(conn, run_id, after=after, limit=limit, most_bytes=MOST_BYTES)
    if last is None:
        return [], None
    found = views.events(conn, run_id, after_seq=after, limit=min(limit, last - after))
    more = pages.last_event(conn, run_id, after=last, limit=1, most_bytes=MOST_BYTES)
    return found, None if more is None else last


def explain(call: Call[Nothing, None]) -> Reply:
    """Say why a run is not moving."""
    with call.desk.reading() as conn:
        run = run_of(call, conn)
    status, reasons = explaining.explain(call.desk.settings, call.desk.reading, run.id, time.time())
    return Reply({"run_id": run.id, "status": status, "reasons": [each.as_json() for each in reasons]})


def _chosen(
    call: Call[RunsQuery, None], conn: Connection, wanted: pages.Wanted, after: tuple[float, str] | None
) -> tuple[list[str], tuple[float, str] | None]:
    """Choose the runs of a page, and say after which one the next begins; None if there are no more."""
    chosen, after = _readable(call, conn, wanted, after)
    sizes = pages.sizes(conn, [run.id for run in chosen])
    total = 0
    for place, run in enumerate(chosen):
        total += sizes.get(run.id, 0)
        if place and total > MOST_BYTES:
            last = chosen[place - 1]
            return [each.id for each in chosen[:place]], (last.created_at, last.id)
    return [each.id for each in chosen], after


def _readable(
    call: Call[RunsQuery, None], conn: Connection, wanted: pages.Wanted, after: tuple[float, str] | None
) -> tuple[list[pages.Place], tuple[float, str] | None]:
    chosen: list[pages.Place] = []
    scanned = 0
    while scanned < MOST_SCANNED:
        wish = min(_SCAN, call.query.limit + 1) if call.desk.is_open else _SCAN
        found = pages.places(conn, wanted, after=after, limit=wish)
        for run in found:
            scanned += 1
            if call.desk.may(call.who, Permission.READ, resource_of(run)):
                if len(chosen) == call.query.limit:
                    return chosen, after
                chosen.append(run)
            after = (run.created_at, run.id)
        if len(found) < wish:
            return chosen, None
    return chosen, after


def _after_step(
    call: Call[StepsQuery, None] | Call[Nothing, None], run_id: str, last: int | None
) -> str | None:
    return None if last is None else cursor.write(call.desk, f"steps:{run_id}", last)
