"""What everything on the broker is called: keys, queues, tasks."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Final

EXECUTOR_QUEUE: Final = "wfcelery.executor"
STEPS_QUEUE: Final = "wfcelery.steps"
NOTIFY_QUEUE: Final = "wfcelery.notify"

DOORBELL_TASK: Final = "wfcelery.doorbell"
STEP_TASK: Final = "wfcelery.step"
MARKER_TASK: Final = "wfcelery.marker"
NOTIFY_TASK: Final = "wfcelery.notify"
TICK_TASK: Final = "wfcelery.tick"
WATCHDOG_TASK: Final = "wfcelery.watchdog"

# As kombu has them unless its options `priority_steps` and `sep` say otherwise.
PRIORITY_STEPS: Final = (0, 3, 6, 9)
PRIORITY_SEPARATOR: Final = "\x06\x16"


@dataclass(frozen=True, slots=True)
class Names:
    """The keys of one system; `prefix` keeps several apart in one database."""

    prefix: str = ""

    @property
    def mailbox(self) -> str:
        """A list: messages to the executor, the oldest first."""
        return f"{self.prefix}wfcelery.mailbox"

    @property
    def inflight(self) -> str:
        """A list: the batch that was taken and is not yet written, its token first."""
        return f"{self.prefix}wfcelery.inflight"

    @property
    def epoch(self) -> str:
        """The epoch of the newest executor that has taken a batch."""
        return f"{self.prefix}wfcelery.epoch"

    @property
    def bell(self) -> str:
        """Is there while a doorbell is on its way."""
        return f"{self.prefix}wfcelery.bell"

    @property
    def nonce(self) -> str:
        """A word that changes when the broker has lost its data."""
        return f"{self.prefix}wfcelery.nonce"

    @property
    def stops(self) -> str:
        """A sorted set: what workers are asked to stop, by the number of the request."""
        return f"{self.prefix}wfcelery.stops"

    @property
    def pulse(self) -> str:
        """A hash: who was last alive when."""
        return f"{self.prefix}wfcelery.pulse"

    @property
    def figures(self) -> str:
        """A text: what the executor has counted."""
        return f"{self.prefix}wfcelery.figures"

    def queue_key(self, queue: str, priority: int = 0) -> str:
        """Name the list in which kombu keeps the messages of a queue that have this priority."""
        step = PRIORITY_STEPS[max(bisect.bisect(PRIORITY_STEPS, priority) - 1, 0)]
        return f"{self.prefix}{queue}{PRIORITY_SEPARATOR}{step}" if step else f"{self.prefix}{queue}"
