"""Runs that are started all the time, whatever happens meanwhile."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tests.system.system import SECRET, System
from wfcelery import Workflows
from wfcelery.core.values import Json
from wfcelery.errors import NotConfirmed, NotReachable
from wfcelery.executor.answers import new_run_id

CONFIRMED_WITHIN_S = 2.0
REPEATED_FOR_S = 60.0


class Load:
    """Starts one run after the other, of each flow in turn. A start that is not confirmed is repeated."""

    def __init__(self, system: System, flows: Sequence[Json], *, pause_s: float = 0.05) -> None:
        self.accepted: list[str] = []
        self.repeated = 0
        self._system = system
        self._flows = flows
        self._pause_s = pause_s
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._workflows = Workflows(
            None,
            system.database_url,
            broker_url=system.broker_url,
            secret_key=SECRET,
            user="ann",
            timeout_s=CONFIRMED_WITHIN_S,
        )
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._workflows.close()
        if self._failure is not None and error is None:
            raise self._failure

    def more(self, count: int, timeout_s: float = 60.0) -> None:
        """Wait until so many more were accepted."""
        enough = len(self.accepted) + count
        self._system.until(lambda: len(self.accepted) >= enough or self._failure, f"{count} more", timeout_s)

    def _run(self) -> None:
        try:
            for flow in itertools.cycle(self._flows):
                if self._ended.wait(self._pause_s):
                    return
                self._start(flow)
        except BaseException as error:  # noqa: BLE001 - raised where the test waits
            self._failure = error

    def _start(self, flow: Json) -> None:
        """Once it is begun it is not given up, also when the load ends meanwhile."""
        run_id = new_run_id(time.time())
        deadline = time.monotonic() + REPEATED_FOR_S
        while True:
            try:
                self._workflows.start(flow, {}, run_id=run_id)
            except (NotConfirmed, NotReachable):
                self.repeated += 1
                if time.monotonic() > deadline:
                    raise
                # The one pause: the broker may be away, and says so at once.
                self._ended.wait(0.2)
            else:
                self.accepted.append(run_id)
                return
