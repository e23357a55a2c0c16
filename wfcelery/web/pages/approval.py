"""Approval links: `GET` shows what is asked, `POST` decides, and nothing else changes anything.

A link is for one person: it acts as that person, without a sign-in unless the settings ask for one. Whatever
is wrong with a link, the answer is the same page.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from wfcelery.core import values
from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import Refused, WfceleryError
from wfcelery.insight.gates import GateView
from wfcelery.rights import Permission, confirmed
from wfcelery.web import asking, identity
from wfcelery.web.doors import Door
from wfcelery.web.failures import NotSignedIn, TooMany, status_of
from wfcelery.web.guard import desk_of, form_of, visitor_of
from wfcelery.web.rendering import render
from wfcelery.wire.link import BadLink, Link, read_link
from wfcelery.wire.signed import BadToken, read_signed, write_signed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.web.desk import Desk
    from wfcelery.web.identity import Visitor

VIA: Final = "link"


def show(request: Request) -> Response:
    """Show what is asked; nothing changes."""
    try:
        link, view, who = _opened(request)
        return _page(request, link, view, who)
    except WfceleryError as error:
        return _refusal(request, error)


def decide(request: Request) -> Response:
    """Take the decision of the person for whom the link is, and show what came of it."""
    try:
        link, view, who = _opened(request)
        desk, form = desk_of(request), form_of(request)
        if not _is_own_form(desk, link, form.get("csrf", "")):
            reason = "this form was not made here, or is too old; open the link again and repeat it"
            raise Refused(reason, "forbidden")
        outcome = asking.decide(desk, view, who, form, VIA)
        now = asking.read_gate(desk, link.run_id, link.step, link.attempt) or view
        return _page(request, link, now, who, outcome)
    except WfceleryError as error:
        return _refusal(request, error)


def _opened(request: Request) -> tuple[Link, GateView, Principal]:
    """Open a link: who may look, at what. Raises `BadLink` for every link that opens nothing."""
    desk = desk_of(request)
    address = request.client.host if request.client else ""
    if desk.bad_links.is_over(address):
        raise TooMany
    try:
        link, view = _read(desk, request.path_params["token"])
    except BadLink:
        desk.bad_links.take(address)
        raise
    _check_visitor(desk, visitor_of(request), link)
    who = confirmed(desk.authority, Principal(link.approver))
    resource = asking.resource_of(view)
    if not any(desk.may(who, right, resource) for right in (Permission.DECIDE, Permission.READ)):
        raise Refused(f"{who.id} may neither read nor decide this any more", "forbidden")
    return link, view, who


def _read(desk: Desk, token: str) -> tuple[Link, GateView]:
    link = read_link(desk.ring, token, time.time())
    view = asking.read_gate(desk, link.run_id, link.step, link.attempt)
    if view is None:
        raise BadLink
    return link, view


def _check_visitor(desk: Desk, visitor: Visitor, link: Link) -> None:
    """Refuse whoever is known to be somebody else. Where nobody signs in, everybody is who they say."""
    who = visitor.who
    if desk.is_open and not desk.settings.link_login:
        return
    if who is None:
        if desk.settings.link_login:
            raise NotSignedIn
        return
    if who.id != link.approver:
        word = "act as" if desk.is_open else "are signed in as"
        raise Refused(f"this link is for {link.approver}; you {word} {who.id}", "forbidden")
    if who.kind is not Kind.PERSON:
        raise Refused(f"this link is for a person; you come as an {who.kind.value}", "forbidden")


def _page(
    request: Request, link: Link, view: GateView, who: Principal, outcome: asking.Outcome | None = None
) -> Response:
    desk = desk_of(request)
    status = HTTPStatus.OK if outcome is None else outcome.status
    parts = asking.shown(view, who, asking.objection(desk, view, who), outcome)
    return render(request, "approval.html", status=status, own_csrf=_csrf(desk, link), **parts)


def _refusal(request: Request, error: WfceleryError) -> Response:
    """Answer in a page as small as the others; a sign-in that is missing is the guard's matter."""
    if isinstance(error, NotSignedIn):
        raise error
    status = status_of(error)
    title = "This link leads nowhere" if isinstance(error, BadLink) else status.phrase
    return render(request, "link_gone.html", status=status, title=title, said=str(error))


def _csrf(desk: Desk, link: Link) -> str:
    return write_signed(desk.ring, identity.CSRF, _form_of_link(link))


def _is_own_form(desk: Desk, link: Link, token: str) -> bool:
    try:
        return read_signed(desk.ring, identity.CSRF, token) == _form_of_link(link)
    except BadToken:
        return False


def _form_of_link(link: Link) -> str:
    place = values.canonical([link.run_id, link.step, link.attempt, link.approver])
    return f"link:{values.digest(place)}"


WHY: Final = "the link itself says for whom it is"
DOORS: Final = (
    Door("GET", "/a/{token:path}", show, "link", open_because=WHY, no_csrf=True),
    Door("POST", "/a/{token:path}", decide, "link_decide", open_because=WHY, no_csrf=True),
)
