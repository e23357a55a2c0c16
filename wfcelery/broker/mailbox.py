"""The mailbox on Redis, as the executor sees it.

    mailbox ──take──▶ inflight ──done──▶ gone

A batch stays in `inflight` until it is let go of: whoever comes after a killed executor takes it first. Its
first entry is a token, which `done` names: a `done` that was delayed on its way and arrives after the next
`take` must not delete a batch that is not written yet.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Final

import redis

from wfcelery.broker.client import reaching
from wfcelery.broker.names import Names
from wfcelery.broker.pulse import Pulse
from wfcelery.broker.sender import PUSHED_AT_ONCE, Sender
from wfcelery.errors import LostLease
from wfcelery.executor.messages import Message

BATCH_BYTES: Final = 8 * 2**20
STOPS_KEPT: Final = 100_000
STOPS_KEPT_US: Final = 24 * 3_600 * 1_000_000

# The bell is silenced first: whoever pushes after this rings again.
# KEYS: epoch, inflight, mailbox, bell. ARGV: my epoch, token, messages at most, bytes at most.
_TAKE: Final = """
local stored = tonumber(redis.call('GET', KEYS[1]) or '0')
local mine = tonumber(ARGV[1])
if stored > mine then return false end
if stored < mine then redis.call('SET', KEYS[1], ARGV[1]) end
redis.call('DEL', KEYS[4])
local held = redis.call('LRANGE', KEYS[2], 0, -1)
if #held > 0 then
  table.insert(held, 1, redis.call('LLEN', KEYS[3]))
  return held
end
local bytes, batch = 0, {ARGV[2]}
for _ = 1, tonumber(ARGV[3]) do
  local message = redis.call('LMOVE', KEYS[3], KEYS[2], 'LEFT', 'RIGHT')
  if not message then break end
  bytes = bytes + #message
  if bytes > tonumber(ARGV[4]) and #batch > 1 then
    redis.call('LMOVE', KEYS[2], KEYS[3], 'RIGHT', 'LEFT')
    break
  end
  batch[#batch + 1] = message
end
if #batch > 1 then redis.call('LPUSH', KEYS[2], ARGV[2]) end
table.insert(batch, 1, redis.call('LLEN', KEYS[3]))
return batch
"""

# KEYS: epoch, inflight. ARGV: my epoch, token. An epoch older than mine, or none, is what a flush leaves:
# then the batch is gone already, and what is in flight is not mine.
_DONE: Final = """
if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
if redis.call('LINDEX', KEYS[2], 0) == ARGV[2] then redis.call('DEL', KEYS[2]) end
return 1
"""

# KEYS: stops. ARGV: members. Numbers are microseconds of the server's clock, pushed on where it is too slow:
# so they go on growing after a flush, and tell the age.
_STOP: Final = f"""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local newest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local number = math.max(now, (tonumber(newest[2]) or 0) + 1)
for _, member in ipairs(ARGV) do
  redis.call('ZADD', KEYS[1], string.format('%.0f', number), member)
  number = number + 1
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -{STOPS_KEPT + 1})
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - {STOPS_KEPT_US}))
"""


class RedisMailbox:
    """The mailbox for the executor of one epoch. An older one can neither take nor let go: `LostLease`."""

    def __init__(
        self,
        client: redis.Redis,
        names: Names,
        epoch: int,
        read: Callable[[bytes], Message],
        write: Callable[[Message], bytes],
        *,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._client = client
        self._names = names
        self._epoch = epoch
        self._read = read
        self._write = write
        self._batch_bytes = batch_bytes
        self._sender = Sender(client, names)
        self._pulse = Pulse(client, names)
        self._token = b""
        self._left = 0
        self._take = client.register_script(_TAKE)
        self._done = client.register_script(_DONE)
        self._stop = client.register_script(_STOP)

    def push(self, *messages: Message) -> None:
        """Put messages at the end, and ring."""
        self._sender.push([self._write(message) for message in messages])

    def take(self, limit: int) -> Sequence[Message]:
        """Take up to `limit` messages; a batch that was not let go of, whoever took it, comes again."""
        token = uuid.uuid4().hex
        names = self._names
        with reaching(self._client):
            batch = self._take(
                [names.epoch, names.inflight, names.mailbox, names.bell],
                [self._epoch, token, limit, self._batch_bytes],
            )
        if batch is None:
            raise LostLease(self._epoch)
        self._left, self._token, *payloads = batch
        return tuple(self._read(payload) for payload in payloads)

    def done(self) -> None:
        """Let go of what was taken last."""
        with reaching(self._client):
            held = self._done([self._names.epoch, self._names.inflight], [self._epoch, self._token])
        if not held:
            raise LostLease(self._epoch)

    @property
    def left(self) -> int:
        """How many messages waited behind those taken last."""
        return self._left

    def claim(self) -> None:
        """Make the broker's epoch mine, whatever it is: for who knows from the tables that it is so."""
        with reaching(self._client):
            self._client.set(self._names.epoch, self._epoch)

    def nonce(self) -> tuple[str, bool]:
        """Tell the mailbox's nonce, and whether it had to be made: the broker is new or was flushed."""
        fresh = uuid.uuid4().hex
        with reaching(self._client), self._client.pipeline(transaction=True) as both:
            both.set(self._names.nonce, fresh, nx=True)
            both.get(self._names.nonce)
            made, stored = both.execute()
        return stored.decode(), bool(made)

    def add_stops(self, members: Sequence[str]) -> None:
        """Ask workers to stop these. The newest 100,000 are kept, for a day."""
        with reaching(self._client):
            for begin in range(0, len(members), PUSHED_AT_ONCE):
                self._stop([self._names.stops], members[begin : begin + PUSHED_AT_ONCE])

    def beat(self, who: str, now: float) -> None:
        """Say that `who` is alive at `now`."""
        self._pulse.beat(who, now)

    def pulses(self) -> dict[str, float]:
        """Tell when each was last alive."""
        return self._pulse.pulses()
