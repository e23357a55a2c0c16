"""When the timers are due that a batch has set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wfcelery.store.changes import RunChange

NEVER: Final = float("inf")


def first_due(changes: Iterable[RunChange]) -> float:
    """Tell when the first timer of these changes is due; infinity if they have set none."""
    first = NEVER
    for change in changes:
        timers = [write.after.due_at for write in change.writes.values()]
        if change.before is not None and change.before.held and not change.after.held:
            # While the run was held, nobody looked at its timers.
            timers += [attempt.due_at for attempt in change.after.attempts.values()]
        first = min([first, *(due for due in timers if due is not None)])
    return first
