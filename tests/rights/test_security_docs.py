"""What docs/security.md shows is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from wfcelery.core.messages import Kind, Principal
from wfcelery.rights import SOMETHING, Permission, Resource
from wfcelery.rights.hook import OPTIONAL, Hook
from wfcelery.rights.policy_text import parse_policy

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_policy_of_the_page_is_good_and_means_what_the_page_says() -> None:
    people = parse_policy(block("toml"), "security.md")
    ann, agent = Principal("ann"), Principal("ann", Kind.AGENT)
    assert people.allows(ann, "start", Resource(flow="order_eu"))
    assert not people.allows(ann, "start", Resource(flow="report"))
    assert people.allows(ann, "decide", Resource(flow="report"))
    assert not people.allows(agent, "decide", Resource(flow="order"))
    assert people.allows(agent, "payments.refund", Resource(flow="order"))
    assert not people.allows(Principal("eve"), "read", Resource())
    assert [token.kind for token in people.users["ann"].tokens] == [Kind.PERSON, Kind.AGENT]


def test_the_hook_of_the_page_works() -> None:
    names: dict[str, Any] = {}
    exec(compile(block("python"), "security.md", "exec"), names)  # noqa: S102 - our own page
    hook = Hook("shop.rights:authorize", {"authorize": names["authorize"]})
    bob = Principal("bob")
    assert hook.allows(Principal("ann"), "admin", Resource())
    assert hook.allows(bob, "read", SOMETHING)
    assert hook.allows(bob, "start", Resource(flow="order_eu"))
    assert not hook.allows(bob, "start", Resource(flow="report"))


@pytest.mark.parametrize("permission", Permission)
def test_every_permission_is_in_the_table(permission: Permission) -> None:
    assert f"| `{permission.value}` |" in PAGE


def test_every_method_of_a_hook_is_named() -> None:
    assert [name for name in OPTIONAL if f"`{name}(" not in PAGE] == []
