"""When a gate acts by itself: its deadline, and the reminders before it.

A gate's `ready_at` is the moment at which it opened, or at which others were asked as well: both its time and
its reminders are counted from there. Its `due_at` is the earlier of the two.
"""

from __future__ import annotations

from math import floor

from wfcelery.core.flow import Gate
from wfcelery.core.state import Attempt

_TICK_S = 0.001


def deadline(gate: Gate, attempt: Attempt) -> float | None:
    """Say when the gate is decided without anybody; None: never."""
    if gate.timeout_s is None:
        return None
    if attempt.ready_at is None:
        return attempt.due_at  # It was opened before gates knew when: then this is its deadline.
    return round(attempt.ready_at + gate.timeout_s, 3)


def next_reminder(gate: Gate, attempt: Attempt, now: float) -> float | None:
    """Say when those who have not answered are next reminded, after `now`; None: never."""
    if gate.remind_every_s is None or attempt.ready_at is None:
        return None
    count = floor((now - attempt.ready_at) / gate.remind_every_s) + 1
    coming = round(attempt.ready_at + count * gate.remind_every_s, 3)
    # Times are whole milliseconds: what is rounded down to now would ring at once, and again.
    return coming if coming > now else round(now + max(gate.remind_every_s, _TICK_S), 3)


def due(gate: Gate, attempt: Attempt, now: float) -> float | None:
    """Say when the clock must next be looked at for the gate; a reminder never comes with the deadline."""
    moments = [
        moment
        for moment in (deadline(gate, attempt), next_reminder(gate, attempt, now))
        if moment is not None
    ]
    return min(moments, default=None)
