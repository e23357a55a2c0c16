"""Reports on their way: none is lost by a flush, and none is pushed more often than that needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
import redis

from wfcelery.broker.client import connect
from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import Names
from wfcelery.broker.sender import Sender
from wfcelery.core.messages import StepDone
from wfcelery.core.state import StepRef
from wfcelery.executor.answers import new_run_id
from wfcelery.shell.outbox import Outbox
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal

NAMES = Names()
SEAL = Seal(keyring(("a secret of thirty-two characters",)))
RUN = new_run_id(1.0)


@pytest.fixture
def client(valkey_url: str) -> Iterator[redis.Redis]:
    with connect(valkey_url) as made:
        made.flushall()
        yield made


def outbox(client: redis.Redis) -> Outbox:
    return Outbox(Sender(client, NAMES), SEAL, keep_s=60.0)


def report(number: int) -> StepDone:
    return StepDone(StepRef(RUN, "a", number, 1, 2), number)


def there(client: redis.Redis) -> list[object]:
    """The results of the reports in the mailbox, in order."""
    payloads = cast("list[bytes]", client.lrange(NAMES.mailbox, 0, -1))
    messages = map(SEAL.read, payloads)
    return [message.result for message in messages if isinstance(message, StepDone)]


def look(*boxes: Outbox) -> None:
    for _ in range(5):
        for box in boxes:
            box.tend()


def test_after_a_flush_each_process_pushes_its_reports_again_once_even_if_no_executor_is_there(
    client: redis.Redis,
) -> None:
    one, other, idle = outbox(client), outbox(client), outbox(client)
    one.push(report(1), report(2))
    other.push(report(3))
    look(one, other, idle)
    assert there(client) == [1, 2, 3]
    for _ in range(2):
        client.flushall()
        look(other, one, idle)
        assert there(client) == [3, 1, 2]


@pytest.mark.parametrize("executor_first", [True, False])
def test_it_does_not_matter_who_makes_the_new_nonce(client: redis.Redis, *, executor_first: bool) -> None:
    box = outbox(client)
    box.push(report(1))
    client.flushall()
    mailbox = RedisMailbox(client, NAMES, 1, SEAL.read, SEAL.write)
    if executor_first:
        mailbox.nonce()
    look(box)
    mailbox.nonce()
    look(box)
    assert there(client) == [1]


def test_a_report_that_is_the_first_thing_after_a_flush_brings_the_earlier_ones_back(
    client: redis.Redis,
) -> None:
    box = outbox(client)
    box.push(report(1))
    client.flushall()
    box.push(report(2))
    look(box)
    assert there(client) == [2, 1]


def test_a_flush_between_the_pieces_of_a_large_push_loses_none_of_them(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = Sender(client, NAMES)
    box = Outbox(sender, SEAL, keep_s=60.0)
    box.push(report(0))
    push, pushed = sender._push, []

    def push_and_flush(keys: list[str], args: list[bytes]) -> object:
        pushed.append(push(keys, args))
        if len(pushed) == 1:
            client.flushall()
        return pushed[-1]

    monkeypatch.setattr(sender, "_push", push_and_flush)
    box.push(*map(report, range(1, 701)))
    look(box)
    assert set(there(client)) == set(range(701))
