"""Ringing the notifier: ids on its queue, and nothing that could hurt who rings."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from wfcelery.broker.client import connect
from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import NOTIFY_QUEUE, NOTIFY_TASK, Names
from wfcelery.broker.sender import Sender
from wfcelery.executor.packer import Packer
from wfcelery.shell.publisher import NOTICES_AT_ONCE, Publisher
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal

RING = keyring(("a secret of thirty-two characters",))


def publisher(url: str) -> Publisher:
    client, seal = connect(url), Seal(RING)
    mailbox = RedisMailbox(client, Names(), 1, seal.read, seal.write)
    return Publisher(Sender(client, Names()), mailbox, RING, Packer())


def test_the_notifier_is_told_ids_and_nothing_else(valkey_url: str) -> None:
    ids = [f"n{number}" for number in range(NOTICES_AT_ONCE + 1)]
    with connect(valkey_url) as client:
        client.delete(NOTIFY_QUEUE)
        publisher(valkey_url).ring(ids)
        queued = [json.loads(each) for each in reversed(client.lrange(NOTIFY_QUEUE, 0, -1))]
    assert [each["headers"]["task"] for each in queued] == [NOTIFY_TASK, NOTIFY_TASK]
    bodies = [json.loads(base64.b64decode(each["body"])) for each in queued]
    assert [body[0] for body in bodies] == [ids[:NOTICES_AT_ONCE], ids[NOTICES_AT_ONCE:]]
    assert [body[1] for body in bodies] == [{}, {}]


def test_a_broker_that_is_away_does_not_hurt_who_rings(tmp_path: Path) -> None:
    publisher(f"unix://{tmp_path}/nobody.sock").ring(["n1"])
    assert not (tmp_path / "nobody.sock").exists()
