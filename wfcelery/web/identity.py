"""Who comes: by a token in the header, by the session of a sign-in, or, where nobody signs in, by a name.

Inside another application that has its own sign-in (`make_app(..., trust_host_user=True)`), the one who comes
is whom that application has put into the request's scope under `HOST_USER`, as a `Principal`; nobody if
nothing is there. Our cookie then only ties forms to that person.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import InvalidInput
from wfcelery.rights import confirmed
from wfcelery.rights.token import hash_of
from wfcelery.web.desk import Desk
from wfcelery.wire.signed import BadToken, read_signed, write_signed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

SESSION_COOKIE: Final = "wfcelery_session"
SESSION_S: Final = 12 * 3_600
SESSION: Final = "session"
NAME: Final = "name"
"""What a cookie is signed as: somebody has signed in, or has only said a name where nobody need."""
HOST: Final = "host"
"""The same where the application around ours signs people in: such a cookie opens nothing by itself."""
HOST_USER: Final = "wfcelery.user"
CSRF: Final = "csrf"
USER_HEADER: Final = "x-wfcelery-user"
LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Session:
    """What the cookie says. `nonce` ties forms to it; it is there also before anybody has signed in.

    `token` is the hash of what somebody has signed in with: the session ends with it.
    """

    user: str
    kind: Kind
    began_at: int
    nonce: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody at a door. `who` is None before the sign-in; `by_token`: no browser has added its cookie."""

    who: Principal | None
    session: Session
    is_new: bool = False
    by_token: bool = False


def visitor(desk: Desk, request: Request, now: float) -> Visitor:
    """Find out who comes. A bad token is nobody, whatever the cookie says."""
    kept = _session(desk, request.cookies.get(SESSION_COOKIE), now)
    session = kept or new_session(now)
    if len(request.headers.getlist("authorization")) > 1:
        raise InvalidInput("authorization", "is given twice; give it once")
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return Visitor(desk.authority.by_token(token.strip()), session, is_new=False, by_token=True)
    if desk.host_signs_in:
        return _of_host(desk, request, kept, now)
    if desk.is_open:
        named = request.headers.get(USER_HEADER) or session.user or desk.settings.user
        return Visitor(Principal(_name(named)), session, is_new=kept is None)
    known = desk.authority.principal(session.user) if session.user else None
    said = Principal(session.user, session.kind)
    if known is None or not desk.authority.holds(said, session.token):
        return Visitor(None, session, is_new=kept is None)
    return Visitor(confirmed(desk.authority, said), session, is_new=kept is None)


def _of_host(desk: Desk, request: Request, kept: Session | None, now: float) -> Visitor:
    """Believe the application around ours, and nobody else; a form made for somebody else is not theirs."""
    who = request.scope.get(HOST_USER)
    user = who.id if isinstance(who, Principal) else ""
    if kept is None or kept.user != user:
        kept, is_new = replace(new_session(now), user=user), True
    else:
        is_new = False
    return Visitor(
        confirmed(desk.authority, who) if isinstance(who, Principal) else None, kept, is_new=is_new
    )


def new_session(now: float) -> Session:
    """Begin a session of nobody."""
    return Session("", Kind.PERSON, int(now), secrets.token_urlsafe(12))


def signed_in(now: float, who: Principal, token: str) -> Session:
    """Begin the session of who has signed in: another than before, so that none can be planted."""
    return replace(new_session(now), user=who.id, kind=who.kind, token=hash_of(token))


def acting_as(session: Session, user: str) -> Session:
    """Take another name; only where nobody signs in."""
    return replace(session, user=_name(user))


def csrf_token(desk: Desk, session: Session) -> str:
    """Give what a form must carry back."""
    return write_signed(desk.ring, CSRF, session.nonce)


def is_own_form(desk: Desk, session: Session, token: str) -> bool:
    """Tell whether a form was made for this session."""
    try:
        return read_signed(desk.ring, CSRF, token) == session.nonce
    except BadToken:
        return False


def keep_session(desk: Desk, response: Response, session: Session) -> None:
    """Hand the session to the browser: for this site only, and out of reach of scripts."""
    payload = [session.user, session.kind.value, session.began_at, session.nonce, session.token]
    base = urlsplit(desk.settings.base_url or "")
    response.set_cookie(
        SESSION_COOKIE,
        write_signed(desk.ring, _purpose(desk), payload),
        max_age=SESSION_S,
        path=f"{desk.prefix}/",
        secure=base.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def _session(desk: Desk, cookie: str | None, now: float) -> Session | None:
    try:
        match read_signed(desk.ring, _purpose(desk), cookie or ""):
            case [str(user), str(kind), int(began_at), str(nonce), str(token)] if (
                0 <= now - began_at + 60 <= SESSION_S
            ):
                return Session(user, Kind(kind), began_at, nonce, token)
    except (BadToken, ValueError):
        pass
    return None


def _purpose(desk: Desk) -> str:
    # A name that somebody took before there was a policy must not pass for a sign-in under it.
    if desk.host_signs_in:
        return HOST
    return NAME if desk.is_open else SESSION


def _name(text: str) -> str:
    name = text.strip()
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise InvalidInput("user", f"must be 1 to {LONGEST_NAME} printable characters")
    return name
