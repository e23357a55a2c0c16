"""News without a reload: server-sent events which say that something has changed, and nothing of what.

A page names its stream in `data-live`; `static/live.js` fetches the page again when it hears `changed`. The
`id` of each event is the position of what is watched: who comes back with it as `Last-Event-ID` (or comes for
the first time with `?seen=`) hears at once what was missed. All streams share one look at the tables.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from wfcelery.errors import NotFound, NotReachable

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from wfcelery.store import Connection

LOOK_EVERY_S: Final = 0.5
HEARTBEAT_S: Final = 15.0
LONGEST_S: Final = 900.0
"""A stream ends after this; the browser comes back by itself, and is asked again who it is."""
KIND: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Sight:
    """How something stood when it was looked at. `position` is one line; `ended`: it changes no more."""

    position: str
    ended: bool = False


Look = Callable[["Connection"], Sight]
Tell = Callable[[str, Sight], AsyncIterator[str]]
"""Writes events for what has changed since the position that was seen last."""


@dataclass(slots=True)
class _Topic:
    look: Look
    sight: Sight
    listeners: set[asyncio.Event] = field(default_factory=set)

    def tell(self, sight: Sight) -> None:
        if sight != self.sight:
            self.sight = sight
            self.wake()

    def wake(self) -> None:
        for each in self.listeners:
            each.set()


class Streams:
    """The streams of one app. Everything but the looking happens in the app's event loop."""

    def __init__(
        self, reading: Callable[[], AbstractContextManager[Connection]], most: int, most_each: int
    ) -> None:
        self._reading = reading
        self._most = most
        self._most_each = most_each
        self._open: Counter[str] = Counter()
        self._topics: dict[str, _Topic] = {}
        self._poller: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_over = False

    def is_full(self, request: Request) -> bool:
        """Tell whether another stream would be refused; nobody gets so many that none is left for others."""
        each = self._open[_whose(request)]
        return self._is_over or self._open.total() >= self._most or each >= self._most_each

    async def response(
        self, request: Request, key: str, look: Look, *, seen: str | None = None, tell: Tell | None = None
    ) -> Response:
        """Answer with a stream of `changed` events for what `look` sees; streams with one `key` share it.

        `look` is called in a thread, now and about twice a second. What it raises now is raised. `tell` may
        write other events, and `seen` say what is known already.
        """
        first = await run_in_threadpool(self._look_once, look)
        if seen is None:
            seen = request.headers.get("last-event-id") or request.query_params.get("seen") or ""
        if first.ended and seen == first.position:
            return Response(status_code=204)  # Which tells a browser not to come back.
        if self.is_full(request):
            said = "there are too many streams; refresh the page by hand\n"
            return PlainTextResponse(said, 503, headers={"Retry-After": "30"})
        if request.method == "HEAD":
            return Response(media_type=KIND)
        topic = self._topics.get(key) or _Topic(look, first)
        topic.tell(first)
        return _Stream(self, _whose(request), key, topic, seen, tell or _changed)

    def stop(self) -> None:
        """Let every stream end; may be called from anywhere."""
        self._is_over = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_all)

    async def events(self, topic: _Topic, seen: str, news: asyncio.Event, tell: Tell) -> AsyncIterator[str]:
        """Say what changes, until it ends."""
        clock = asyncio.get_running_loop().time
        until = clock() + LONGEST_S
        yield "retry: 2000\n\n"
        while not self._is_over and clock() < until:
            news.clear()  # Before looking: what changes while we tell of it is heard, too.
            sight = topic.sight
            if sight.position != seen:
                async for each in tell(seen, sight):
                    yield each
                seen = sight.position
            if sight.ended:
                yield f"id: {seen}\nevent: ended\ndata: {seen}\n\n"
                return
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await news.wait()
            except TimeoutError:
                yield ": still here\n\n"

    def join(self, whose: str, key: str, topic: _Topic) -> asyncio.Event:
        """Count a stream in."""
        news = asyncio.Event()
        self._open[whose] += 1
        self._topics.setdefault(key, topic).listeners.add(news)
        if self._poller is None or self._poller.done():
            self._loop = asyncio.get_running_loop()
            self._poller = self._loop.create_task(self._poll())
        return news

    def topic(self, key: str) -> _Topic:
        """Give what is watched under a key; somebody has joined it."""
        return self._topics[key]

    def leave(self, whose: str, key: str, news: asyncio.Event) -> None:
        """Count a stream out; what nobody watches is not looked at."""
        self._open[whose] -= 1
        if not self._open[whose]:
            del self._open[whose]
        topic = self._topics[key]
        topic.listeners.discard(news)
        if not topic.listeners:
            del self._topics[key]

    async def _poll(self) -> None:
        while self._topics and not self._is_over:
            await asyncio.sleep(LOOK_EVERY_S)
            topics = list(self._topics.values())
            for topic, sight in zip(topics, await run_in_threadpool(self._look, topics), strict=True):
                topic.tell(sight)

    def _look(self, topics: list[_Topic]) -> list[Sight]:
        """Look at everything in one transaction; while the tables are away nothing is new."""
        try:
            with self._reading() as conn:
                return [_looked(topic, conn) for topic in topics]
        except NotReachable:
            return [topic.sight for topic in topics]

    def _look_once(self, look: Look) -> Sight:
        with self._reading() as conn:
            return look(conn)

    def _wake_all(self) -> None:
        for topic in self._topics.values():
            topic.wake()


def _whose(request: Request) -> str:
    who = request.state.visitor.who
    return "" if who is None else str(who.id)


async def _changed(_: str, sight: Sight) -> AsyncIterator[str]:
    yield f"id: {sight.position}\nevent: changed\ndata: {sight.position}\n\n"


def _looked(topic: _Topic, conn: Connection) -> Sight:
    try:
        return topic.look(conn)
    except NotFound:
        return Sight(topic.sight.position, ended=True)


class _Stream(StreamingResponse):
    """Counted from its first byte to its last, however it ends."""

    def __init__(  # noqa: PLR0917 - as many as it passes on
        self, streams: Streams, whose: str, key: str, topic: _Topic, seen: str, tell: Tell
    ) -> None:
        self._streams = streams
        self._whose = whose
        self._key = key
        self._topic = topic
        self._seen = seen
        self._tell = tell
        super().__init__(iter(()), media_type=KIND, headers={"X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        news = self._streams.join(self._whose, self._key, self._topic)
        try:
            topic = self._streams.topic(self._key)
            self.body_iterator = self._streams.events(topic, self._seen, news, self._tell)
            await super().__call__(scope, receive, send)
        finally:
            self._streams.leave(self._whose, self._key, news)
