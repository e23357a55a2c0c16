"""Passing single requests of another framework through our web app, which speaks ASGI.

From a thread `sync_exchange` is used: the app then runs in a loop of its own, one for each process. In an
event loop `Exchange` is used directly. A visitor who goes away ends the exchange: no stream stays behind.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope

EVENT_STREAM: Final = "text/event-stream"
_AHEAD: Final = 16
"""How many parts of an answer the app may be ahead of the visitor."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `path` is the whole of it as the browser asked, decoded, and begins with `root_path`.

    `more` is what else stands in the scope.
    """

    method: str
    scheme: str
    path: str
    root_path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    client: str = ""
    more: Mapping[str, object] = field(default_factory=dict)

    def scope(self) -> Scope:
        """Write it as ASGI has it."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": self.scheme,
            "path": self.path,
            "root_path": self.root_path,
            "query_string": self.query.encode("latin-1"),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in self.headers
            ],
            "client": (self.client, 0) if self.client else None,
            "extensions": {},
            **self.more,
        }


@dataclass(frozen=True, slots=True)
class Head:
    """How an answer begins."""

    status: int
    headers: tuple[tuple[str, str], ...]

    @property
    def is_stream(self) -> bool:
        """Tell whether it has no end in sight."""
        return any(
            name.lower() == "content-type" and value.startswith(EVENT_STREAM) for name, value in self.headers
        )


class Exchange:
    """One request and its answer, in the event loop in which it was made."""

    def __init__(self, app: ASGIApp, asked: Asked) -> None:
        self._app = app
        self._asked = asked
        self._parts: asyncio.Queue[Message | None] = asyncio.Queue(_AHEAD)
        self._gone = asyncio.Event()
        self._is_read = False
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    async def begin(self) -> Head:
        """Pass the request on, and give the head of its answer. Raises what the app raises."""
        self._task = asyncio.create_task(self._run())
        first = await self._parts.get()
        if first is None or first["type"] != "http.response.start":
            await self._task
            message = "the web app ended without an answer"
            raise RuntimeError(message)
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in first.get("headers", ())
        )
        return Head(int(first["status"]), headers)

    async def part(self) -> bytes | None:
        """Give the next part of the body; None after the last."""
        message = await self._parts.get()
        return None if message is None else bytes(message.get("body", b""))

    def end(self) -> None:
        """Let go, whether or not all of it was read. May be called from any thread, and again."""
        with suppress(RuntimeError):  # The loop has ended, and everything with it.
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._gone.set()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._app(self._asked.scope(), self._receive, self._parts.put)
        finally:
            if not self._gone.is_set():
                await self._parts.put(None)

    async def _receive(self) -> dict[str, Any]:
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": self._asked.body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}


class Body:
    """The parts of an answer, in the event loop. It ends with the last, when it is closed, or forgotten."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Give the next part; whoever is stopped while waiting for it wants no more."""
        try:
            part = await self._exchange.part()
        except asyncio.CancelledError:
            self.close()
            raise
        if part is None:
            self.close()
            raise StopAsyncIteration
        return part

    def close(self) -> None:
        """Let go."""
        self._exchange.end()

    def __del__(self) -> None:
        # Servers may drop an answer of which they have read nothing; a generator would not notice.
        self.close()


class Parts:
    """The same for a thread."""

    def __init__(self, exchange: Exchange, loop: asyncio.AbstractEventLoop) -> None:
        self._exchange = exchange
        self._loop = loop

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        part = asyncio.run_coroutine_threadsafe(self._exchange.part(), self._loop).result()
        if part is None:
            self.close()
            raise StopIteration
        return part

    def close(self) -> None:
        """Let go."""
        self._exchange.end()

    def __del__(self) -> None:
        self.close()


def sync_exchange(app: ASGIApp, asked: Asked) -> tuple[Head, Parts]:
    """Pass a request on from a thread."""
    loop = _loop()
    exchange, head = asyncio.run_coroutine_threadsafe(_begun(app, asked), loop).result()
    return head, Parts(exchange, loop)


async def _begun(app: ASGIApp, asked: Asked) -> tuple[Exchange, Head]:
    exchange = Exchange(app, asked)
    return exchange, await exchange.begin()


_loops: Final[dict[int, asyncio.AbstractEventLoop]] = {}
_making: Final = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """Give the loop of this process: a fork has none of its parent's threads."""
    with _making:
        found = _loops.get(os.getpid())
        if found is None:
            found = asyncio.new_event_loop()
            threading.Thread(target=found.run_forever, name="wfcelery-web", daemon=True).start()
            _loops[os.getpid()] = found
    return found


# Else a child of a fork might wait for ever for a lock that a thread of its parent held.
os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release)
