"""The events of a run as they happen: server-sent events, numbered so that who comes back misses none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool

from wfcelery.core.state import LIVE
from wfcelery.errors import InvalidInput, NotFound, NotReachable
from wfcelery.rights import Permission
from wfcelery.store import run_page
from wfcelery.web.api.access import resource_of, run_of
from wfcelery.web.api.fields import AfterSeq, Asked, number
from wfcelery.web.api.operation import Call
from wfcelery.web.api.runs import page_of_events
from wfcelery.web.streams import KIND, LOOK_EVERY_S, Sight

if TYPE_CHECKING:
    from starlette.responses import Response

    from wfcelery.core.values import Json
    from wfcelery.store import Connection
    from wfcelery.store.pages import Place

__all__ = ["KIND", "StreamQuery", "stream"]

AT_ONCE: Final = 200


class StreamQuery(Asked):
    """After which event to begin; the header Last-Event-ID says it, too, and counts more."""

    after: AfterSeq = 0


async def stream(call: Call[StreamQuery, None]) -> Response:
    """Send what happens in a run until it has ended; looks at the tables are shared with all who watch it."""
    seen = _seen(call)
    run = await run_in_threadpool(_run, call)
    if call.desk.streams.is_full(call.request):
        raise NotReachable("another stream", "too many are open; ask again later")

    async def tell(position: str, sight: Sight) -> AsyncIterator[str]:
        after, last = int(position), int(sight.position)
        while after < last:
            # No further than to what was seen: what has come since is told with the next look.
            events = await run_in_threadpool(_events, call, run, after, min(AT_ONCE, last - after))
            if events is None:
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            for each in events:
                yield f"id: {each['seq']}\nevent: {each['type']}\ndata: {json.dumps(each)}\n\n"
            after = int(str(events[-1]["seq"])) if events else last

    return await call.desk.streams.response(
        call.request, f"run:{run.id}", lambda conn: _look(conn, run.id), seen=str(seen), tell=tell
    )


def _look(conn: Connection, run_id: str) -> Sight:
    found = run_page.position(conn, run_id)
    if found is None:
        raise NotFound("run", run_id)
    seq, status, still_open = found
    return Sight(str(seq), ended=status not in LIVE and not still_open)


def _events(
    call: Call[StreamQuery, None], run: Place, after: int, limit: int
) -> list[dict[str, Json]] | None:
    """Read events; None while the tables are away: the client waits, and so do we."""
    if not call.desk.may(call.who, Permission.READ, resource_of(run)):
        return []
    try:
        with call.desk.reading() as conn:
            return page_of_events(conn, run.id, after, limit)[0]
    except NotReachable:
        return None


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
