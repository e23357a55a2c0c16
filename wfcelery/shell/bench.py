"""Where tools are called: from the order to the report, in a process or thread of the pool."""

from __future__ import annotations

import dataclasses
import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from billiard.common import terminate_handler_fired
from billiard.exceptions import SoftTimeLimitExceeded

from wfcelery.broker.sender import Sender
from wfcelery.core.messages import Dispatch, Report, StepBegun, StepFailed
from wfcelery.core.state import Error
from wfcelery.errors import InvalidInput, NotReachable
from wfcelery.shell.outbox import Outbox
from wfcelery.shell.publisher import TOGETHER
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
TOGETHER_S: Final = 0.02
"""How long the reports of steps that came together wait for one another."""

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
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="wfcelery-bench", daemon=True)
        self._keeper.start()

    def work(self, texts: Sequence[str], request: Context) -> None:
        """Do what the orders of one message say, one after the other, and report it.

        An order that the executor has not signed, or that came under another name, is dropped.
        """
        orders = self._read(texts, request.id)
        stopped = self._stopped(list(orders)) if len(orders) > 1 else set()
        reports: list[Report] = []
        failed: StepFailed | None = None
        push_at = time.monotonic() + TOGETHER_S
        for name, order in orders.items():
            if name in stopped:
                report: Report = StepFailed(
                    order.ref, STOPPED, ("cancelled",), retry=False, worker=self._worker
                )
            else:
                try:
                    report = self._do(name, order)
                except SystemExit:
                    self._push(reports)
                    raise
                failed = report if isinstance(report, StepFailed) else failed
            reports.append(report)
            if time.monotonic() >= push_at:
                self._push(reports)
                reports, push_at = [], time.monotonic() + TOGETHER_S
        self._push(reports)
        missing = [name for name in request.id.split(TOGETHER) if name not in orders]
        if missing:
            raise OrderRefused(*missing)
        if failed is not None:
            raise StepFailure(failed.error.type, failed.error.message)

    def _read(self, texts: Sequence[str], task_id: str) -> dict[str, Dispatch]:
        named = task_id.split(TOGETHER)
        orders = {}
        for text in texts:
            try:
                order = read_order(str(text), self._ring)
            except InvalidInput as error:
                logger.error("an order was dropped: %s", error)  # noqa: TRY400 - nothing of ours has failed
                continue
            name = ref_text(order.ref)
            if name in named:
                orders[name] = order
            else:
                logger.error("an order was dropped: it is for %s and came as %s", name, task_id)
        return orders

    def _do(self, name: str, order: Dispatch) -> Report:
        if order.again:
            self._outbox.push(StepBegun(order.ref, self._worker, self._now()))
        stop = self._running[name] = threading.Event()
        try:
            return self._report(order, stop)
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
        self._outbox.close(CLOSING_S)

    def _report(self, order: Dispatch, stop: threading.Event) -> Report:
        try:
            report = do(
                order, self._tools, RealPace(stop), self._now, limits=self._limits, worker=self._worker
            )
        except SoftTimeLimitExceeded:
            # It struck between the tool and us: what the tool did is not known.
            return _timeout(order, StepFailed(order.ref, Error("timeout", ""), worker=self._worker))
        if not isinstance(report, StepFailed):
            return report
        if report.error.type == EXIT and terminate_handler_fired():
            # Not the tool: this process was told to end. The main process knows why, and reports it.
            raise SystemExit(TERMINATED)
        return _timeout(order, report) if report.error.type == SOFT_LIMIT else report

    def _push(self, reports: Sequence[Report]) -> None:
        try:
            self._outbox.push(*reports)
        except SoftTimeLimitExceeded:
            # The tool was in time. A limit strikes once; pushing twice is harmless.
            self._outbox.push(*reports)

    def _stopped(self, names: Sequence[str]) -> set[str]:
        try:
            return self._sender.are_stopped(names)
        except NotReachable:
            return set()

    def _keep(self) -> None:
        """Look after the outbox and after requests to stop, once a second."""
        while not self._closed.wait(LOOK_EVERY_S):
            self._outbox.tend()
            running = list(self._running)
            if running:
                for name in self._stopped(running):
                    self.stop(name)


def _timeout(order: Dispatch, report: StepFailed) -> StepFailed:
    limit = order.timeout_s or 0.0
    error = Error("timeout", f"the tool ran longer than {limit:g} s")
    return dataclasses.replace(report, error=error, ancestors=("timeout", *report.ancestors))
