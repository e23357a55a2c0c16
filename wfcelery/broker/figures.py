"""Figures of the executor on the broker: written about once a second, read by whoever shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from wfcelery.broker.client import reaching
from wfcelery.broker.names import Names
from wfcelery.core.values import Json

if TYPE_CHECKING:
    import redis


class Figures:
    """One small text that may be lost at any time: the next second brings another."""

    def __init__(self, client: redis.Redis, names: Names) -> None:
        self._client = client
        self._key = names.figures

    def write(self, told: Mapping[str, Json]) -> None:
        """Put these in the place of those before."""
        with reaching(self._client):
            self._client.set(self._key, json.dumps(told))

    def read(self) -> Mapping[str, Json]:
        """Give the last ones; nothing if there are none, or something else stands there."""
        with reaching(self._client):
            told = cast("bytes | None", self._client.get(self._key))
        try:
            found = json.loads(told or b"{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}
