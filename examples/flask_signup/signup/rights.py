"""Who may do what, in the words of this application; asked by the console, the executor and the notifier."""

from __future__ import annotations

from signup.tables import Staff, staff
from wfcelery.core.messages import Principal
from wfcelery.rights import Resource

FORM = "signup-form"
"""The name under which the public form starts runs."""
DEPLOY = "deploy"
"""The name under which flows are brought in. It decides nothing."""
GROUP = "staff"
_OF_STAFF = frozenset({"read", "decide", "cancel", "retry"})


class Rights:
    """The staff reads and decides; the form starts `signup`, and nothing else."""

    def authorize(self, user: Principal, permission: str, resource: Resource) -> bool:
        """Tell whether somebody may do something."""
        if user.id == FORM:
            return permission == "start" and resource.flow == "signup"
        if user.id == DEPLOY:
            return permission in ("define", "read")
        return permission in _OF_STAFF and _member(user.id) is not None

    def principal(self, user: str) -> Principal | None:
        """Give what is known of somebody."""
        return Principal(user, groups=(GROUP,)) if _member(user) else None

    def members(self, group: str) -> list[str]:
        """Name the people of a group."""
        return [each.name for each in staff()] if group == GROUP else []

    def addresses(self, user: str) -> list[str]:
        """Tell where somebody wants to be written to."""
        found = _member(user)
        return [found.notify] if found and found.notify else []


def _member(name: str) -> Staff | None:
    return next((each for each in staff() if each.name == name), None)
