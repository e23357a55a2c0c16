"""What went wrong, as a page or as a problem (RFC 9457): the same words, the same status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from wfcelery.core.values import Json
from wfcelery.errors import (
    InvalidFlow,
    InvalidInput,
    InvalidSettings,
    NotConfirmed,
    NotReachable,
    Refused,
    WfceleryError,
)
from wfcelery.executor.definitions import fault_json

if TYPE_CHECKING:
    from starlette.requests import Request

PROBLEM: Final = "application/problem+json"
PROBLEMS: Final = "/problems/"
"""Before a code it names a kind of problem. It is a name that stays, and leads to no page."""

OF_CODES: Final[Mapping[str, HTTPStatus]] = {
    "forbidden": HTTPStatus.FORBIDDEN,
    "not-found": HTTPStatus.NOT_FOUND,
    "invalid-input": HTTPStatus.UNPROCESSABLE_ENTITY,
    "bad-expression": HTTPStatus.UNPROCESSABLE_ENTITY,
    "bad-link": HTTPStatus.NOT_FOUND,
    "bad-token": HTTPStatus.NOT_FOUND,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
}
RETRY_AFTER_S: Final[Mapping[HTTPStatus, int]] = {
    HTTPStatus.TOO_MANY_REQUESTS: 60,
    HTTPStatus.SERVICE_UNAVAILABLE: 2,
}


class NotSignedIn(WfceleryError):
    """Nobody has signed in, and this is not for everybody."""

    code = "not-signed-in"

    def __init__(self, *, by_token: bool = False) -> None:
        super().__init__(by_token)
        self.by_token = by_token

    def __str__(self) -> str:
        made = "(`wfcelery policy token USER` makes one)"
        if self.by_token:
            return f"this token is not known; ask for one of the policy file {made}"
        return f"sign in first: with a token from the policy file {made}"


class BadSignature(WfceleryError):
    """What came to a hook is not signed with its secret, or too long ago, or there is no such hook."""

    code = "bad-signature"

    def __str__(self) -> str:
        return "the signature is not good: it is missing, wrong, or older than five minutes; nothing was done"


class TooMany(WfceleryError):
    """Too many failures from one address."""

    code = "too-many"

    def __str__(self) -> str:
        return "too many attempts; wait a minute"


class TooLarge(WfceleryError):
    """More was sent than is read."""

    code = "body-too-large"

    def __init__(self, most: int) -> None:
        super().__init__(most)

    def __str__(self) -> str:
        return f"the body is larger than {self.args[0]:,} bytes; send less"


class WrongContent(WfceleryError):
    """The body is of a kind that is not read here."""

    code = "wrong-content"

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(wanted, found)

    def __str__(self) -> str:
        wanted, found = self.args
        return f"the body must be {wanted}, not {found or 'of no kind at all'}; say so in Content-Type"


class NoSuchMethod(WfceleryError):
    """The path is there, and this cannot be done to it."""

    code = "no-such-method"

    def __init__(self, method: str) -> None:
        super().__init__(method)

    def __str__(self) -> str:
        return f"{self.args[0]} is not possible here"


class Broken(WfceleryError):
    """Something that nobody has thought of."""

    code = "internal"

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        return f"something went wrong here ({self.kind}); the log of the web process tells more"


def status_of(error: WfceleryError) -> HTTPStatus:
    """Say which status an error has."""
    match error:
        case NotSignedIn() | BadSignature():
            return HTTPStatus.UNAUTHORIZED
        case TooMany():
            return HTTPStatus.TOO_MANY_REQUESTS
        case TooLarge():
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        case WrongContent():
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        case NoSuchMethod():
            return HTTPStatus.METHOD_NOT_ALLOWED
        case InvalidFlow():
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case NotReachable() | NotConfirmed() | InvalidSettings():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case _ if error.code in OF_CODES:
            return OF_CODES[error.code]
        case Refused():
            return HTTPStatus.CONFLICT
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR


def as_problem(
    request: Request,
    error: WfceleryError,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Write an error as problem details."""
    status = HTTPStatus(status or status_of(error))
    problem: dict[str, Json] = {
        "type": f"{PROBLEMS}{error.code}",
        "title": status.phrase,
        "status": status.value,
        "detail": str(error),
        "code": error.code,
        "instance": request.url.path,
    }
    match error:
        case InvalidFlow():
            problem["faults"] = [fault_json(fault) for fault in error.faults]
        case InvalidInput():
            problem["path"] = error.path
        case NotConfirmed():
            problem["ids"] = list(error.ids)
    more = dict(headers or {})
    if status is HTTPStatus.UNAUTHORIZED:
        more["WWW-Authenticate"] = "Bearer"
    if status in RETRY_AFTER_S:
        more["Retry-After"] = str(RETRY_AFTER_S[status])
    # In ASCII: a name that is quoted in it may hold what cannot be written in UTF-8.
    return Response(json.dumps(problem), status.value, headers=more, media_type=PROBLEM)


def as_page(request: Request, error: WfceleryError, status: int | None = None) -> Response:
    """Write an error as a page; who has not signed in is led to where one does."""
    from wfcelery.web.rendering import path_to, render  # noqa: PLC0415 - pages show errors, too

    if isinstance(error, NotSignedIn) and request.method in ("GET", "HEAD"):
        there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{path_to(request, 'login')}?next={quote(there, safe='')}", 303)
    status = HTTPStatus(status or status_of(error))
    return render(
        request, "error.html", status=status, title=status.phrase, message=str(error), code=error.code
    )
