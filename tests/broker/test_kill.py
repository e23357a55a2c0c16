"""A taker that is killed in the middle of a batch loses nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import cast

import redis

from tests.broker.post import NAMES, mailbox, taken
from tests.services.shared import ROOT
from wfcelery.broker.sender import Sender

WRITTEN = f"{NAMES.prefix}written"


def test_killing_takers_in_mid_batch_loses_nothing_and_keeps_the_order(
    valkey: redis.Redis, valkey_url: str
) -> None:
    sender = Sender(valkey, NAMES)
    pushed = [str(number) for number in range(10_000)]
    sender.push([text.encode() for text in pushed])
    in_flight = 0
    for epoch in range(1, 4):
        command = [sys.executable, "-m", "tests.broker.taker", valkey_url, str(epoch)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(50):
                assert process.stdout.readline() == b"written\n"
            process.kill()
        in_flight += valkey.exists(NAMES.inflight)
    written = [text.decode() for text in cast("list[bytes]", valkey.lrange(WRITTEN, 0, -1))]
    last = mailbox(valkey, 9)
    while batch := taken(last, 1_000):
        written += batch
        last.done()
    assert in_flight > 0
    assert list(dict.fromkeys(written)) == pushed
