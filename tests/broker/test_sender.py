"""Pushing: one call to the server, one bell for many messages."""

from __future__ import annotations

import json

import redis

from tests.broker.post import NAMES, mailbox, taken
from wfcelery.broker.names import EXECUTOR_QUEUE
from wfcelery.broker.sender import Sender

QUEUE = NAMES.queue_key(EXECUTOR_QUEUE)


def calls(client: redis.Redis) -> dict[str, int]:
    told = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): stats["calls"] for name, stats in told.items()}


def test_the_bell_is_rung_once_for_many_pushes_and_again_after_a_batch_was_taken(client: redis.Redis) -> None:
    sender, box = Sender(client, NAMES), mailbox(client)
    for _ in range(5):
        sender.push([b"a"])
    sender.ring()
    assert client.llen(QUEUE) == 1
    box.take(1)
    sender.push([b"b"])
    sender.push([b"c"])
    assert client.llen(QUEUE) == 2


def test_a_bell_that_got_lost_is_rung_again_in_two_seconds_at_most(client: redis.Redis) -> None:
    Sender(client, NAMES).ring()
    assert 0 < client.pttl(NAMES.bell) <= 2_000


def test_the_bell_calls_the_doorbell_task(client: redis.Redis) -> None:
    Sender(client, NAMES).ring()
    rung = client.rpop(QUEUE)
    assert isinstance(rung, bytes)
    assert json.loads(rung)["headers"]["task"] == "wfcelery.doorbell"


def test_whoever_comes_first_makes_the_nonce_and_all_others_see_it(client: redis.Redis) -> None:
    first, second, box = Sender(client, NAMES), Sender(client, NAMES), mailbox(client)
    nonces = [first.push([]), second.push([b"a"]), second.push([]), box.nonce()[0]]
    client.flushall()
    after = [second.push([b"a"]), first.push([b"b"]), box.nonce()[0], first.push([])]
    assert [len(set(nonces)), len(set(after)), len({*nonces, *after})] == [1, 1, 2]
    assert first.length() == 2


def test_a_nonce_that_nobody_of_us_wrote_is_a_nonce(client: redis.Redis) -> None:
    client.set(NAMES.nonce, b"\xff")
    assert [Sender(client, NAMES).push([]), Sender(client, NAMES).push([b"a"])] == ["\ufffd", "\ufffd"]


def test_pushing_nothing_tells_the_nonce_and_does_not_ring(client: redis.Redis) -> None:
    nonce, _ = mailbox(client).nonce()
    assert Sender(client, NAMES).push([]) == nonce
    assert client.llen(QUEUE) == 0


def test_a_large_push_arrives_whole_and_in_order(client: redis.Redis) -> None:
    sender = Sender(client, NAMES)
    sender.push([str(number).encode() for number in range(1_201)])
    assert sender.length() == 1_201
    assert taken(mailbox(client), 2_000) == [str(number) for number in range(1_201)]


def test_one_push_is_one_call_to_the_server(valkey: redis.Redis) -> None:
    sender = Sender(valkey, NAMES)
    sender.push([b"first"])
    valkey.config_resetstat()
    sender.push([b"a"] * 500)
    # Inside the one call: put, try the bell, look at the nonce.
    assert calls(valkey) == {"config|resetstat": 1, "evalsha": 1, "rpush": 1, "set": 1, "get": 1}


def test_messages_that_are_large_together_are_pushed_in_pieces(valkey: redis.Redis) -> None:
    sender = Sender(valkey, NAMES)
    sender.push([b"first"])
    valkey.config_resetstat()
    sender.push([b"x" * 3 * 2**20, b"y" * 2**20, b"z", b"w" * 5 * 2**20])
    assert calls(valkey)["evalsha"] == 3
    assert sender.length() == 5


def test_a_server_that_forgot_the_scripts_is_given_them_again(client: redis.Redis) -> None:
    sender, box = Sender(client, NAMES), mailbox(client)
    for _ in range(2):
        sender.push([b"a"])
        assert taken(box) == ["a"]
        box.done()
        box.add_stops(["s"])
        client.flushall()
        client.script_flush()
