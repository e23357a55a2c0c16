"""Stands before every door: who comes, may they, is the form ours. Only then is the page asked."""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import parse_qsl, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import ClientDisconnect

from wfcelery.core.limits import MIB
from wfcelery.core.messages import Kind
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, Refused, WfceleryError
from wfcelery.rights import Permission
from wfcelery.web import identity, json_body
from wfcelery.web.desk import Desk
from wfcelery.web.doors import Door
from wfcelery.web.failures import NotSignedIn, TooLarge, WrongContent, as_page, as_problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
FORM: Final = "application/x-www-form-urlencoded"
LARGEST_BODY: Final = 4 * MIB
MOST_FIELDS: Final = 1_000
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "x-csrf-token"


class Guard:
    """Lets in whom the door lets in."""

    def __init__(self, desk: Desk, door: Door) -> None:
        self._desk = desk
        self._door = door

    async def answer(self, request: Request) -> Response:
        """Answer one request; whatever is wrong on purpose becomes a page or a problem."""
        request.state.desk = self._desk
        request.state.door = self._door
        try:
            # In a thread: a hook of the application may take its time to say who comes and what they may.
            visitor = await run_in_threadpool(self._let_in, request)
            if request.method not in SAFE and not self._door.for_programs:
                # Only now: to read megabytes for a stranger is work that he chooses.
                await self._read_body(request)
                self._check_form(request, visitor)
            response = await self._call(request)
        except WfceleryError as error:
            speaks_json = self._door.is_api or self._door.for_programs
            response = as_problem(request, error) if speaks_json else as_page(request, error)
        seen = getattr(request.state, "visitor", None)
        wants_session = not (self._door.is_api or self._door.for_programs or self._door.no_csrf)
        if seen is not None and seen.is_new and wants_session and not _keeps_session(response):
            identity.keep_session(self._desk, response, seen.session)
        return response

    def _let_in(self, request: Request) -> identity.Visitor:
        visitor = identity.visitor(self._desk, request, time.time())
        request.state.visitor = visitor
        if request.method not in SAFE:
            _check_origin(self._desk, request, is_api=self._door.is_api)
        self._check_right(visitor)
        return visitor

    async def _call(self, request: Request) -> Response:
        endpoint = self._door.endpoint
        if inspect.iscoroutinefunction(endpoint):
            return await cast("Callable[[Request], Awaitable[Response]]", endpoint)(request)
        return await run_in_threadpool(cast("Callable[[Request], Response]", endpoint), request)

    def _check_right(self, visitor: identity.Visitor) -> None:
        wanted = self._door.permission
        if wanted is None:
            return
        if visitor.who is None:
            raise NotSignedIn(by_token=visitor.by_token)
        if not self._desk.may(visitor.who, wanted):
            if wanted is Permission.DECIDE and visitor.who.kind is not Kind.PERSON:
                reason = f"{visitor.who.id} is an {visitor.who.kind.value} here; only a person may decide"
            else:
                reason = f"{visitor.who.id} may not do this: the permission `{wanted.value}` is missing"
            raise Refused(reason, "forbidden")

    def _check_form(self, request: Request, visitor: identity.Visitor) -> None:
        """A browser adds its cookie to every form, also to one that another site has made."""
        if visitor.by_token or self._door.no_csrf:
            return
        if self._door.is_api and (self._desk.is_open or not visitor.session.user):
            return  # It speaks JSON, which no other site can send without asking, and we never say yes.
        sent = request.headers.get(CSRF_HEADER) or form_of(request).get(CSRF_FIELD, "")
        if not identity.is_own_form(self._desk, visitor.session, sent):
            reason = "this form is too old, or was not made here; go back, load the page again and repeat it"
            raise Refused(reason, "forbidden")

    async def _read_body(self, request: Request) -> None:
        body = await bounded(request)
        if self._door.is_api:
            request.state.body = await run_in_threadpool(json_body.read, body, request.headers)
            return
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != FORM and body:
            raise WrongContent(FORM, kind)
        try:
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
            )
        except ValueError:
            raise InvalidInput("form", "cannot be read") from None
        request.state.form = ImmutableMultiDict(pairs)


def form_of(request: Request) -> ImmutableMultiDict[str, str]:
    """Give the fields of a posted form."""
    return cast("ImmutableMultiDict[str, str]", getattr(request.state, "form", ImmutableMultiDict()))


def body_of(request: Request) -> Json:
    """Give the JSON that was sent to the API; None if there was none."""
    return cast("Json", getattr(request.state, "body", None))


def visitor_of(request: Request) -> identity.Visitor:
    """Give who is at the door."""
    return cast("identity.Visitor", request.state.visitor)


def desk_of(request: Request) -> Desk:
    """Give what pages work with."""
    return cast("Desk", request.state.desk)


def _check_origin(desk: Desk, request: Request, *, is_api: bool) -> None:
    """Refuse what another site has made the browser send."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused("another site has sent this; nothing was done", "forbidden")
    origin = request.headers.get("origin")
    if origin is None or (origin == "null" and not is_api):
        return  # A page that names no referrer names no origin either; the form's own token decides.
    own = {request.headers.get("host", "").lower(), urlsplit(desk.settings.base_url or "").netloc.lower()}
    if urlsplit(origin).netloc.lower() not in own - {""}:
        raise Refused("another site has sent this; nothing was done", "forbidden")


async def bounded(request: Request, most: int = LARGEST_BODY) -> bytes:
    """Read what was sent, if it is not more than this."""
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise TooLarge(most)
            parts.append(part)
    except ClientDisconnect:
        # Nobody hears this; but who hangs up must not fill the log with what looks like a fault of ours.
        raise InvalidInput("body", "ended before its end") from None
    return b"".join(parts)


def _keeps_session(response: Response) -> bool:
    return any(value.startswith(identity.SESSION_COOKIE) for value in response.headers.getlist("set-cookie"))
