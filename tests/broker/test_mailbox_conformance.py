"""What every mailbox promises to the executor, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterator

import fakeredis
import pytest

from tests.broker.post import letter, letters, mailbox, taken
from wfcelery.embedded.mailbox import LocalMailbox
from wfcelery.executor.ports import Mailbox


@pytest.fixture(params=["local", "fakeredis", "valkey"])
def box(request: pytest.FixtureRequest) -> Iterator[Mailbox]:
    match request.param:
        case "local":
            yield LocalMailbox()
        case "fakeredis":
            with fakeredis.FakeRedis() as fake:
                yield mailbox(fake)
        case _:
            yield mailbox(request.getfixturevalue("valkey"))


def test_messages_are_taken_in_the_order_in_which_they_were_pushed(box: Mailbox) -> None:
    box.push(*letters("a", "b"))
    box.push(letter("c"))
    assert taken(box) == ["a", "b", "c"]


def test_an_empty_mailbox_gives_nothing_and_may_be_done(box: Mailbox) -> None:
    assert taken(box) == []
    box.done()
    assert taken(box) == []


def test_pushing_nothing_changes_nothing(box: Mailbox) -> None:
    box.push()
    assert taken(box) == []


def test_no_more_than_the_limit_are_taken_and_the_rest_comes_next(box: Mailbox) -> None:
    box.push(*letters("a", "b", "c", "d", "e"))
    batches = []
    while batch := taken(box, 2):
        batches.append(batch)
        box.done()
    assert batches == [["a", "b"], ["c", "d"], ["e"]]


def test_what_was_taken_comes_again_until_it_is_done(box: Mailbox) -> None:
    box.push(*letters("a", "b", "c"))
    assert [taken(box, 2), taken(box, 2)] == [["a", "b"], ["a", "b"]]
    box.done()
    assert taken(box, 2) == ["c"]


def test_what_is_pushed_between_take_and_done_stays(box: Mailbox) -> None:
    box.push(letter("a"))
    assert taken(box) == ["a"]
    box.push(letter("b"))
    box.done()
    assert taken(box) == ["b"]


def test_done_is_for_the_batch_and_not_for_what_waits(box: Mailbox) -> None:
    box.push(*letters("a", "b"))
    box.done()
    assert taken(box) == ["a", "b"]


def test_equal_messages_are_kept_apart(box: Mailbox) -> None:
    box.push(*letters("a", "a"))
    assert taken(box, 1) == ["a"]
    box.done()
    assert taken(box) == ["a"]


def test_a_message_may_hold_anything_and_be_empty(box: Mailbox) -> None:
    strange = ["", "\x00", "ü€😀", "\r\n", "{}"]
    box.push(*letters(*strange))
    assert taken(box) == strange
