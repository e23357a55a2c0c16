"""The web app inside the application: requests under a path are passed to it, with who is signed in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from flask import Request, Response

from wfcelery.contrib.bridge import Asked, sync_exchange
from wfcelery.web.guard import LARGEST_BODY
from wfcelery.web.identity import HOST_USER

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from wfcelery.core.messages import Principal

UNREADABLE: Final = "this address cannot be read\n"
TOO_MANY: Final = "there are too many live pages; refresh this one by hand\n"


@dataclass(slots=True)
class Mount:
    """Answers requests with the app that `make` makes, when it is first needed.

    A live page keeps a thread of the server: more than `streams` of them are refused.
    """

    make: Callable[[], ASGIApp]
    streams: int
    _apps: dict[int, ASGIApp] = field(default_factory=dict)
    _open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request, prefix: str, who: Principal | None) -> Response:
        """Answer a request whose path begins with `prefix`; `who` is whom the application knows to come."""
        try:
            asked = _asked(request, prefix, who)
        except UnicodeError:
            return Response(UNREADABLE, 400, mimetype="text/plain")
        head, parts = sync_exchange(self._app(), asked)
        body = Body(parts)
        if head.is_stream:
            if not self._enter():
                body.close()
                return Response(TOO_MANY, 503, {"Retry-After": "30"}, mimetype="text/plain")
            body.then = self._leave
        return Response(body, head.status, list(head.headers))

    def _app(self) -> ASGIApp:
        """Give the app of this process: what one has begun to watch, its forks do not."""
        found = self._apps.get(os.getpid())
        return self._apps.setdefault(os.getpid(), self.make()) if found is None else found

    def _enter(self) -> bool:
        with self._lock:
            if self._open >= self.streams:
                return False
            self._open += 1
            return True

    def _leave(self) -> None:
        with self._lock:
            self._open -= 1


class Body:
    """The parts of an answer. However it ends, the app is told, and `then` is done, once."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._begun = False
        self.then: Callable[[], None] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self._begun = True
        try:
            return next(self._parts)
        except BaseException:
            self._leave()
            raise

    def __del__(self) -> None:
        # Servers should close what they do not read; not each does so when a visitor has gone.
        self._leave()

    def close(self) -> None:
        """End it; servers call this whatever happened."""
        self._leave()
        if not self._begun:
            # A generator that has not begun would not notice that it ends.
            next(self, None)
        end = getattr(self._parts, "close", None)
        if end is not None:
            end()

    def _leave(self) -> None:
        then, self.then = self.then, None
        if then is not None:
            then()


def _asked(request: Request, prefix: str, who: Principal | None) -> Asked:
    environ = request.environ
    # As the browser asked: Flask's own `path` has replaced what is not UTF-8.
    root = str(environ.get("SCRIPT_NAME", "")).encode("latin-1").decode()
    path = str(environ.get("PATH_INFO", "")).encode("latin-1").decode()
    query = str(environ.get("QUERY_STRING", ""))
    query.encode("ascii")
    return Asked(
        method=request.method,
        scheme=request.scheme,
        path=f"{root.rstrip('/')}{path}",
        root_path=f"{root.rstrip('/')}{prefix}",
        query=query,
        headers=tuple(request.headers.items()),
        body=_body(request),
        client=request.remote_addr or "",
        more={HOST_USER: who},
    )


def _body(request: Request) -> bytes:
    """Read what was sent, also if the application has looked at it before."""
    if request.content_length is None or request.content_length > LARGEST_BODY:
        # One byte more than is taken, so that what is too long is refused in the app's own words.
        return request.stream.read(LARGEST_BODY + 1)
    sent = request.get_data()
    return sent or urlencode(list(request.form.items(multi=True))).encode()
