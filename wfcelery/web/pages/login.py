"""Signing in and out; and, where nobody signs in, saying who one is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse

from wfcelery.errors import NotFound
from wfcelery.web import identity
from wfcelery.web.doors import Door
from wfcelery.web.failures import TooMany
from wfcelery.web.guard import desk_of, form_of, visitor_of
from wfcelery.web.rendering import is_own_path, path_to, render

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def ask(request: Request) -> Response:
    """Ask for a token."""
    return render(request, "login.html", next=request.query_params.get("next", ""), message="")


def sign_in(request: Request) -> Response:
    """Begin a session for whom the token stands for. Too many bad ones from one address must wait."""
    desk, form = desk_of(request), form_of(request)
    address = request.client.host if request.client else ""
    if desk.bad_logins.is_over(address):
        raise TooMany
    token = form.get("token", "").strip()
    who = desk.authority.by_token(token)
    if who is None:
        desk.bad_logins.take(address)
        message = "this token is not known"
        return render(request, "login.html", status=401, next=form.get("next", ""), message=message)
    response = RedirectResponse(_there(request, form.get("next", "")), 303)
    identity.keep_session(desk, response, identity.signed_in(time.time(), who, token))
    return response


def sign_out(request: Request) -> Response:
    """End the session."""
    response = RedirectResponse(path_to(request, "login"), 303)
    identity.keep_session(desk_of(request), response, identity.new_session(time.time()))
    return response


def act_as(request: Request) -> Response:
    """Take another name, where nobody signs in."""
    desk, form = desk_of(request), form_of(request)
    if not desk.is_open:
        raise NotFound("page", request.url.path)
    session = identity.acting_as(visitor_of(request).session, form.get("user", ""))
    response = RedirectResponse(_there(request, form.get("next", "")), 303)
    identity.keep_session(desk, response, session)
    return response


def _there(request: Request, path: str) -> str:
    return path if is_own_path(request, path) else path_to(request, "runs")


DOORS: Final = (
    Door("GET", "/login", ask, "login", open_because="one signs in here"),
    Door("POST", "/login", sign_in, "sign_in", open_because="one signs in here"),
    Door("POST", "/logout", sign_out, "sign_out", open_because="everybody may leave"),
    Door("POST", "/act-as", act_as, "act_as", open_because="works only where nobody signs in"),
)
