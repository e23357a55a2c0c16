"""Which steps travel together: under load short ones share a message, which costs more than they do.

A step travels alone unless its tool has been brief many times in a row, it is the first attempt at it, and it
asks for no queue, priority or time limit of its own. While workers are free, all travel alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wfcelery.core.effects import Dispatch

IN_ONE: Final = 10
BRIEF_IN_A_ROW: Final = 20
BUSY: Final = 40
"""With so many steps out, workers have enough to do: what travels together takes nothing from a free one."""


class Packer:
    """Remembers how long tools take. `out` is how many steps are with workers or on their way."""

    def __init__(self) -> None:
        self.out = 0
        self._brief: dict[str, int] = {}

    def note(self, tool: str, *, brief: bool) -> None:
        """Take note of how a call went; one that was not brief, or failed, makes its tool travel alone."""
        self._brief[tool] = self._brief.get(tool, 0) + 1 if brief else 0

    def packs(self, steps: Sequence[Dispatch]) -> Iterator[Sequence[Dispatch]]:
        """Cut steps into what travels in one message each; their order is kept within a line."""
        if self.out < BUSY:
            yield from ([step] for step in steps)
            return
        pack: list[Dispatch] = []
        for step in steps:
            if not self._may_share(step):
                yield [step]
                continue
            pack.append(step)
            if len(pack) == IN_ONE:
                yield pack
                pack = []
        if pack:
            yield pack

    def _may_share(self, step: Dispatch) -> bool:
        return (
            step.ref.attempt == 1
            and not step.again
            and (step.queue, step.priority, step.timeout_s) == (None, None, None)
            and self._brief.get(step.tool, 0) >= BRIEF_IN_A_ROW
        )
