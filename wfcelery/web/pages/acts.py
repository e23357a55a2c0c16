"""Cancel, pause, resume, retry: a page asks, a post acts. Who acts is recorded; a refusal says its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse

from wfcelery.core.values import digest
from wfcelery.errors import NotFound, Refused
from wfcelery.executor.answers import new_command_id
from wfcelery.rights import Resource
from wfcelery.web import words
from wfcelery.web.doors import Door
from wfcelery.web.failures import status_of
from wfcelery.web.guard import desk_of, form_of, visitor_of
from wfcelery.web.pages.run import allowed
from wfcelery.web.rendering import path_to, render
from wfcelery.web.run_acts import ACTS, Act

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.core.messages import Principal

LONGEST_REASON: Final = 1_000
_COMMAND: Final = re.compile(r"[0-9a-f]{32}")


def _ask(act: Act) -> Callable[[Request], Response]:
    def ask(request: Request) -> Response:
        """Ask whether it is meant."""
        return _page(request, act)

    return ask


def _do(act: Act) -> Callable[[Request], Response]:
    def do(request: Request) -> Response:
        """Act, once for each page that has asked, and lead back to the run."""
        desk, form = desk_of(request), form_of(request)
        with desk.reading() as conn:
            run = allowed(request, conn).run
        who = _who(request)
        desk.require(who, act.permission, Resource(run.name, run.id, run.created_by))
        # With its user: nobody takes the id of what somebody else will ask.
        given = form.get("command", "")
        command = digest(f"{who.id}\n{given}")[:32] if _COMMAND.fullmatch(given) else new_command_id()
        reason = form.get("reason", "").strip()[:LONGEST_REASON]
        tell = {
            "cancel": lambda: desk.workflows.cancel(run.id, reason, by=who, command_id=command),
            "pause": lambda: desk.workflows.pause(run.id, by=who, command_id=command),
            "resume": lambda: desk.workflows.resume(run.id, by=who, command_id=command),
            "retry": lambda: desk.workflows.retry(run.id, by=who, command_id=command),
        }
        try:
            tell[act.name]()
        except Refused as refusal:
            return _page(request, act, refusal)
        return RedirectResponse(path_to(request, "run", run_id=run.id), 303)

    return do


def _page(request: Request, act: Act, refusal: Refused | None = None) -> Response:
    desk = desk_of(request)
    with desk.reading() as conn:
        head = allowed(request, conn)
    run = head.run
    if refusal is None:
        desk.require(_who(request), act.permission, Resource(run.name, run.id, run.created_by))
    return render(
        request,
        "act.html",
        status=200 if refusal is None else status_of(refusal),
        act=act,
        run=run,
        version=head.version,
        sign=words.sign_of_run(run.status),
        fits=act.fits(run),
        refusal="" if refusal is None else str(refusal),
        command=new_command_id(),
    )


def _who(request: Request) -> Principal:
    who = visitor_of(request).who
    if who is None:
        raise NotFound("page", request.url.path)
    return who


DOORS: Final = tuple(
    door
    for act in ACTS.values()
    for door in (
        Door("GET", f"/runs/{{run_id}}/{act.name}", _ask(act), act.door, act.permission),
        Door("POST", f"/runs/{{run_id}}/{act.name}", _do(act), f"do_{act.name}", act.permission),
    )
)
