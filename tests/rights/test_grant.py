"""Grants: a permission, and the flows it is for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcelery.rights.grant import Grant, parse_grant
from wfcelery.rights.permission import SOMETHING, Permission, Resource

GLOBS = st.text("abé*?.-_", max_size=12)
FLOWS = st.text("abé?.-_", max_size=12)
PERMISSIONS = st.sampled_from([*Permission, "payments.refund"])


def granted(text: str) -> Grant:
    grant = parse_grant(text)
    assert isinstance(grant, Grant)
    return grant


def test_a_permission_is_for_every_flow_and_for_what_is_about_none() -> None:
    grant = granted("start")
    assert grant.covers("start", Resource(flow="order"))
    assert grant.covers("start", Resource())
    assert not grant.covers("read", Resource(flow="order"))


def test_a_permission_for_some_flows_is_for_no_others_and_not_where_the_flow_is_unknown() -> None:
    grant = granted("start:order*")
    assert grant.covers("start", Resource(flow="order_eu"))
    assert not grant.covers("start", Resource(flow="Order"))
    assert not grant.covers("start", Resource(flow="reorder"))
    assert not grant.covers("start", Resource())


def test_admin_covers_every_permission_and_tools_too() -> None:
    grant = granted("admin")
    assert all(grant.covers(each, Resource(flow="order")) for each in (*Permission, "payments.refund"))


def test_admin_of_some_flows_is_admin_there_only() -> None:
    grant = granted("admin:order")
    assert grant.covers("payments.refund", Resource(flow="order"))
    assert not grant.covers("read", Resource(flow="other"))
    assert not grant.covers("admin", Resource())


def test_a_permission_of_a_tool_is_no_other() -> None:
    grant = granted("payments.refund")
    assert not grant.is_ours
    assert grant.covers("payments.refund", Resource())
    assert not grant.covers("payments", Resource())
    assert not grant.covers("payments.refunds", Resource())


def test_whoever_may_do_it_to_some_flow_may_do_it_to_something() -> None:
    assert granted("read:order*").covers("read", SOMETHING)
    assert granted("admin:order").covers("read", SOMETHING)
    assert not granted("read:order*").covers("start", SOMETHING)


@pytest.mark.parametrize("text", ["read", "start:order*", "payments.refund:a?c"])
def test_a_grant_is_written_as_it_was_read(text: str) -> None:
    assert str(granted(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", ":", "read:", ":order", "re ad", "read:a b", "read\n", "*", "re?d", "read:[ab]", "read:\u200b"],
)
def test_what_cannot_be_a_grant_is_told(text: str) -> None:
    assert isinstance(parse_grant(text), str)


@given(GLOBS, FLOWS, PERMISSIONS)
def test_a_glob_means_what_everybody_reads_in_it(glob: str, flow: str, permission: str) -> None:
    parts = {"*": ".*", "?": "."}
    wanted = re.compile("".join(parts.get(char, re.escape(char)) for char in glob), re.DOTALL)
    covers = Grant(permission, glob).covers(permission, Resource(flow=flow))
    assert covers is (wanted.fullmatch(flow) is not None)


@given(st.text(max_size=30))
def test_any_text_is_a_grant_or_a_sentence_and_a_grant_reads_back(text: str) -> None:
    grant = parse_grant(text)
    if isinstance(grant, Grant):
        assert parse_grant(str(grant)) == grant


def test_a_glob_of_many_stars_is_decided_at_once() -> None:
    assert not Grant("read", "a*" * 50 + "b").covers("read", Resource(flow="a" * 200))
