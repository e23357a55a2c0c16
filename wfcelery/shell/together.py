"""Reports of steps that came in one message: pushed together, and none waits long for its neighbours."""

from __future__ import annotations

import logging
import threading
from typing import Final

from wfcelery.core.messages import Report
from wfcelery.shell.outbox import Outbox

logger: Final = logging.getLogger("wfcelery.worker")

TOGETHER_S: Final = 0.02
"""How long the reports of steps that came together wait for one another."""


class Pack:
    """The reports of one message."""

    def __init__(self, outbox: Outbox, some: threading.Event) -> None:
        self._outbox = outbox
        self._some = some
        self._reports: list[Report] = []
        self._pushing = threading.Lock()

    def add(self, report: Report, *, last: bool) -> None:
        """Take a report; unless it is the last, for which `push` follows, it is pushed soon."""
        self._reports.append(report)
        if not last and not self._some.is_set():
            self._some.set()

    def push(self) -> None:
        """Push what there is. When this returns, everything that was added before is pushed, by whomever.

        If it raises, it was not; a second call may push what was pushed already, which is harmless.
        """
        with self._pushing:
            reports = list(self._reports)
            if reports:
                self._outbox.push(*reports)
                del self._reports[: len(reports)]


class Together:
    """Pushes the reports of packs that are being worked on, while their next step runs."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._packs: set[Pack] = set()
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> Pack:
        """Begin with a message."""
        pack = Pack(self._outbox, self._some)
        with self._lock:
            self._packs.add(pack)
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="wfcelery-together", daemon=True)
                self._thread.start()
        return pack

    def end(self, pack: Pack) -> None:
        """Be done with a message."""
        with self._lock:
            self._packs.discard(pack)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._some.set()

    def _keep(self) -> None:
        while self._some.wait() and not self._closed.wait(TOGETHER_S):
            self._some.clear()
            with self._lock:
                packs = list(self._packs)
            for pack in packs:
                try:
                    pack.push()
                except Exception:
                    # Who works on the pack pushes it at its end, and meets the same trouble there.
                    logger.exception("a report is pushed later")
