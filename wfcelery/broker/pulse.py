"""Signs of life on the broker, for whoever wants to know who is there."""

from __future__ import annotations

from typing import cast

import redis

from wfcelery.broker.client import reaching
from wfcelery.broker.names import Names


class Pulse:
    """Who was last alive when. Names must be few and come again: they stay until the broker is flushed."""

    def __init__(self, client: redis.Redis, names: Names) -> None:
        self._client = client
        self._key = names.pulse

    def beat(self, who: str, now: float) -> None:
        """Say that `who` is alive at `now`."""
        with reaching(self._client):
            self._client.hset(self._key, who, repr(now))

    def pulses(self) -> dict[str, float]:
        """Tell when each was last alive."""
        with reaching(self._client):
            told = cast("dict[bytes, bytes]", self._client.hgetall(self._key))
        return {who.decode(): float(at) for who, at in told.items()}
