"""Which workers are alive: heard within a lease, or not yet given the time to speak."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from wfcelery.executor.messages import Holding

MOST_BOOTS: Final = 10_000
"""Of how many processes it is remembered when they spoke last, the dead and the replaced among them."""


@dataclass(slots=True)
class _Worker:
    """`boot_id` tells a process from its predecessor; `sign` is its last sign of life, of any kind."""

    boot_id: str | None
    sign: float
    holding: Holding | None = None


class Living:
    """The workers by name; one that is silent for a lease is no longer among them.

    What a process said once it cannot say again: an old word, whoever brings it, keeps nobody alive and
    evicts nobody. A process tells its words apart by its own clock, which it never lets go back.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._workers: dict[str, _Worker] = {}
        self._spoke: OrderedDict[tuple[str, str], float] = OrderedDict()

    def expect(self, name: str, boot_id: str | None, now: float) -> None:
        """Give a worker that has not told yet what it holds a lease's time to do so."""
        self._workers.setdefault(name, _Worker(boot_id, now))

    def hear(self, holding: Holding, now: float) -> bool:
        """Take in what a worker holds, and tell whether that is news.

        An earlier process of that name is gone; so is one that leaves.
        """
        if not self._is_news(holding):
            return False
        if not holding.leaving:
            self._workers[holding.worker] = _Worker(holding.boot_id, now, holding)
            return True
        known = self._workers.get(holding.worker)
        if known is not None and known.boot_id in {None, holding.boot_id}:
            del self._workers[holding.worker]
        return True

    def round_since(self) -> float:
        """Give the moment since which everybody has told what it holds; infinite if nobody is there."""
        told = (-math.inf if one.holding is None else one.sign for one in self._workers.values())
        return min(told, default=math.inf)

    def holdings(self, now: float) -> tuple[Holding, ...]:
        """Give the last word of everybody who is alive and has spoken."""
        found = (one.holding for one in self._workers.values() if self._is_alive(one, now))
        return tuple(holding for holding in found if holding is not None)

    def forget_silent(self, now: float) -> None:
        """Count those who were silent for a lease among the living no more."""
        for name in [name for name, one in self._workers.items() if not self._is_alive(one, now)]:
            del self._workers[name]

    def _is_news(self, holding: Holding) -> bool:
        process = holding.worker, holding.boot_id
        if holding.at <= self._spoke.get(process, -math.inf):
            return False
        self._spoke[process] = holding.at
        self._spoke.move_to_end(process)
        if len(self._spoke) > MOST_BOOTS:
            self._spoke.popitem(last=False)
        return True

    def _is_alive(self, worker: _Worker, now: float) -> bool:
        return now - worker.sign < self._lease_s
