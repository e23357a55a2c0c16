"""What everybody may do: put messages into the mailbox, ring, and see what is to be stopped."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast

import redis

from wfcelery.broker.client import reaching
from wfcelery.broker.names import DOORBELL_TASK, EXECUTOR_QUEUE, Names
from wfcelery.broker.task_message import bell

PUSHED_AT_ONCE: Final = 500
PUSHED_BYTES: Final = 4 * 2**20
PAGE: Final = 1_000
_LARGEST: Final = 2.0**53
"""A number of a stop that is larger is not ours."""

BELL_MS: Final = 2_000
"""A bell that was lost on its way is rung again after this long."""

_RING: Final = f"""
if redis.call('SET', KEYS[2], '1', 'NX', 'PX', {BELL_MS}) then
  redis.call('LPUSH', KEYS[3], ARGV[1])
end
"""
# Whoever comes first after a flush makes the nonce, so that everybody sees it change, and once.
_NONCE: Final = """
local nonce = redis.call('GET', KEYS[4])
if not nonce then
  nonce = ARGV[2]
  redis.call('SET', KEYS[4], nonce)
end
return nonce
"""
_PUSH: Final = f"""
redis.call('RPUSH', KEYS[1], unpack(ARGV, 3))
{_RING}
{_NONCE}
"""


class Sender:
    """The mailbox as those see it who write to it."""

    def __init__(self, client: redis.Redis, names: Names) -> None:
        self._client = client
        self._names = names
        self._keys = [names.mailbox, names.bell, names.queue_key(EXECUTOR_QUEUE), names.nonce]
        self._push = client.register_script(_PUSH)
        self._look = client.register_script(_NONCE)
        self._ring = client.register_script(_RING)

    def push(self, payloads: Sequence[bytes]) -> str:
        """Put messages at the end of the mailbox, ring, and tell its nonce, which is made if there is none.

        One call to the server for up to 500 messages or 4 MiB; more are pushed piece by piece, and the nonce
        is that of the first: if the broker loses its data in between, it is not that of the next push. If it
        raises, some may have been pushed: push all again.
        """
        fresh = uuid.uuid4().hex
        with reaching(self._client):
            if payloads:
                told = [self._push(self._keys, [_bell(), fresh, *piece]) for piece in _pieces(payloads)]
            else:
                told = [self._look(self._keys, ["", fresh])]
        return cast("bytes", told[0]).decode(errors="replace")

    def ring(self) -> None:
        """Ring the executor's bell, unless it has just been rung."""
        with reaching(self._client):
            self._ring(self._keys, [_bell()])

    def post(self, lines: Mapping[tuple[str, int], Sequence[bytes]]) -> None:
        """Put Celery messages on queues, by queue and priority, in order, with one call to the server."""
        if len(lines) == 1:
            [(place, messages)] = lines.items()
            with reaching(self._client):
                self._client.lpush(self._names.queue_key(*place), *messages)
            return
        with reaching(self._client), self._client.pipeline(transaction=False) as both:
            for (queue, priority), messages in lines.items():
                both.lpush(self._names.queue_key(queue, priority), *messages)
            both.execute()

    def length(self) -> int:
        """Tell how many messages wait to be taken."""
        with reaching(self._client):
            return int(self._client.llen(self._names.mailbox))

    def stops_since(self, number: int) -> tuple[int, list[str]]:
        """Tell the newest number, and what was asked to stop after `number`, in order.

        After the broker has lost its data the numbers may be smaller than before: then all is told.
        """
        members: list[str] = []
        with reaching(self._client):
            newest = self._client.zrange(self._names.stops, -1, -1, withscores=True)
            last = min(float(newest[0][1]), _LARGEST) if newest else float(number)
            since = float(number) if number <= last else 0.0
            while since < last:
                found = self._client.zrangebyscore(
                    self._names.stops, f"({since!r}", last, start=0, num=PAGE, withscores=True
                )
                page = cast("list[tuple[bytes, float]]", found)
                members += [member.decode(errors="replace") for member, _ in page]
                since = page[-1][1] if len(page) == PAGE else last
        return int(last), members

    def are_stopped(self, members: Collection[str]) -> set[str]:
        """Tell which of these were asked to stop."""
        asked = list(members)
        found: set[str] = set()
        with reaching(self._client):
            for begin in range(0, len(asked), PAGE):
                page = asked[begin : begin + PAGE]
                numbers = self._client.zmscore(self._names.stops, page)
                found |= {member for member, score in zip(page, numbers, strict=True) if score is not None}
        return found


def _bell() -> bytes:
    return bell(DOORBELL_TASK, EXECUTOR_QUEUE)


def _pieces(payloads: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Cut into pieces that one script call can take: Lua's stack and the server's buffers are bounded."""
    begin = size = 0
    for end, payload in enumerate(payloads):
        if end > begin and (end - begin == PUSHED_AT_ONCE or size + len(payload) > PUSHED_BYTES):
            yield payloads[begin:end]
            begin, size = end, 0
        size += len(payload)
    if begin < len(payloads):
        yield payloads[begin:]
