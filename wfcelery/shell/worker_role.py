"""A worker's main process: takes steps for the pool, says what it holds, reports what the pool cannot."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from celery.signals import task_revoked
from celery.worker import state as celery_state

from wfcelery.broker.client import connect, key_prefix
from wfcelery.broker.names import STEP_TASK, Names
from wfcelery.broker.sender import Sender
from wfcelery.core.messages import Report, StepFailed, StepReturned, Trace
from wfcelery.core.state import Error, StepRef
from wfcelery.errors import InvalidInput, InvalidSettings, NotReachable
from wfcelery.executor.clock import SystemClock
from wfcelery.executor.messages import Holding
from wfcelery.shell import guard
from wfcelery.shell.bench import CLOSING_S, STOPPED, Bench
from wfcelery.shell.keeping import keep
from wfcelery.shell.outbox import Outbox
from wfcelery.shell.publisher import TOGETHER
from wfcelery.tools.registry import Registry
from wfcelery.wire.keys import Keyring, keyring, worker_keyring
from wfcelery.wire.orders import ref_from
from wfcelery.wire.seal import Seal

if TYPE_CHECKING:
    from celery import Task
    from celery.app.task import Context
    from celery.worker import WorkController

    from wfcelery.settings import Settings
    from wfcelery.shell.receiving import StepRequest

logger: Final = logging.getLogger("wfcelery.worker")

LOOK_EVERY_S: Final = 1.0
HOLDINGS_PER_LEASE: Final = 10
MOST_SEEN: Final = 100_000
PREFORK: Final = "prefork"
KILLED: Final = Error("revoked", "it was terminated by an operator")


class WorkerRole:
    """One Celery worker that takes steps."""

    def __init__(self, worker: WorkController, settings: Settings, queues: Collection[str]) -> None:
        self.name = str(worker.hostname)
        self._queues = tuple(sorted(queues))
        self._pool = guard.pool_name(worker)
        self._ring = ring_of(settings)
        self._seal = Seal(self._ring)
        self._lease_s = settings.lease_s
        self._tools = Registry.load(settings.tools)
        self._boot_id = secrets.token_hex(8)
        self._broker = (str(worker.app.conf.broker_url), worker.app.conf.broker_transport_options)
        self._sender = self._connect()
        self._outbox = self._make_outbox(self._sender)
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._waiting: dict[str, tuple[StepRef, ...]] = {}
        self._stopped: OrderedDict[str, None] = OrderedDict()
        self._overdue: set[str] = set()
        self._newest_stop = 0
        self._spoke_at = 0.0
        self._leaving = False
        self._closed = threading.Event()
        self._bench: Bench | None = None

    def begin(self) -> None:
        """Begin to say what this worker holds."""
        task_revoked.connect(self._revoked)
        every = min(3.0, self._lease_s / HOLDINGS_PER_LEASE)
        expire = () if self._pool == PREFORK else (self._expire,)
        duties = (self._outbox.tend, *expire, self._learn_stops, _at_most_each(every, self._hold))
        keeper = (self._closed, min(LOOK_EVERY_S, every), duties)
        threading.Thread(target=keep, args=keeper, name="wfcelery-worker", daemon=True).start()

    def make_bench(self) -> Bench:
        """Make the bench of this process, main or a child of the pool, with connections of its own."""
        sender = self._connect()
        bench = Bench(
            self._tools,
            self._ring,
            self._make_outbox(sender),
            sender,
            worker=self.name,
            now=SystemClock().now,
        )
        self._bench = bench
        return bench

    def admits(self, task_id: str, *, redelivered: bool) -> bool:
        """Tell whether what arrives may begin here; what may not is reported, or was already."""
        try:
            refs = refs_of(task_id)
        except InvalidInput as error:
            logger.error("a message was dropped: %s", error)  # noqa: TRY400 - nothing of ours has failed
            return False
        if redelivered:
            reason = "the broker delivered it again"
            self._outbox.push(*(StepReturned(ref, reason, self.name) for ref in refs))
            return False
        names = task_id.split(TOGETHER)
        if any(name in self._seen for name in names):
            return False
        self._seen.update(dict.fromkeys(names))
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        if self._is_stopped(task_id):
            self._report_stopped(task_id)
            return False
        self._waiting[task_id] = refs
        return True

    def forget(self, names: Iterable[str]) -> None:
        """Take these steps when they come again: they came without a good order."""
        for name in names:
            self._seen.pop(name, None)

    def accepted(self, task_id: str) -> None:
        """Take note that the pool has begun with it."""
        self._waiting.pop(task_id, None)

    def connected(self) -> None:
        """Say who is here; hand back what waited for the pool when the broker was lost: Celery forgot it."""
        if self._pool == PREFORK:
            self._hand_back("its worker lost the broker")
        with contextlib.suppress(NotReachable):
            self._hold()

    def pass_marker(self, payload: object) -> None:
        """Put a marker into the mailbox as it came: only the executor can read it, and knows its own."""
        try:
            sealed = _first_argument(payload)
            self._outbox.push_raw(sealed.encode(errors="replace"))
        except (InvalidInput, NotReachable) as error:
            logger.warning("a marker was dropped: %s", error)

    def report(self, reports: Iterable[Report | Trace]) -> None:
        """Report what the pool cannot."""
        self._outbox.push(*reports)

    def leave(self) -> None:
        """Take no more."""
        self._leaving = True

    def close(self) -> None:
        """Hand back what was never begun, and say goodbye."""
        self._closed.set()
        self._hand_back("its worker was stopped")
        self._outbox.close(CLOSING_S)
        if self._bench is not None and self._pool != PREFORK:
            self._bench.close()
        with contextlib.suppress(NotReachable):
            self._hold()

    def _hand_back(self, reason: str) -> None:
        for task_id, refs in list(self._waiting.items()):
            self._waiting.pop(task_id, None)
            for name in task_id.split(TOGETHER):
                self._seen.pop(name, None)
            self._outbox.push(*(StepReturned(ref, reason, self.name) for ref in refs))

    # -- the thread that keeps in touch

    def _hold(self) -> None:
        reserved = tuple(ref for refs in list(self._waiting.values()) for ref in refs)
        # Read after those that wait: one that begins in between is named twice rather than not at all.
        active = tuple(
            (ref, round(request.time_start or time.time(), 3))
            for request in _requests(celery_state.active_requests)
            for ref in request.refs
        )
        # Never back, even if the clock is set back: an older word is taken for a repetition.
        self._spoke_at = round(max(time.time(), self._spoke_at + 0.001), 3)
        holding = Holding(
            worker=self.name,
            boot_id=self._boot_id,
            at=self._spoke_at,
            queues=self._queues,
            pool=self._pool,
            reserved=reserved,
            active=active,
            unsent=self._outbox.unsent,
            leaving=self._closed.is_set(),
        )
        self._sender.push([self._seal.write(holding)])

    def _learn_stops(self) -> None:
        self._newest_stop, names = self._sender.stops_since(self._newest_stop)
        if not names:
            return
        for name in names:
            self._stopped[name] = None
        while len(self._stopped) > MOST_SEEN:
            self._stopped.popitem(last=False)
        for task_id in list(self._waiting):
            if self._is_stopped(task_id):
                # Celery drops it when its turn comes, and says so to `_revoked`.
                celery_state.revoked.add(task_id)
        if self._bench is not None and self._pool != PREFORK:
            for name in names:
                self._bench.stop(name)

    def _expire(self) -> None:
        """Report the steps whose time is over: no pool but prefork can end them."""
        now = time.time()
        for request in _requests(celery_state.active_requests):
            limit = request.time_limits[1]
            started = request.time_start
            if not limit or started is None or now < started + limit or request.id in self._overdue:
                continue
            self._overdue.add(request.id)
            error = Error("timeout", f"the tool ran longer than {limit:g} s")
            self.report(StepFailed(ref, error, ("timeout",), worker=self.name) for ref in request.refs)
            if self._bench is not None:
                self._bench.stop(request.id)

    def _revoked(
        self,
        sender: Task | None = None,
        request: Context | None = None,
        *,
        terminated: bool = False,
        **_: object,
    ) -> None:
        """Report what was dropped before it began, or is being killed, because we or an operator said so."""
        if sender is None or sender.name != STEP_TASK or request is None:
            return
        task_id = str(request.id)
        if terminated:
            # At once: Celery counts it as over, so that our holdings name it no more.
            self.report_terminated(refs_of(task_id))
        else:
            self._waiting.pop(task_id, None)
            self._report_stopped(task_id)

    def report_terminated(self, refs: Iterable[StepRef]) -> None:
        """Report what an operator has killed; harmless when done before."""
        self.report(StepFailed(ref, KILLED, (KILLED.type,), retry=False, worker=self.name) for ref in refs)

    def _is_stopped(self, task_id: str) -> bool:
        """Tell whether nothing of a message is wanted any more; where a part is, the bench sorts it out."""
        return all(name in self._stopped for name in task_id.split(TOGETHER))

    def _report_stopped(self, task_id: str) -> None:
        if self._is_stopped(task_id):
            error = STOPPED
        else:
            error = Error("revoked", "it was revoked by an operator before it began")
        self.report(
            StepFailed(ref, error, (error.type,), retry=False, worker=self.name) for ref in refs_of(task_id)
        )

    def _connect(self) -> Sender:
        url, options = self._broker
        return Sender(connect(url, options), Names(key_prefix(options)))

    def _make_outbox(self, sender: Sender) -> Outbox:
        return Outbox(sender, self._seal, keep_s=2 * self._lease_s)


def refs_of(task_id: str) -> tuple[StepRef, ...]:
    """Read from a message's id which steps it holds. Raises `InvalidInput`."""
    return tuple(map(ref_from, task_id.split(TOGETHER)))


