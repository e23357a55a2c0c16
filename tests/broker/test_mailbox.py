"""What only the mailbox on a server promises: fences, bounds, and going on after a flush."""

from __future__ import annotations

import pytest
import redis

from tests.broker.post import NAMES, letter, letters, mailbox, taken
from wfcelery.broker.sender import Sender
from wfcelery.errors import LostLease


def test_a_successor_gets_what_its_predecessor_had_in_flight_first(client: redis.Redis) -> None:
    former, successor = mailbox(client, 1), mailbox(client, 2)
    former.push(*letters("a", "b", "c"))
    assert taken(former, 2) == ["a", "b"]
    assert taken(successor, 1) == ["a", "b"]
    successor.done()
    assert taken(successor) == ["c"]


def test_a_fenced_executor_can_neither_take_nor_let_go(client: redis.Redis) -> None:
    former, successor = mailbox(client, 1), mailbox(client, 2)
    former.push(*letters("a", "b"))
    assert taken(former, 1) == ["a"]
    assert taken(successor) == ["a"]
    for act in (former.done, lambda: former.take(1)):
        with pytest.raises(LostLease) as lost:
            act()
        assert str(lost.value) == "another executor has taken over since epoch 1; this one stops"
    assert taken(successor) == ["a"]


def test_epochs_are_compared_as_numbers(client: redis.Redis) -> None:
    mailbox(client, 9).push(letter("a"))
    assert taken(mailbox(client, 9)) == ["a"]
    assert taken(mailbox(client, 10)) == ["a"]
    with pytest.raises(LostLease):
        mailbox(client, 9).take(1)


def test_a_batch_is_bounded_in_bytes_but_has_one_message_at_least(client: redis.Redis) -> None:
    box = mailbox(client, batch_bytes=10)
    box.push(*letters("12345", "67890", "x", "longer than ten", "y", "z"))
    batches = []
    while batch := taken(box):
        batches.append(batch)
        box.done()
    assert batches == [["12345", "67890"], ["x"], ["longer than ten"], ["y", "z"]]


def test_a_delayed_done_leaves_the_next_batch_alone(client: redis.Redis) -> None:
    delayed, again = mailbox(client), mailbox(client)
    delayed.push(*letters("a", "b"))
    assert taken(delayed, 1) == ["a"]
    assert taken(again, 1) == ["a"]
    again.done()
    assert taken(again, 1) == ["b"]
    delayed.done()
    assert taken(again) == ["b"]


def test_after_a_flush_between_take_and_done_everything_goes_on(client: redis.Redis) -> None:
    box = mailbox(client)
    box.push(letter("a"))
    assert taken(box) == ["a"]
    client.flushall()
    box.push(letter("b"))
    box.done()
    assert taken(box) == ["b"]
    box.done()
    assert taken(box) == []


def test_after_a_flush_done_does_not_touch_what_an_older_executor_took(client: redis.Redis) -> None:
    older, newer = mailbox(client, 1), mailbox(client, 2)
    newer.push(letter("a"))
    assert taken(newer) == ["a"]
    client.flushall()
    newer.push(letter("b"))
    assert taken(older) == ["b"]
    newer.done()
    assert taken(newer) == ["b"]


def test_the_nonce_is_made_once_and_anew_after_a_flush(client: redis.Redis) -> None:
    box = mailbox(client)
    first, made = box.nonce()
    assert made
    assert mailbox(client, 2).nonce() == (first, False)
    assert Sender(client, NAMES).push([b"a"]) == first
    client.flushall()
    second, made = box.nonce()
    assert made
    assert second != first


def test_pulses_tell_who_was_last_alive_when(client: redis.Redis) -> None:
    box = mailbox(client)
    assert box.pulses() == {}
    box.beat("executor", 1.5)
    box.beat("beat", 1_700_000_000.123)
    box.beat("executor", 2.25)
    assert box.pulses() == {"executor": 2.25, "beat": 1_700_000_000.123}
