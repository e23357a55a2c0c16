"""The mailbox in memory. The tables remember what matters; what dies with the process is found there."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from wfcelery.executor.messages import Message


class LocalMailbox:
    """Messages between the threads of one process."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._taken: list[Message] = []
        self._changed = threading.Condition()

    def push(self, *messages: Message) -> None:
        """Put messages at the end, and wake who waits."""
        with self._changed:
            self._waiting.extend(messages)
            self._changed.notify()

    def take(self, limit: int) -> Sequence[Message]:
        """Take up to `limit` messages; those taken before and not let go of come first."""
        with self._changed:
            while self._waiting and len(self._taken) < limit:
                self._taken.append(self._waiting.popleft())
            return tuple(self._taken)

    def done(self) -> None:
        """Let go of what was taken."""
        with self._changed:
            self._taken.clear()

    @property
    def left(self) -> int:
        """How many messages wait to be taken."""
        return len(self._waiting)

    def wait(self, seconds: float | None) -> None:
        """Return when there is something to take, or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting), seconds)
