"""Where tools are called: from the order to the report, in a process or thread of the pool."""

from __future__ import annotations

import dataclasses
import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from billiard.common import terminate_handler_fired
from billiard.exceptions import SoftTimeLimitExceeded

from wfcelery.broker.sender import Sender
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import Report, StepBegun, StepFailed
from wfcelery.core.state import Error, StepRef
from wfcelery.errors import NotReachable
from wfcelery.shell.keeping import keep
from wfcelery.shell.orders import Orders, read_orders
from wfcelery.shell.outbox import Outbox
from wfcelery.shell.together import Pack, Together
from wfcelery.tools.call import Limits
from wfcelery.tools.context import RealPace
from wfcelery.tools.registry import Registry
from wfcelery.tools.work import do
from wfcelery.wire.keys import Keyring
from wfcelery.wire.orders import names_in

if TYPE_CHECKING:
    from celery.app.task import Context

logger: Final = logging.getLogger("wfcelery.worker")

LOOK_EVERY_S: Final = 1.0
CLOSING_S: Final = 10.0
STOPPED: Final = Error("cancelled", "stopped before it began")
SOFT_LIMIT: Final = SoftTimeLimitExceeded.__name__
EXIT: Final = SystemExit.__name__
TERMINATED: Final = -(256 - signal.SIGTERM)
"""How a process of the pool ends by SIGTERM, in billiard's words."""


class StepFailure(Exception):
    """An attempt failed; it was reported, and this is for Celery's eyes only."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


class OrderRefused(Exception):
    """A message named steps for which it held no good order: they may yet come in another one."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)

    def __str__(self) -> str:
        return f"no order for {', '.join(self.args)} that the executor has sealed"


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
        self._together = Together(outbox)
        self._closed = threading.Event()
        duties = (self._outbox.tend, self._look_for_stops)
        keeper = (self._closed, LOOK_EVERY_S, duties)
        threading.Thread(target=keep, args=keeper, name="wfcelery-bench", daemon=True).start()

    @property
    def unsent(self) -> tuple[StepRef, ...]:
        """Name the steps whose reports the broker has not taken yet."""
        return self._outbox.unsent

    def work(self, texts: Sequence[str], request: Context) -> None:
        """Do what the orders of one message say, one after the other, and report it.

        An order that the executor has not sealed, or that came under another name, is dropped.
        """
        orders = read_orders(texts, request.id, request.timelimit, self._ring)
        pack = self._together.open()
        try:
            failed = self._work_on(orders, pack)
        finally:
            # Also when this process is told to end. Celery learns that the message is done after the reports
            # are pushed: on that the main process relies when the same step comes again.
            self._together.end(pack)
            self._push(pack)
        missing = [name for name in names_in(request.id) if name not in orders]
        if missing:
            raise OrderRefused(*missing)
        if failed is not None:
            raise StepFailure(failed.error.type, failed.error.message)

    def _work_on(self, orders: Orders, pack: Pack) -> StepFailed | None:
        """Do one order after the other; give the last failure."""
        failed: StepFailed | None = None
        left = list(orders)
        stopped: set[str] = set()
        ask_at = 0.0 if len(orders) > 1 else math.inf
        for name, order in orders.items():
            if time.monotonic() >= ask_at:
                stopped = self._stopped(left)
                ask_at = time.monotonic() + LOOK_EVERY_S
            left.remove(name)
            report: Report
            if name in stopped:
                report = StepFailed(order.ref, STOPPED, ("cancelled",), retry=False, worker=self._worker)
            else:
                report = self._do(name, order)
                failed = report if isinstance(report, StepFailed) else failed
            pack.add(report, last=not left)
        return failed

    def _do(self, name: str, order: Dispatch) -> Report:
        stop = threading.Event()
        try:
            if order.again:
                self._outbox.push(StepBegun(order.ref, self._worker, self._now()))
            self._running[name] = stop
            return self._report(order, stop)
        except SoftTimeLimitExceeded:
            # It struck between the tool and us: what the tool did is not known.
            return _timeout(order, StepFailed(order.ref, Error("timeout", ""), worker=self._worker))
        finally:
            self._running.pop(name, None)

    def stop(self, name: str) -> None:
        """Ask the tool that is called for this order to stop."""
        stop = self._running.get(name)
        if stop is not None:
            stop.set()

    def close(self) -> None:
        """Push what is left to report."""
        self._closed.set()
        self._together.close()
        self._outbox.close(CLOSING_S)

    def _report(self, order: Dispatch, stop: threading.Event) -> Report:
        report = do(order, self._tools, RealPace(stop), self._now, limits=self._limits, worker=self._worker)
        if not isinstance(report, StepFailed):
            return report
        if report.error.type == EXIT and terminate_handler_fired():
            # Not the tool: this process was told to end. The main process knows why, and reports it.
            raise SystemExit(TERMINATED)
        return _timeout(order, report) if report.error.type == SOFT_LIMIT else report

    def _push(self, pack: Pack) -> None:
        try:
            pack.push()
        except SoftTimeLimitExceeded:
            # The tool was in time. A limit strikes once; pushing twice is harmless.
            pack.push()

    def _stopped(self, names: Sequence[str]) -> set[str]:
        try:
            return self._sender.are_stopped(names)
        except NotReachable:
            return set()

    def _look_for_stops(self) -> None:
        running = list(self._running)
        if running:
            for name in self._stopped(running):
                self.stop(name)


def _timeout(order: Dispatch, report: StepFailed) -> StepFailed:
    limit = order.timeout_s or 0.0
    error = Error("timeout", f"the tool ran longer than {limit:g} s")
    return dataclasses.replace(report, error=error, ancestors=("timeout", *report.ancestors))
