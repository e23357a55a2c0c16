"""One operation of the API: declared once, and everything else follows from that."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast

from starlette.responses import JSONResponse, Response

from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.rights import Permission
from wfcelery.web import guard
from wfcelery.web.api import checking
from wfcelery.web.api.fields import Nothing
from wfcelery.web.desk import Desk
from wfcelery.web.doors import Door
from wfcelery.web.failures import NotSignedIn

if TYPE_CHECKING:
    from pydantic import BaseModel
    from starlette.requests import Request

ROOT: Final = "/api/v1"
Q = TypeVar("Q")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Call(Generic[Q, B]):
    """One request, with everything in it checked."""

    request: Request
    desk: Desk
    query: Q
    body: B

    @property
    def who(self) -> Principal:
        """Give who asks."""
        who = guard.visitor_of(self.request).who
        if who is None:
            raise NotSignedIn
        return who

    def part(self, name: str) -> str:
        """Give a part of the path."""
        return str(self.request.path_params[name])


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered."""

    data: Json
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


Work: TypeAlias = Callable[[Call[Any, Any]], Reply] | Callable[[Call[Any, Any]], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What can be asked of the API at one path with one method.

    `statuses` are those of success and of the problems that are its own; 401, 403, 422 and 503 are common.
    """

    method: str
    path: str
    name: str
    summary: str
    work: Work
    permission: Permission | None = None
    open_because: str = ""
    query: type[BaseModel] = Nothing
    body: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    media: str = "application/json"
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "What was asked for."})
    repeatable: bool = False
    """With the header `Idempotency-Key`, a repeat does nothing twice."""

    def door(self) -> Door:
        """Make the way in."""
        return Door(
            self.method,
            ROOT + self.path,
            self._later if inspect.iscoroutinefunction(self.work) else self._now,
            f"api_{self.name}",
            permission=self.permission,
            open_because=self.open_because,
            is_api=True,
        )

    def _now(self, request: Request) -> Response:
        reply = cast("Callable[[Call[Any, Any]], Reply]", self.work)(self._call(request))
        return JSONResponse(reply.data, reply.status.value, headers=dict(reply.headers))

    async def _later(self, request: Request) -> Response:
        return await cast("Callable[[Call[Any, Any]], Awaitable[Response]]", self.work)(self._call(request))

    def _call(self, request: Request) -> Call[Any, Any]:
        sent = guard.body_of(request)
        if self.body is None and sent is not None:
            raise InvalidInput("body", "is not expected here; send none")
        body = None if self.body is None else checking.body_of(sent, self.body)
        return Call(request, guard.desk_of(request), checking.query_of(request, self.query), body)
