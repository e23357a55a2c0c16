"""Every way in, with what it asks for. What has no permission says why not; a test goes over all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from wfcelery.rights import Permission

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Endpoint: TypeAlias = "Callable[[Request], Response] | Callable[[Request], Awaitable[Response]]"


@dataclass(frozen=True, slots=True)
class Door:
    """One path and method. A plain function is called in a thread; a coroutine function in the loop.

    Without a `permission` it is open to everybody, for the reason `open_because`. `is_api` doors speak JSON
    and problems; the others speak HTML. Form posts carry a CSRF token unless the door says `no_csrf`.
    `for_programs` is what programs call that know nothing of the API: they get problems, and what they send
    is left to the endpoint to read.
    """

    method: str
    path: str
    endpoint: Endpoint
    name: str
    permission: Permission | None = None
    open_because: str = ""
    is_api: bool = False
    no_csrf: bool = False
    for_programs: bool = False

    def __post_init__(self) -> None:
        """Refuse a door about which nobody has thought."""
        if (self.permission is None) != bool(self.open_because):
            message = f"{self.method} {self.path} needs a permission, or a reason to have none"
            raise ValueError(message)
        if self.for_programs and self.method != "GET" and self.permission is not None:
            # A browser would come with its cookie, and nothing else would tell whose wish it is.
            message = f"{self.method} {self.path} must go by what is sent, not by who is signed in"
            raise ValueError(message)


def all_doors() -> Sequence[Door]:
    """List every way in."""
    from wfcelery.web.api.table import DOORS as API_DOORS  # noqa: PLC0415 - same, below
    from wfcelery.web.pages import (  # noqa: PLC0415 - the pages know what a door is
        acts,
        approval,
        definitions,
        gate,
        hooks,
        inbox,
        login,
        metrics,
        run,
        runs,
        sheets,
        step,
        system,
    )

    decisions = (*approval.DOORS, *inbox.DOORS, *gate.DOORS)
    console = (*runs.DOORS, *run.DOORS, *step.DOORS, *acts.DOORS, *definitions.DOORS, *system.DOORS)
    programs = (*metrics.DOORS, *hooks.DOORS)
    return (*API_DOORS, *programs, *login.DOORS, *decisions, *console, *sheets.DOORS)