def ring_of(settings: Settings) -> Keyring:
    """Take the worker key, or derive it where the whole secret is known."""
    if settings.worker_key:
        return worker_keyring(settings.worker_key)
    if settings.secret_key:
        return keyring(settings.secret_key)
    reason = "is not set; `wfcelery keys` prints it where the secret key is known"
    raise InvalidSettings("worker_key", reason)


def _at_most_each(seconds: float, duty: Callable[[], None]) -> Callable[[], None]:
    """Do a duty only when so many seconds have passed since it was done; one that failed is due again."""
    next_at = 0.0

    def do_if_due() -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            duty()
            next_at = time.monotonic() + seconds

    return do_if_due


def _requests(held: Collection[StepRequest]) -> list[StepRequest]:
    """Copy one of Celery's sets of requests, which its main thread changes meanwhile; only our steps."""
    while True:
        try:
            return [request for request in list(held) if hasattr(request, "refs")]
        except RuntimeError:
            continue


def _first_argument(payload: object) -> str:
    parts = payload
    if isinstance(parts, (str, bytes)):
        try:
            parts = json.loads(parts)
        except ValueError as error:
            raise InvalidInput("marker", "is not JSON") from error
    if isinstance(parts, Mapping):
        parts = [parts.get("args")]
    args = parts[0] if isinstance(parts, (list, tuple)) and parts else None
    first = args[0] if isinstance(args, (list, tuple)) and args else None
    if not isinstance(first, str):
        raise InvalidInput("marker", "has no text")
    return first
