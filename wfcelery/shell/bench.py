"""Where tools are called: from the order to the report, in a process or thread of the pool."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from billiard.exceptions import SoftTimeLimitExceeded

from wfcelery.broker.sender import Sender
from wfcelery.core.messages import Dispatch, Report, StepBegun, StepFailed
from wfcelery.core.state import Error
from wfcelery.errors import InvalidInput, NotReachable
from wfcelery.shell.outbox import Outbox
from wfcelery.tools.call import Limits
from wfcelery.tools.context import RealPace
from wfcelery.tools.registry import Registry
from wfcelery.tools.work import do
from wfcelery.wire.keys import Keyring
from wfcelery.wire.orders import read_order, ref_text

if TYPE_CHECKING:
    from celery.app.task import Context

logger: Final = logging.getLogger("wfcelery.worker")

LOOK_EVERY_S: Final = 1.0
CLOSING_S: Final = 10.0
SOFT_LIMIT: Final = SoftTimeLimitExceeded.__name__


class StepFailure(Exception):
    """An attempt failed; it was reported, and this is for Celery's eyes only."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


class Bench:
    """One per process that calls tools."""

    def __init__(
        self,
        tools: Registry,
        ring: Keyring,
        outbox: Outbox,
        sender: Sender,
        *,
        worker: str,
        now: Callable[[], float],
    ) -> None:
        self._tools = tools
        self._ring = ring
        self._outbox = outbox
        self._sender = sender
        self._worker = worker
        self._now = now
        self._limits = Limits()
        self._running: dict[str, threading.Event] = {}
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="wfcelery-bench", daemon=True)
        self._keeper.start()

    def work(self, text: str, request: Context) -> None:
        """Do what an order says and report it. An order that the executor has not signed is dropped."""
        try:
            order = read_order(text, self._ring)
        except InvalidInput as error:
            logger.error("an order was dropped: %s", error)  # noqa: TRY400 - no trace of the sender in ours
            return
        name = ref_text(order.ref)
        if request.id != name:
            logger.error("an order was dropped: it is for %s and came as %s", name, request.id)
            return
        if order.again:
            self._outbox.push(StepBegun(order.ref, self._worker, self._now()))
        stop = self._running[name] = threading.Event()
        try:
            report = self._report(order, stop)
            self._push(report)
        finally:
            self._running.pop(name, None)
        if isinstance(report, StepFailed):
            raise StepFailure(report.error.type, report.error.message)

    def stop(self, name: str) -> None:
        """Ask the tool that is called for this order to stop."""
        stop = self._running.get(name)
        if stop is not None:
            stop.set()

    def close(self) -> None:
        """Push what is left to report."""
        self._closed.set()
        self._outbox.close(CLOSING_S)

    def _report(self, order: Dispatch, stop: threading.Event) -> Report:
        try:
            report = do(
                order, self._tools, RealPace(stop), self._now, limits=self._limits, worker=self._worker
            )
        except SoftTimeLimitExceeded:
            # It struck between the tool and us: what the tool did is not known.
            return _timeout(order, StepFailed(order.ref, Error("timeout", ""), worker=self._worker))
        if isinstance(report, StepFailed) and report.error.type == SOFT_LIMIT:
            return _timeout(order, report)
        return report

    def _push(self, report: Report) -> None:
        try:
            self._outbox.push(report)
        except SoftTimeLimitExceeded:
            # The tool was in time. A limit strikes once; pushing twice is harmless.
            self._outbox.push(report)

    def _keep(self) -> None:
        """Look after the outbox and after requests to stop, once a second."""
        while not self._closed.wait(LOOK_EVERY_S):
            self._outbox.tend()
            running = list(self._running)
            if running:
                try:
                    stopped = self._sender.are_stopped(running)
                except NotReachable:
                    continue
                for name in stopped:
                    self.stop(name)


def _timeout(order: Dispatch, report: StepFailed) -> StepFailed:
    limit = order.timeout_s or 0.0
    error = Error("timeout", f"the tool ran longer than {limit:g} s")
    return dataclasses.replace(report, error=error, ancestors=("timeout", *report.ancestors))
