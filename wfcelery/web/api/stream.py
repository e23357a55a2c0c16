"""The events of a run as they happen: server-sent events, numbered so that who comes back misses none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from wfcelery.errors import InvalidInput, NotReachable
from wfcelery.rights import Permission
from wfcelery.store import runs
from wfcelery.web.api.access import resource_of, run_of
from wfcelery.web.api.fields import AfterSeq, Asked, number
from wfcelery.web.api.operation import Call
from wfcelery.web.api.runs import page_of_events
from wfcelery.web.desk import MOST_STREAMS

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from wfcelery.core.values import Json
    from wfcelery.store import Connection
    from wfcelery.store.pages import Place

KIND: Final = "text/event-stream"
LOOK_EVERY_S: Final = 0.5
HEARTBEAT_S: Final = 15.0
LONGEST_S: Final = 900.0
"""A stream ends after this; a client comes back with `Last-Event-ID`, and is asked again who it is."""
AT_ONCE: Final = 200


class StreamQuery(Asked):
    """After which event to begin; the header Last-Event-ID says it, too, and counts more."""

    after: AfterSeq = 0


@dataclass(frozen=True, slots=True)
class News:
    """Events since the last look. `ended`: there will be no more."""

    events: list[dict[str, Json]]
    ended: bool


async def stream(call: Call[StreamQuery, None]) -> Response:
    """Send what happens in a run until it has ended."""
    after = _seen(call)
    run = await run_in_threadpool(_run, call)
    headers = {"X-Accel-Buffering": "no"}
    if call.request.method == "HEAD":
        return Response(media_type=KIND, headers=headers)
    if _Stream.open >= MOST_STREAMS:
        raise NotReachable("another stream", f"{MOST_STREAMS} are open; come back later")
    return _Stream(_lines(call, run, after), media_type=KIND, headers=headers)


class _Stream(StreamingResponse):
    """Counted from its first byte to its last, however it ends."""

    open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _Stream.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            _Stream.open -= 1


async def _lines(call: Call[StreamQuery, None], run: Place, after: int) -> AsyncIterator[str]:
    clock = asyncio.get_running_loop().time
    until, quiet_since = clock() + LONGEST_S, clock()
    yield "retry: 2000\n\n"
    while clock() < until:
        try:
            news = await run_in_threadpool(_news, call, run, after)
        except NotReachable:
            news = News([], ended=False)  # What is away comes back; nobody need ask again for that.
        for event in news.events:
            after = int(str(event["seq"]))
            quiet_since = clock()
            yield f"id: {after}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if news.ended:
            yield f"id: {after}\nevent: end\ndata: {{}}\n\n"
            return
        if len(news.events) < AT_ONCE:
            await asyncio.sleep(LOOK_EVERY_S)
        if clock() - quiet_since >= HEARTBEAT_S:
            quiet_since = clock()
            yield ": still here\n\n"


def _news(call: Call[StreamQuery, None], run: Place, after: int) -> News:
    if not call.desk.may(call.who, Permission.READ, resource_of(run)):
        return News([], ended=True)
    with call.desk.reading() as conn:
        events, following = page_of_events(conn, run.id, after, AT_ONCE)
        return News(events, ended=following is None and _has_ended(conn, run.id))


def _has_ended(conn: Connection, run_id: str) -> bool:
    standing = runs.standing(conn, run_id)
    return standing is None or standing.ended


def _run(call: Call[StreamQuery, None]) -> Place:
    with call.desk.reading() as conn:
        return run_of(call, conn)


def _seen(call: Call[StreamQuery, None]) -> int:
    header = call.request.headers.get("last-event-id", "")
    if not header:
        return call.query.after
    seen = number(header)
    if seen is None:
        raise InvalidInput("last-event-id", "must be the number of an event")
    return seen
