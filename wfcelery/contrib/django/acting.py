"""What somebody does to runs in the admin: asked of the executor, as the one who has signed in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest

from wfcelery.contrib.django import conf, rights
from wfcelery.contrib.django.place import place
from wfcelery.core.values import digest
from wfcelery.errors import WfceleryError
from wfcelery.executor.answers import new_command_id
from wfcelery.rights import SOMETHING, Permission, Resource

VIA: Final = "django"
LONGEST: Final = 1_000
_COMMAND: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate as it was looked at: a retry opens another attempt."""

    run: str
    step: str
    attempt: int

    @classmethod
    def read(cls, text: str) -> Gate | None:
        """Read what a form says; None if it is no gate."""
        run, _, rest = text.partition(":")
        step, _, attempt = rest.rpartition(":")
        return cls(run, step, int(attempt)) if run and step and attempt.isdecimal() else None

    def __str__(self) -> str:
        return f"{self.run}:{self.step}:{self.attempt}"


def may(request: HttpRequest, permission: Permission, resource: Resource = SOMETHING) -> bool:
    """Tell whether who has signed in may do something; the executor asks again."""
    try:
        if place().settings.authorize == conf.AUTHORITY:
            return rights.may(request.user, permission.value)
        authority = place().authority
    except WfceleryError:
        return bool(request.user.is_active and request.user.is_superuser)
    return authority.is_open or authority.allows(rights.principal_of(request.user), permission, resource)


def decide(request: HttpRequest, gate: Gate, *, approve: bool) -> bool:
    """Approve or deny a gate; tell how it went."""

    def ask() -> str:
        answer = place().workflows.decide(
            gate.run,
            gate.step,
            approve=approve,
            comment=_said(request, "comment"),
            attempt=gate.attempt,
            by=rights.principal_of(request.user),
            via=VIA,
            command_id=_command(request, f"{gate}"),
        )
        if not answer.get("decided"):
            return f"your vote on {gate.step} is counted ({answer.get('votes')} of {answer.get('quorum')})"
        return f"the gate {gate.step} is {'approved' if answer.get('approved') else 'denied'}"

    return _tell(request, Permission.DECIDE, ask)


def cancel(request: HttpRequest, run: str) -> bool:
    """Stop a run for good; tell how it went."""

    def ask() -> str:
        place().workflows.cancel(
            run,
            _said(request, "reason"),
            by=rights.principal_of(request.user),
            command_id=_command(request, f"cancel {run}"),
        )
        return f"run {run} is cancelled"

    return _tell(request, Permission.CANCEL, ask)


def retry(request: HttpRequest, run: str) -> bool:
    """Let a failed run go on; tell how it went."""

    def ask() -> str:
        place().workflows.retry(
            run, by=rights.principal_of(request.user), command_id=_command(request, f"retry {run}")
        )
        return f"run {run} goes on from where it failed"

    return _tell(request, Permission.RETRY, ask)


def _tell(request: HttpRequest, permission: Permission, ask: Callable[[], str]) -> bool:
    """Ask, and say how it went. The executor asks for rights again, and perhaps not Django."""
    if not may(request, permission):
        who = request.user.get_username()
        messages.error(request, f"not done: {who} may not do this, the permission {permission} is missing")
        return False
    try:
        said = ask()
    except WfceleryError as error:
        messages.error(request, f"not done: {error}")
        return False
    messages.success(request, said)
    return True


def _said(request: HttpRequest, name: str) -> str:
    return str(request.POST.get(name, "")).strip()[:LONGEST]


def _command(request: HttpRequest, what: str) -> str:
    """Name the request by its form and its user: a form that is sent twice asks once."""
    given = str(request.POST.get("command", ""))
    if not _COMMAND.fullmatch(given):
        return new_command_id()
    return digest(f"{request.user.get_username()}\n{given}\n{what}")[:32]


def shown(request: HttpRequest, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the template shows
    """Give what every page of ours shows."""
    return {
        "may_decide": may(request, Permission.DECIDE),
        "may_cancel": may(request, Permission.CANCEL),
        "may_retry": may(request, Permission.RETRY),
        "command": new_command_id(),
        **more,
    }
