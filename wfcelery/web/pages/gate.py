"""A gate in the console: the same page as behind a link, for who has signed in."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from wfcelery.core import ids
from wfcelery.core.messages import Principal
from wfcelery.errors import NotFound
from wfcelery.insight.gates import GateView
from wfcelery.rights import Permission
from wfcelery.web import asking
from wfcelery.web.doors import Door
from wfcelery.web.failures import NotSignedIn
from wfcelery.web.guard import desk_of, form_of, visitor_of
from wfcelery.web.rendering import render

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

VIA: Final = "console"
MOST_DIGITS: Final = 9


def show(request: Request) -> Response:
    """Show what is asked."""
    who, view = _opened(request, request.query_params.get("attempt"))
    return _page(request, who, view)


def decide(request: Request) -> Response:
    """Take a decision about the attempt that the form was made for, and show what came of it."""
    form = form_of(request)
    who, view = _opened(request, form.get("attempt"))
    outcome = asking.decide(desk_of(request), view, who, form, VIA)
    _, now = _opened(request, form.get("attempt"))
    return _page(request, who, now, outcome)


def _opened(request: Request, attempt: str | None) -> tuple[Principal, GateView]:
    """Find the gate; one that may not be read is not there."""
    desk, who = desk_of(request), visitor_of(request).who
    run_id, step = request.path_params["run_id"], request.path_params["step"]
    if who is None:
        raise NotSignedIn
    number = int(attempt) if attempt and attempt.isdecimal() and len(attempt) <= MOST_DIGITS else None
    view = asking.read_gate(desk, run_id, step, number) if ids.is_run_id(run_id) else None
    if view is None or not desk.may(who, Permission.READ, asking.resource_of(view)):
        raise NotFound("gate", f"{step} of run {run_id}")
    return who, view


def _page(
    request: Request, who: Principal, view: GateView, outcome: asking.Outcome | None = None
) -> Response:
    status = HTTPStatus.OK if outcome is None else outcome.status
    parts = asking.shown(view, who, asking.objection(desk_of(request), view, who), outcome)
    return render(request, "gate.html", status=status, **parts)


PATH: Final = "/runs/{run_id}/gates/{step}"
DOORS: Final = (
    Door("GET", PATH, show, "gate", Permission.READ),
    Door("POST", f"{PATH}/decide", decide, "gate_decide", Permission.DECIDE),
)
