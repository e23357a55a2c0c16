"""How many messages wait in queues of the broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from wfcelery.broker.client import reaching
from wfcelery.broker.names import PRIORITY_STEPS, Names

if TYPE_CHECKING:
    import redis


def lengths(client: redis.Redis, names: Names, queues: Iterable[str]) -> dict[str, int]:
    """Count the messages of each queue, of all priorities; in one round trip."""
    wanted = sorted(queues)
    with reaching(client), client.pipeline(transaction=False) as pipeline:
        for queue in wanted:
            for priority in PRIORITY_STEPS:
                pipeline.llen(names.queue_key(queue, priority))
        told = [int(each) for each in pipeline.execute()]
    size = len(PRIORITY_STEPS)
    return {queue: sum(told[n * size : (n + 1) * size]) for n, queue in enumerate(wanted)}
