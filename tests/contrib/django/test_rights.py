"""Who may do what, by Django's users, groups and permissions."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.test import override_settings

from wfcelery.contrib.django.rights import DjangoAuthority, may, principal_of
from wfcelery.core.messages import Kind, Principal
from wfcelery.rights import Resource
from wfcelery.rights.hook import load_hook

pytestmark = pytest.mark.usefixtures("tables")

ORDER = Resource(flow="order")
OURS = ("read", "start", "define", "decide", "signal", "cancel", "retry", "admin")


def permission(name: str, app: str = "wfcelery") -> Any:  # noqa: ANN401 - Django ships no types
    return Permission.objects.get(content_type__app_label=app, codename=name)


def somebody(name: str, *permissions: str, **more: Any) -> Any:  # noqa: ANN401 - same
    user = User.objects.create_user(name, **more)
    user.user_permissions.add(*map(permission, permissions))
    return user


def test_every_permission_of_ours_is_one_of_django() -> None:
    found = Permission.objects.filter(content_type__app_label="wfcelery", codename__in=OURS)
    assert found.count() == len(OURS)


def test_a_user_may_what_the_permissions_say_and_nothing_else() -> None:
    somebody("ann", "read", "decide")
    authority = DjangoAuthority()
    allowed = [each for each in OURS if authority.authorize(Principal("ann"), each, ORDER)]
    assert allowed == ["read", "decide"]


def test_permissions_of_groups_count_and_groups_are_told() -> None:
    group = Group.objects.create(name="managers")
    group.permissions.add(permission("decide"))
    somebody("ann").groups.add(group, Group.objects.create(name="a"))
    authority = DjangoAuthority()
    assert authority.authorize(Principal("ann"), "decide", ORDER)
    assert authority.principal("ann") == Principal("ann", Kind.PERSON, ("a", "managers"))
    assert authority.members("managers") == ("ann",)
    assert authority.members("nobody") == ()


def test_admin_and_superusers_may_everything() -> None:
    somebody("ann", "admin")
    User.objects.create_superuser("root")
    authority = DjangoAuthority()
    assert all(authority.authorize(Principal(who), each, ORDER) for who in ("ann", "root") for each in OURS)


def test_who_is_not_active_is_nobody() -> None:
    user = somebody("ann", "admin", is_active=False)
    user.groups.add(Group.objects.create(name="managers"))
    authority = DjangoAuthority()
    assert not any(authority.authorize(Principal("ann"), each, ORDER) for each in OURS)
    assert authority.principal("ann") is None
    assert authority.members("managers") == ()
    assert not may(user, "read")
    assert not may(AnonymousUser(), "read")


def test_an_unknown_user_may_nothing() -> None:
    assert not DjangoAuthority().authorize(Principal("eve"), "read", ORDER)
    assert DjangoAuthority().principal("eve") is None


def test_the_application_may_all_but_decide_and_a_person_of_its_name_does_not_pass_for_it() -> None:
    authority = DjangoAuthority()
    itself = Principal("app:django", Kind.SYSTEM)
    assert authority.principal("app:django") == itself
    assert [each for each in OURS if not authority.authorize(itself, each, ORDER)] == ["decide"]
    assert not any(authority.authorize(Principal("app:django"), each, ORDER) for each in OURS)


def test_a_tool_may_ask_for_any_permission_of_django() -> None:
    user = somebody("ann")
    user.user_permissions.add(permission("change_order", "orders"))
    authority = DjangoAuthority()
    assert authority.authorize(Principal("ann"), "orders.change_order", ORDER)
    assert not authority.authorize(Principal("ann"), "orders.delete_order", ORDER)


def test_mail_is_sent_only_where_the_project_says_how() -> None:
    somebody("ann", email="ann+x@example.org")
    somebody("bob")
    assert DjangoAuthority().addresses("ann") == ()
    with override_settings(
        WFCELERY={"database_url": "sqlite:////x.db", "mail_url": "mailto://smtp?from=us@x"}
    ):
        authority = DjangoAuthority()
        assert authority.addresses("ann") == ("mailto://smtp?from=us@x&to=ann%2Bx@example.org",)
        assert authority.addresses("bob") == ()


def test_it_is_a_hook_as_our_processes_load_them() -> None:
    hook = load_hook("wfcelery.contrib.django.rights:DjangoAuthority")
    agent = Principal("app:django", Kind.SYSTEM)
    assert hook.allows(agent, "start", ORDER)
    assert not hook.allows(agent, "decide", ORDER)


def test_a_user_acts_under_the_name_that_django_knows() -> None:
    user = somebody("ann")
    user.groups.add(Group.objects.create(name="managers"))
    assert principal_of(user) == Principal("ann", Kind.PERSON, ("managers",))
