"""Runs: started, looked at, listed, stopped, and what has happened in them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import Field, JsonValue

from wfcelery.core.values import Json
from wfcelery.insight import explaining
from wfcelery.mcp import gates
from wfcelery.mcp.desk import resource_of
from wfcelery.mcp.fields import (
    MOST_TAGS,
    PAGE_BYTES,
    Asked,
    Cursor,
    Limit,
    Line,
    Plain,
    Prose,
    RunId,
    bounded,
    bounded_text,
)
from wfcelery.mcp.quota import check_live
from wfcelery.mcp.shapes import (
    EventPage,
    EventShown,
    Failure,
    Reason,
    RunListed,
    RunPage,
    RunStatus,
    Stands,
    Started,
    Status,
    StepShown,
)
from wfcelery.mcp.starting import flow_named
from wfcelery.rights import Permission
from wfcelery.store import pages, views

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.mcp.desk import Desk
    from wfcelery.store import Connection

STEPS: Final = 50
APPROVAL: Final = "approval"
"""The code of the reason that a gate waits."""
MOST_REASONS: Final = 50
MOST_SCANNED: Final = 5_000
_SCAN: Final = 500


class Start(Asked):
    """What to start."""

    flow: Annotated[Line, Field(description="The name of a flow that is kept, or `name@version`.")]
    input: Annotated[Plain, Field(description="What the flow's `input` asks for.")] = None
    key: Annotated[
        Line | None,
        Field(description="A business key: while a run of the flow with this key lives, it is given back."),
    ] = None
    tags: Annotated[list[Line], Field(default_factory=list, max_length=MOST_TAGS)]
    run_id: Annotated[
        RunId | None,
        Field(description="The id that the run shall have: the same call again finds the run, at any time."),
    ] = None


class Ask(Asked):
    """Which run, and which page of its steps."""

    run_id: RunId
    cursor: Annotated[Cursor | None, Field(description="`steps_next` of the page before.")] = None


class ListRuns(Asked):
    """Which runs, and which page of them."""

    status: Annotated[list[Status], Field(default_factory=list)]
    flow: Line | None = None
    key: Line | None = None
    tag: Line | None = None
    created_by: Line | None = None
    limit: Limit = 20
    cursor: Cursor | None = None


class Cancel(Asked):
    """Which run, and why, for the record."""

    run_id: RunId
    reason: Prose = ""


class Events(Asked):
    """Which events."""

    run_id: RunId
    after: Annotated[int, Field(ge=0, le=2**53, description="`next` of the page before.")] = 0
    limit: Limit = 50


def start(desk: Desk, who: Principal, args: Start) -> Started:
    """Start a run of a flow that is kept, or find the one that the same call has started before."""
    with desk.reading() as conn:
        flow_named(desk, conn, who, args.flow)
        if args.run_id is None or pages.place(conn, args.run_id) is None:
            check_live(conn, who)
    desk.quota.take(who)
    run = desk.workflows.start(
        args.flow, cast("Json", args.input), key=args.key, tags=args.tags, run_id=args.run_id, by=who
    )
    with desk.reading() as conn:
        # Who may start runs need not be one who may read them.
        place = pages.place(conn, run.id)
    is_theirs = place is not None and desk.may(who, Permission.READ, resource_of(place))
    stands = cast("Status", place.status) if place is not None and is_theirs else None
    return Started(run_id=run.id, created=bool(run.created), status=stands)


def status(desk: Desk, who: Principal, args: Ask) -> RunStatus:
    """Show a run: how it stands, why it is not moving, which gates wait, and its steps."""
    what = f"steps:{args.run_id}"
    with desk.reading() as conn:
        run = desk.run_of(conn, who, args.run_id)
        after = -1 if args.cursor is None else int(cast("int", desk.read_cursor(what, args.cursor)))
        [shown] = pages.runs(conn, [run.id])
        steps, last = pages.steps(conn, run.id, after=after, limit=STEPS, most_bytes=PAGE_BYTES)
    _, reasons = explaining.explain(desk.settings, desk.reading, run.id, time.time())
    steps_that_wait = [each.step for each in reasons if each.code == APPROVAL and each.step is not None]
    with desk.reading() as conn:
        waiting = gates.waiting(desk, conn, who, run, steps_that_wait[: gates.MOST_GATES])
    return RunStatus(
        **_listed(shown).model_dump(),
        input=cast("JsonValue", bounded(shown["input"])),
        output=cast("JsonValue", bounded(shown["output"])),
        reasons=[Reason.model_validate(each.as_json()) for each in reasons[:MOST_REASONS]],
        gates=waiting,
        steps=[_step(each) for each in steps],
        steps_next=None if last is None else desk.write_cursor(what, last),
    )


def listing(desk: Desk, who: Principal, args: ListRuns) -> RunPage:
    """List the runs that may be read; those that may not are passed over, and bounded many at a time."""
    wanted = pages.Wanted(
        statuses=args.status, name=args.flow, key=args.key, created_by=args.created_by, tag=args.tag
    )
    after: tuple[float, str] | None = None
    if args.cursor is not None:
        at, last = cast("list[Json]", desk.read_cursor("runs", args.cursor))
        after = (float(cast("float", at)), str(last))
    with desk.reading() as conn:
        chosen, after = _readable(desk, who, conn, wanted, after=after, limit=args.limit)
        items = [_listed(each) for each in pages.runs(conn, chosen)]
    return RunPage(items=items, next=None if after is None else desk.write_cursor("runs", list(after)))


def cancel(desk: Desk, who: Principal, args: Cancel) -> Stands:
    """Stop a run for good. The executor judges, and writes down, whether this is theirs to ask for."""
    with desk.reading() as conn:
        desk.run_of(conn, who, args.run_id)
    desk.workflows.cancel(args.run_id, args.reason, by=who)
    return Stands(run_id=args.run_id, status=cast("Status", desk.workflows.status(args.run_id)))


def events(desk: Desk, who: Principal, args: Events) -> EventPage:
    """Show what has happened in a run after an event."""
    with desk.reading() as conn:
        run_id = desk.run_of(conn, who, args.run_id).id
        last = pages.last_event(conn, run_id, after=args.after, limit=args.limit, most_bytes=PAGE_BYTES)
        if last is None:
            return EventPage(items=[], next=None)
        limit = min(args.limit, last - args.after)
        found = views.events(conn, run_id, after_seq=args.after, limit=limit)
        more = pages.last_event(conn, run_id, after=last, limit=1, most_bytes=PAGE_BYTES)
    items = [EventShown.model_validate({**each, "data": bounded(each["data"])}) for each in found]
    return EventPage(items=items, next=None if more is None else last)


def _readable(
    desk: Desk,
    who: Principal,
    conn: Connection,
    wanted: pages.Wanted,
    *,
    after: tuple[float, str] | None,
    limit: int,
) -> tuple[list[str], tuple[float, str] | None]:
    """Choose the runs of a page, and say after which one the next begins; None if there are no more."""
    chosen: list[str] = []
    scanned = 0
    while scanned < MOST_SCANNED:
        found = pages.places(conn, wanted, after=after, limit=_SCAN)
        for run in found:
            scanned += 1
            if desk.may(who, Permission.READ, resource_of(run)):
                if len(chosen) == limit:
                    return chosen, after
                chosen.append(run.id)
            after = (run.created_at, run.id)
        if len(found) < _SCAN:
            return chosen, None
    return chosen, after


def _listed(shown: dict[str, Json]) -> RunListed:
    renamed = {"run_id": shown["id"], "flow": shown["name"], "error": _failure(shown["error"])}
    same = ("version", "status", "created_by", "key", "tags", "created_at", "completed_at")
    return RunListed.model_validate({**{name: shown[name] for name in same}, **renamed})


def _step(shown: dict[str, Json]) -> StepShown:
    same = ("item", "attempt", "status", "tool", "due_at", "started_at", "completed_at")
    return StepShown.model_validate(
        {
            **{name: shown[name] for name in same},
            "step": shown["name"],
            "args": bounded(shown["args"]),
            "result": bounded(shown["result"]),
            "error": _failure(shown["error"]),
        }
    )


def _failure(error: Json) -> Failure | None:
    if not isinstance(error, dict):
        return None
    return Failure(type=str(error.get("type")), message=bounded_text(str(error.get("message"))))
