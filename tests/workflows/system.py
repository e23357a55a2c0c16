"""A system in one process, but for the broker: a real executor on its mailbox, threads as workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from celery import Celery

from wfcelery.broker.client import connect
from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import Names
from wfcelery.core.effects import Dispatch
from wfcelery.embedded import SystemClock
from wfcelery.embedded.pool import ThreadPool
from wfcelery.executor.executor import Executor
from wfcelery.store import lease
from wfcelery.store.database import open_database
from wfcelery.tools import Context, Later, Registry, tool
from wfcelery.tools.call import Limits
from wfcelery.tools.catalogue import Catalogue
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal

SECRET = "the secret of the tests"  # noqa: S105 - opens nothing
PAUSE_S = 0.002


def celery_app(broker_url: str) -> Celery:
    return Celery("shop", broker=broker_url, set_as_current=False)


@tool
def later(ctx: Context) -> Later:
    return ctx.later()


class System:
    """Serves requests from when it is entered until it is left."""

    def __init__(self, broker_url: str, database_url: str, prefix: str = "") -> None:
        self.broker_url = broker_url
        self.database_url = database_url
        self.sent: list[Dispatch] = []
        self._client = connect(broker_url)
        self._database = open_database(database_url)
        self._prefix = prefix
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="executor")
        self._trouble: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(30)
        self._database.close()
        self._client.close()
        if self._trouble is not None:
            raise self._trouble

    def _serve(self) -> None:
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            self._trouble = error

    def _run(self) -> None:
        clock = SystemClock()
        held = lease.acquire(self._database, "tests", ttl_s=30.0, now=clock.now())
        assert held is not None
        seal = Seal(keyring((SECRET,)))
        mailbox = RedisMailbox(self._client, Names(self._prefix), held.epoch, seal.read, seal.write)
        registry = Registry.with_builtins()
        registry.add(later)
        pool = ThreadPool(registry, mailbox, clock, 2, Limits())  # type: ignore[arg-type] # it only pushes
        executor = Executor(self._database, held, mailbox, pool, clock, tools=Catalogue(registry))
        while not self._over.is_set():
            if not executor.run_once():
                self._over.wait(PAUSE_S)
        pool.close()
        held.release()


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Look again and again until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(PAUSE_S)
