"""Sending for real, to a server on this machine."""

from __future__ import annotations

import logging
import sys
import time

import pytest

from tests.notify.receiver import Received, Receiver
from wfcelery.notify.post import NoApprise, NotSent, Post
from wfcelery.notify.texts import Text

TEXT = Text("Please decide: <b> & *x*", "line one\n  [a](b) <script> & *x* {{y}} :smile: \\n\n")


def refused(post: Post, address: str) -> tuple[str, bool]:
    with pytest.raises(NotSent) as caught:
        post.send(address, TEXT)
    return str(caught.value), caught.value.final


def test_a_text_arrives_as_it_is(receiver: Receiver) -> None:
    Post().send(receiver.address("hook"), TEXT)
    assert receiver.received == [Received("/hook", TEXT.title, TEXT.body.rstrip())]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_service_that_does_not_take_it_may_be_asked_again(receiver: Receiver, status: int) -> None:
    receiver.answers["hook"] = [status]
    assert refused(Post(), receiver.address("hook")) == (f"json://: the service answered {status}", False)


def test_a_service_cannot_send_a_link_on_to_another_place(receiver: Receiver) -> None:
    receiver.answers["hook"] = [302]
    assert refused(Post(), receiver.address("hook")) == ("json://: the service answered 302", False)
    assert [each.path for each in receiver.received] == ["/hook"]


def test_a_service_that_hangs_is_not_waited_for(receiver: Receiver) -> None:
    begun = time.monotonic()
    said = refused(Post(timeout_s=0.3), receiver.address("slow"))
    assert said == ("json://: the service did not answer in time", False)
    assert time.monotonic() - begun < 5


def test_a_service_out_of_reach_may_be_asked_again() -> None:
    said = "json://: the service was not reached, or did not take it"
    assert refused(Post(), "json://127.0.0.1:1/hook") == (said, False)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("nonsense://secret", "nonsense://"),
        ("slack://secret", "slack://"),
        ("json://", "json://"),
        ("secret", "an address"),
        ("", "an address"),
        ("se cret://x", "an address"),
    ],
)
def test_an_address_that_cannot_be_used_is_final_and_not_shown(address: str, shown: str) -> None:
    reason = "apprise does not know such an address, or it is incomplete"
    assert refused(Post(), address) == (f"{shown}: {reason}", True)


def test_nothing_of_an_address_or_a_text_is_logged(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.answers["hush-path"] = [200, 500]
    post = Post(timeout_s=0.3)
    address = receiver.address("hush-path").replace("json://", "json://hush-user:hush-word@")
    post.send(address, Text("hush-title", "hush-body"))
    for each in (
        address,
        address.replace("hush-path", "slow-hush"),
        "slack://hush",
        "json://hush:x@127.0.0.1:1",
    ):
        refused(post, each)
    shown = capfd.readouterr()
    assert "hush" not in caplog.text + shown.out + shown.err


def test_without_apprise_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(NoApprise) as caught:
        Post()
    assert str(caught.value) == (
        "notices go through apprise, which is not installed; `pip install 'wfcelery[notify]'` does that"
    )
