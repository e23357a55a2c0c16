"""What went wrong, as a page or as a problem (RFC 9457): the same words, the same status."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, RedirectResponse

from wfcelery.core.values import Json
from wfcelery.errors import (
    InvalidFlow,
    InvalidInput,
    InvalidSettings,
    NotConfirmed,
    NotFound,
    NotReachable,
    Refused,
    WfceleryError,
)
from wfcelery.executor.definitions import fault_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PROBLEM: Final = "application/problem+json"


class NotSignedIn(WfceleryError):
    """Nobody has signed in, and this is not for everybody."""

    code = "not-signed-in"

    def __str__(self) -> str:
        return "sign in first: with a token from the policy file (`wfcelery policy token USER` makes one)"


class TooMany(WfceleryError):
    """Too many failures from one address."""

    code = "too-many"

    def __str__(self) -> str:
        return "too many attempts; wait a minute"


def status_of(error: WfceleryError) -> HTTPStatus:
    """Say which status an error has."""
    match error:
        case NotSignedIn():
            return HTTPStatus.UNAUTHORIZED
        case TooMany():
            return HTTPStatus.TOO_MANY_REQUESTS
        case Refused() if error.code == "forbidden":
            return HTTPStatus.FORBIDDEN
        case Refused():
            return HTTPStatus.CONFLICT
        case NotFound():
            return HTTPStatus.NOT_FOUND
        case InvalidInput() | InvalidFlow():
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case NotReachable() | NotConfirmed() | InvalidSettings():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case _ if error.code in ("bad-link", "bad-token"):
            return HTTPStatus.NOT_FOUND
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR


def as_problem(request: Request, error: WfceleryError, status: int | None = None) -> Response:
    """Write an error as problem details."""
    status = HTTPStatus(status or status_of(error))
    problem: dict[str, Json] = {
        "type": f"https://wfcelery.invalid/problems/{error.code}",
        "title": status.phrase,
        "status": status.value,
        "detail": str(error),
        "code": error.code,
        "instance": request.url.path,
    }
    if isinstance(error, InvalidFlow):
        problem["faults"] = [fault_json(fault) for fault in error.faults]
    if isinstance(error, InvalidInput):
        problem["path"] = error.path
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
    return JSONResponse(problem, status.value, headers=headers, media_type=PROBLEM)


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
