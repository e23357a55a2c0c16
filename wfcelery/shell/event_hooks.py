"""Event hooks: functions of the host application that are told what has happened, after it is committed.

Each has a thread and a bounded queue of its own. One that raises is logged, one that hangs or is slow loses
events, which are counted; the executor waits for none of them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wfcelery.core.state import NO_ITEM
from wfcelery.core.values import canonical
from wfcelery.errors import InvalidSettings
from wfcelery.store.times import iso

if TYPE_CHECKING:
    from wfcelery.core.decide.draft import Event
    from wfcelery.core.values import Json
    from wfcelery.store.changes import RunChange

logger: Final = logging.getLogger("wfcelery.hooks")

SETTING: Final = "hooks"
MOST_WAITING: Final = 10_000
"""Events that wait for one hook; those that come when there are so many are dropped."""
CLOSING_S: Final = 2.0
COMPLAIN_EVERY_S: Final = 60.0
# A hook that computes without a pause would have the executor wait so long for each of its turns.
SWITCH_S: Final = 0.0005

Function = Callable[[dict[str, Any]], object]


class Told(NamedTuple):
    """One event and the run that it is about, as the batch has left it."""

    run_id: str
    flow: str
    status: str
    event: Event

    def as_json(self) -> dict[str, Any]:
        """Write it as `events` does, with `run_id`, `flow` and `status`; nothing in it is shared."""
        event = self.event
        return {
            "run_id": self.run_id,
            "flow": self.flow,
            "status": self.status,
            "seq": event.seq,
            "at": iso(event.at),
            "type": event.type,
            "step": event.step,
            "item": None if event.item == NO_ITEM else event.item,
            "attempt": event.attempt or None,
            "actor": event.actor or None,
            "data": json.loads(canonical(event.data)),
        }


class Hook:
    """One function, the thread that calls it, and what waits for it."""

    def __init__(self, spec: str, function: Function, *, most: int = MOST_WAITING) -> None:
        self.spec = spec
        self.called = 0
        self.raised = 0
        self.dropped = 0
        self._function = function
        self._most = most
        self._queue: queue.SimpleQueue[Told | None] = queue.SimpleQueue()
        self._is_full = False
        self._complained_at = -COMPLAIN_EVERY_S
        self._thread = threading.Thread(target=self._serve, name=f"wfcelery-hook {spec}", daemon=True)
        self._thread.start()

    def offer(self, told: Sequence[Told]) -> None:
        """Let these wait for the hook, as far as there is room. Never waits itself."""
        waiting = self._queue.qsize()
        room = max(self._most - waiting, 0)
        for each in told[:room]:
            self._queue.put(each)
        if len(told) > room:
            self.dropped += len(told) - room
            if not self._is_full:
                logger.warning("hook %s does not keep up: events for it are dropped, and counted", self.spec)
            self._is_full = True
        elif self._is_full and waiting < self._most // 2:
            self._is_full = False

    def close(self, timeout_s: float) -> None:
        """Let it have what waits, if that does not take long."""
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        while (told := self._queue.get()) is not None:
            try:
                self._function(told.as_json())
            except BaseException as error:  # noqa: BLE001 - user code: nothing of it may end this thread
                self.raised += 1
                self._complain(error)
            self.called += 1

    def _complain(self, error: BaseException) -> None:
        now = time.monotonic()
        if now - self._complained_at >= COMPLAIN_EVERY_S:
            self._complained_at = now
            # Not its words: they may hold anything, and may raise themselves.
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
            logger.warning("hook %s raised %s at %s", self.spec, type(error).__name__, place)


class EventHooks:
    """All hooks of an executor."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._hooks = [Hook(spec, function) for spec, function in functions.items()]
        if self._hooks:
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))

    def see(self, written: Sequence[RunChange]) -> None:
        """Pass on the events of a batch; it is committed."""
        if not self._hooks:
            return
        told = [
            Told(change.after.id, change.after.name, change.after.status.value, event)
            for change in written
            for event in change.events
        ]
        for hook in self._hooks:
            hook.offer(told)

    def as_json(self) -> dict[str, Json]:
        """Write how each has fared."""
        return {
            hook.spec: {"called": hook.called, "raised": hook.raised, "dropped": hook.dropped}
            for hook in self._hooks
        }

    def close(self) -> None:
        """Let them end; whoever does not within two seconds in all is left behind."""
        until = time.monotonic() + CLOSING_S
        for hook in self._hooks:
            hook.close(max(until - time.monotonic(), 0.0))


def load_hooks(specs: Sequence[str]) -> dict[str, Function]:
    """Find the functions that `module:function` names. Raises `InvalidSettings`."""
    return {spec: _load(spec) for spec in specs}


def _load(spec: str) -> Function:
    module_name, colon, name = spec.partition(":")
    if not module_name or not colon or not name:
        raise InvalidSettings(SETTING, f"must be module:function, as in shop.flows:note, not {spec}")
    try:
        module: object = importlib.import_module(module_name)
        found = reduce(getattr, name.split("."), module)
    except (Exception, SystemExit) as error:
        raise InvalidSettings(SETTING, f"{spec} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise InvalidSettings(SETTING, f"{spec} must be a plain function of one argument, the event")
    function: Function = found
    return function
