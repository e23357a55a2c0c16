"""What the executor needs from outside: a mailbox, a way to hand steps over, and a clock.

Each has two implementations at least: in-process (package `embedded`), and the broker's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wfcelery.core.effects import Dispatch
from wfcelery.core.state import StepRef
from wfcelery.executor.messages import Message
from wfcelery.executor.watch import Marker


class Mailbox(Protocol):
    """Messages in order of arrival. What was taken is kept until `done`, else it is taken again."""

    def push(self, *messages: Message) -> None:
        """Put messages at the end."""

    def take(self, limit: int) -> Sequence[Message]:
        """Take up to `limit` messages from the front; none if there are none."""

    def done(self) -> None:
        """Let go of what was taken: it has been written."""

    @property
    def left(self) -> int:
        """How many messages waited behind those taken last."""


class Dispatcher(Protocol):
    """Hands steps to workers."""

    def send(self, steps: Sequence[Dispatch]) -> None:
        """Hand over; each step is reported through the mailbox."""

    def stop(self, refs: Sequence[StepRef]) -> None:
        """Ask whoever runs these to stop. A wish, not a promise."""


class MarkerPost(Protocol):
    """Sends markers down the queues that steps take."""

    def place(self, queue: str | None, priority: int | None) -> tuple[str, int]:
        """Name the queue, and the line within it, that a step with these wishes waits in."""

    def mark(self, markers: Sequence[Marker]) -> None:
        """Send markers. A wish: one that is lost is followed by another."""


class NoticePost(Protocol):
    """Rings the notifier."""

    def ring(self, ids: Sequence[str]) -> None:
        """Say which notices are to be sent. A wish: one that is lost is followed by another."""


class Clock(Protocol):
    """Seconds since 1970 in UTC, rounded to milliseconds."""

    def now(self) -> float:
        """Tell the time."""
