"""Rights by Django's users, groups and permissions.

`read`, `start`, `define`, `decide`, `signal`, `cancel`, `retry` and `admin` are permissions of the app
`wfcelery`. What tools ask for is one too, or, with a dot in it, any permission: `shop.refund_order`.
Groups of approvers are Django's groups. Who is not active is nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.db import InterfaceError, OperationalError, connections

from wfcelery.contrib.django import boot, conf
from wfcelery.core.messages import Kind, Principal
from wfcelery.rights import Permission, Resource

T = TypeVar("T")


def principal_of(user: Any) -> Principal:  # noqa: ANN401 - whatever the project's users are
    """Give a Django user as who acts."""
    groups = getattr(user, "groups", None)
    names = () if groups is None else tuple(groups.order_by("name").values_list("name", flat=True))
    return Principal(str(user.get_username()), Kind.PERSON, names)


def may(user: Any, permission: str) -> bool:  # noqa: ANN401 - same
    """Tell whether a Django user has one of our permissions, or that of a tool."""
    if not user.is_active:
        return False
    wanted = permission if "." in permission else f"wfcelery.{permission}"
    return bool(user.has_perm(wanted) or user.has_perm(f"wfcelery.{Permission.ADMIN.value}"))


class DjangoAuthority:
    """The hook for `authorize`: our processes ask it, each in threads of its own."""

    def __init__(self) -> None:
        boot.set_up()
        self._application = conf.load_settings().user

    def authorize(self, who: Principal, permission: str, resource: Resource) -> bool:  # noqa: ARG002 - the hook
        """Tell whether somebody may. The application itself may do all but decide, which only people do."""
        if who.id == self._application and who.kind is Kind.SYSTEM:
            return permission != Permission.DECIDE
        user = _asked(lambda: _user(who.id))
        return user is not None and _asked(lambda: may(user, str(permission)))

    def principal(self, user: str) -> Principal | None:
        """Give a user with the groups that Django knows."""
        if user == self._application:
            return Principal(user, Kind.SYSTEM)
        found = _asked(lambda: _user(user))
        return None if found is None else _asked(lambda: principal_of(found))

    def members(self, group: str) -> tuple[str, ...]:
        """Name the active users of a group."""
        model = get_user_model()
        people = model._default_manager.filter(groups__name=group, is_active=True)  # noqa: SLF001 - Django's way
        field = model.USERNAME_FIELD
        return _asked(
            lambda: tuple(str(each) for each in people.order_by(field).values_list(field, flat=True))
        )

    def addresses(self, user: str) -> tuple[str, ...]:
        """Give the mail address of a user, if the project says how mail is sent (`mail_url`)."""
        url = conf.mail_url()
        found = _asked(lambda: _user(user)) if url else None
        email = getattr(found, "email", "") if found is not None else ""
        if not url or not email:
            return ()
        return (f"{url}{'&' if '?' in url else '?'}to={quote(email, safe='@')}",)


def _user(name: str) -> Any:  # noqa: ANN401 - same
    model = get_user_model()
    try:
        found = model._default_manager.get_by_natural_key(name)  # noqa: SLF001 - Django's way
    except model.DoesNotExist:
        return None
    return found if found.is_active else None


def _asked(question: Callable[[], T]) -> T:
    """Ask the database; a connection that has died meanwhile is opened anew, once.

    Connections of these threads stay open: no request ends here, with which Django would close them.
    """
    try:
        return question()
    except (OperationalError, InterfaceError):
        for connection in connections.all(initialized_only=True):
            connection.close()
        return question()
