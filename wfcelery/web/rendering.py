"""Pages from templates: everything is escaped, and every address is made here."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from wfcelery.core.values import Json
from wfcelery.core.words import plain, visible
from wfcelery.drawing.icons import SIGNS
from wfcelery.insight.reasons import about
from wfcelery.rights import Permission
from wfcelery.store.times import iso
from wfcelery.web import identity
from wfcelery.web.words import took

if TYPE_CHECKING:
    from http import HTTPStatus

    from starlette.requests import Request
    from starlette.responses import Response

_pages: Final = Environment(
    loader=PackageLoader("wfcelery.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(request: Request, template: str, *, status: HTTPStatus | int = 200, **shown: Any) -> Response:  # noqa: ANN401 - whatever the template shows
    """Render a page for whoever is at the door."""
    state = request.state
    desk, visitor = state.desk, getattr(state, "visitor", None)
    who = None if visitor is None else visitor.who
    text = _pages.get_template(template).render(
        path=lambda name, /, **parts: path_to(request, name, **parts),
        here=request.url.path,
        who=who,
        is_open=desk.is_open,
        host_signs_in=desk.host_signs_in,
        csrf="" if visitor is None else identity.csrf_token(desk, visitor.session),
        may=lambda permission: desk.may(who, permission),
        Permission=Permission,
        now=time.time(),
        **shown,
    )
    return HTMLResponse(text, int(status))


def path_to(request: Request, door: str, /, **parts: object) -> str:
    """Give the path of a door as the browser must ask for it, behind whatever prefix the app is served."""
    # The app looks for a name among all its doors, one by one; a list of gates asks for hundreds of paths.
    path = request.app.state.routes[door].url_path_for(door, **parts)
    return f"{request.scope.get('root_path', '').rstrip('/')}{path}"


def is_own_path(request: Request, path: str) -> bool:
    """Tell whether a path leads to this app and nowhere else: no other site, no other scheme."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or not path.isprintable():
        return False
    return path.startswith(f"{request.scope.get('root_path', '').rstrip('/')}/")


def _pretty(value: Json) -> str:
    return plain(json.dumps(value, ensure_ascii=False, indent=2))


def _said(text: str) -> Markup:
    """Write a sentence of ours: it begins with a capital, and what stands in backticks is code."""
    sentence = text[:1].upper() + text[1:]
    # Escaped first: only our own element is added.
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(plain(sentence)))))  # noqa: S704 - same


def _ago(moment: str | float | None, now: float) -> str:
    if moment is None:
        return ""
    at = moment if isinstance(moment, (int, float)) else datetime.fromisoformat(moment).timestamp()
    return f"{about(now - at)} ago" if now >= at else f"in {about(at - now)}"


def _clock(moment: str | float | None) -> str:
    written = iso(moment) if isinstance(moment, (int, float)) else moment
    return "" if not written else f"{written[:19].replace('T', ' ')} UTC"


_pages.filters.update(
    pretty=_pretty,
    ago=_ago,
    clock=_clock,
    took=took,
    said=_said,
    plain=lambda value: plain(str(value)),
    visible=lambda value: visible(str(value)),
)
_pages.globals.update(about=cast("Any", about), SIGNS=SIGNS)
