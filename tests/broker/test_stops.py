"""Asking workers to stop: what is asked is seen once, in order, and not for ever."""

from __future__ import annotations

import redis

from tests.broker.post import NAMES, mailbox
from wfcelery.broker import mailbox as module
from wfcelery.broker.sender import Sender


def test_stops_are_told_in_order_and_only_those_after_a_number(client: redis.Redis) -> None:
    box, sender = mailbox(client), Sender(client, NAMES)
    assert sender.stops_since(0) == (0, [])
    box.add_stops(["c", "a"])
    first, members = sender.stops_since(0)
    assert members == ["c", "a"]
    box.add_stops(["b"])
    second, members = sender.stops_since(first)
    assert members == ["b"]
    assert second > first
    assert sender.stops_since(second) == (second, [])


def test_what_is_asked_again_is_told_again(client: redis.Redis) -> None:
    box, sender = mailbox(client), Sender(client, NAMES)
    box.add_stops(["a", "b"])
    number, _ = sender.stops_since(0)
    box.add_stops(["a"])
    assert sender.stops_since(number)[1] == ["a"]
    assert sender.stops_since(0)[1] == ["b", "a"]


def test_many_stops_come_in_pages_and_lose_nothing(client: redis.Redis) -> None:
    box, sender = mailbox(client), Sender(client, NAMES)
    many = [f"run{number}" for number in range(2_500)]
    box.add_stops(many)
    assert sender.stops_since(0)[1] == many
    assert sender.are_stopped([*many, "other"]) == set(many)


def test_it_is_told_which_of_some_are_stopped(client: redis.Redis) -> None:
    box, sender = mailbox(client), Sender(client, NAMES)
    assert sender.are_stopped(["a"]) == set()
    box.add_stops(["a", "b"])
    assert sender.are_stopped({"a", "c"}) == {"a"}
    assert sender.are_stopped([]) == set()


def test_after_a_flush_new_stops_are_still_seen(client: redis.Redis) -> None:
    box, sender = mailbox(client), Sender(client, NAMES)
    box.add_stops(["a"])
    number, _ = sender.stops_since(0)
    client.flushall()
    assert sender.stops_since(number) == (number, [])
    box.add_stops(["b"])
    assert sender.stops_since(number)[1] == ["b"]


def test_numbers_that_have_become_smaller_mean_that_all_is_new(client: redis.Redis) -> None:
    sender = Sender(client, NAMES)
    client.zadd(NAMES.stops, {"a": 3, "b": 4})
    assert sender.stops_since(1_000) == (4, ["a", "b"])


def test_stops_older_than_a_day_go(client: redis.Redis) -> None:
    box, sender = mailbox(client), Sender(client, NAMES)
    box.add_stops(["now"])
    number, _ = sender.stops_since(0)
    day = 24 * 3_600 * 1_000_000
    client.zadd(NAMES.stops, {"old": number - day - 5_000, "young": number - day + 60_000_000})
    box.add_stops(["last"])
    assert sender.stops_since(0)[1] == ["young", "now", "last"]


def test_only_the_newest_are_kept(valkey: redis.Redis) -> None:
    box, sender = mailbox(valkey), Sender(valkey, NAMES)
    box.add_stops(["now"])
    number, _ = sender.stops_since(0)
    kept = module.STOPS_KEPT
    valkey.zadd(NAMES.stops, {f"m{each}": number - each for each in range(1, kept + 10)})
    box.add_stops(["last"])
    assert valkey.zcard(NAMES.stops) == kept
    assert sender.are_stopped(["now", "last", f"m{kept - 2}", f"m{kept - 1}"]) == {
        "now",
        "last",
        f"m{kept - 2}",
    }


def test_stops_that_nobody_of_us_wrote_do_no_harm(client: redis.Redis) -> None:
    sender = Sender(client, NAMES)
    client.zadd(NAMES.stops, {f"half {number}": 0.5 for number in range(1_000)})
    client.zadd(NAMES.stops, {b"\xff": 7, b"last": float("inf")})
    box = mailbox(client)
    assert sender.stops_since(0)[1][1_000:] == ["\ufffd"]
    box.add_stops(["a"])
    assert sender.are_stopped(["a"]) == {"a"}
