"""`ctx`: what a tool may know about its attempt, and the two special things it may return."""

from __future__ import annotations

import contextvars
import hashlib
import logging
import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from wfcelery.core.values import canonical
from wfcelery.errors import NoRetry
from wfcelery.tools.failures import Stopped

if TYPE_CHECKING:
    from collections.abc import MutableMapping

NO_ITEM: Final = -1
INSTANT: Final = 1e-6  # what is nearer than this has come: clocks that count microseconds never get closer


@dataclass(frozen=True, slots=True)
class Later:
    """Returned by a tool whose result will be reported from outside."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Returned by a tool that names its outcome, for `on: {event: step}`."""

    event: str
    value: object = None


class Pace(Protocol):
    """How time passes for a tool, and whether it has been asked to stop."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    def stop_requested(self) -> bool:
        """Say whether the step has been asked to stop."""

    def wait(self, seconds: float) -> None:
        """Let up to `seconds` pass; return early when the step is asked to stop."""


class RealPace:
    """Time as it passes for everybody; `stop` asks the step to stop."""

    def __init__(self, stop: threading.Event | None = None) -> None:
        self.stop = stop if stop is not None else threading.Event()

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def stop_requested(self) -> bool:
        """Say whether `stop` is set."""
        return self.stop.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for `stop`, at most `seconds`."""
        self.stop.wait(min(seconds, threading.TIMEOUT_MAX))


class StepLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds the fields of the step to each record, beside the tool's own `extra`."""

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Merge the two `extra`s; the step's fields win."""
        return msg, {**kwargs, "extra": {**(kwargs.get("extra") or {}), **(self.extra or {})}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One attempt of one step, as its tool sees it. `item` is -1 outside a foreach.

    Every field has a default, so that a test of a tool can say `Context(attempt=2)`.
    """

    run_id: str = "run"
    flow: str = "flow"
    step: str = "step"
    item: int = NO_ITEM
    attempt: int = 1
    fence: int = 1
    user: str | None = None
    timeout_s: float | None = None
    pace: Pace = field(default_factory=RealPace, repr=False)
    started: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Start the tool's time: it runs from here, not from when the step was queued."""
        object.__setattr__(self, "started", self.pace.now())

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this step: give it to services that must act once."""
        return idempotency_key(self.run_id, self.step, self.item)

    @property
    def logger(self) -> StepLogger:
        """A logger whose records carry run_id, flow, step, item and attempt."""
        names = ("run_id", "flow", "step", "item", "attempt")
        return StepLogger(logging.getLogger("wfcelery.tool"), {name: getattr(self, name) for name in names})

    @property
    def cancelled(self) -> bool:
        """True when the step has been asked to stop or its time is over."""
        return self.pace.stop_requested() or self._time_is_over()

    def time_left(self) -> float | None:
        """Seconds until the time limit, never below 0; None without a limit."""
        if self.timeout_s is None:
            return None
        return max(0.0, self.started + self.timeout_s - self.pace.now())

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass; raise `Stopped` as soon as the step must stop."""
        if not math.isfinite(seconds) or seconds < 0:
            raise NoRetry(f"cannot sleep for {seconds} seconds; give a number from 0")
        until = self.pace.now() + seconds
        while True:
            if self.pace.stop_requested():
                raise Stopped
            if self._time_is_over():
                raise Stopped(self.timeout_s)
            left = until - self.pace.now()
            if left < INSTANT:
                return
            limit = self.time_left()
            self.pace.wait(left if limit is None else min(left, limit))

    def later(self) -> Later:
        """Return this from the tool: the step stays open until its result is reported from outside."""
        return Later()

    def outcome(self, event: str, value: object = None) -> Outcome:
        """Return this from the tool: its result is `value`, and the flow goes on by `event`."""
        return Outcome(event, value)

    def _time_is_over(self) -> bool:
        left = self.time_left()
        return left is not None and left < INSTANT


CURRENT: Final[contextvars.ContextVar[Context | None]] = contextvars.ContextVar("wfcelery_step", default=None)
"""The attempt whose tool is being called here: so that also what others log on its behalf names it."""


def idempotency_key(run_id: str, step: str, item: int = NO_ITEM) -> str:
    """Name the work of a step, whatever the attempt: 64 hexadecimal digits."""
    return hashlib.sha256(canonical([run_id, step, item]).encode()).hexdigest()
