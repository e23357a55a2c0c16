"""A process that does nothing but run the engine."""

from __future__ import annotations

import gc


def own_process() -> None:
    """Spare the cycle collector the modules, which stay, and values without cycles, which are most.

    For programs of our own only: it is a setting of the whole process. It makes the engine a sixth faster.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
