"""A worker's main process: takes steps for the pool, says what it holds, reports what the pool cannot."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from celery.signals import task_revoked
from celery.worker import state as celery_state

from wfcelery.broker.client import connect, key_prefix
from wfcelery.broker.names import STEP_TASK, Names
from wfcelery.broker.sender import Sender
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import Report, StepFailed, StepLost, StepReturned, Trace
from wfcelery.core.state import Error, StepRef
from wfcelery.errors import InvalidInput, InvalidSettings, NotReachable
from wfcelery.executor.clock import SystemClock
from wfcelery.executor.messages import Holding
from wfcelery.shell import guard
from wfcelery.shell.bench import CLOSING_S, STOPPED, Bench
from wfcelery.shell.intake import Intake, Waiting, keep_with_child
from wfcelery.shell.keeping import keep
from wfcelery.shell.orders import Orders, Reader, read_orders
from wfcelery.shell.outbox import Outbox
from wfcelery.tools.registry import Registry
from wfcelery.wire.keys import Keyring, keyring, worker_keyring
from wfcelery.wire.orders import names_in, refs_in
from wfcelery.wire.seal import Seal

if TYPE_CHECKING:
    from billiard.pool import ApplyResult
    from celery import Task
    from celery.app.task import Context
    from celery.worker import WorkController

    from wfcelery.settings import Settings
    from wfcelery.shell.receiving import StepRequest

logger: Final = logging.getLogger("wfcelery.worker")

LOOK_EVERY_S: Final = 1.0
HOLDINGS_PER_LEASE: Final = 10
MOST_STOPS: Final = 100_000
PREFORK: Final = "prefork"
KILLED: Final = Error("revoked", "it was terminated by an operator")
REVOKED: Final = Error("revoked", "it was revoked by an operator before it began")
HAD_BEFORE: Final = "this worker has had it before, and its report did not arrive"


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
        self._intake = Intake()
        self._stopped: OrderedDict[str, None] = OrderedDict()
        self._overdue: set[str] = set()
        self._newest_stop = 0
        self._spoke_at = 0.0
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

    def orders(self, task_id: str, texts: Sequence[object], limits: object) -> Orders:
        """Read what a message truly orders: a report is about nothing else."""
        return read_orders(texts, task_id, limits, self._ring)

    def admits(self, task_id: str, read: Reader, *, redelivered: bool) -> bool:
        """Tell whether what arrives may begin here; what may not is reported, or was already.

        `read` gives its orders. They are read only where there is something to report: what goes to the pool
        is read there.
        """
        try:
            refs = refs_in(task_id)
        except InvalidInput as error:
            logger.error("a message was dropped: %s", error)  # noqa: TRY400 - nothing of ours has failed
            return False
        names = names_in(task_id)
        if any(map(self._intake.has_seen, names)):
            self._answer_for_seen(read)
            return False
        if redelivered:
            self._return(read(), "the broker delivered it again")
            return False
        if self._is_stopped(task_id):
            orders = read()
            self._intake.see(orders)
            self._report_dropped(orders, STOPPED)
            return False
        self._intake.see(names)
        self._intake.wait(task_id, refs, read)
        return True

    def _answer_for_seen(self, read: Reader) -> None:
        """Report the steps that this worker has had and has no more.

        Reports are pushed before a step is no longer active: if one arrived, this comes after it and is no
        news. If it did not, this is the only word about the step.
        """
        # In this order: what is no longer waiting was active before it ceased to wait.
        held = self._intake.waiting_names()
        active = _requests(celery_state.active_requests)
        held.update(name for request in active for name in names_in(request.id))
        unsent = set(self._unsent())
        orders = {name: order for name, order in read().items() if name not in held}
        had = [order.ref for name, order in orders.items() if self._intake.has_seen(name)]
        self.report(
            StepLost(ref, begun=True, counted=True, reason=HAD_BEFORE, worker=self.name)
            for ref in had
            if ref not in unsent
        )
        fresh = {name: order for name, order in orders.items() if order.ref not in had}
        self._return(fresh, "it came together with a step that this worker has had before")

    def waits(self, task_id: str) -> bool:
        """Tell whether a message still waits for the pool; it does not if it was handed back."""
        return self._intake.waits(task_id)

    def forget(self, names: Iterable[str]) -> None:
        """Take these steps when they come again: they came without a good order."""
        self._intake.forget(names)

    def refuse(self, task_id: str) -> None:
        """Let go of a message that Celery could not take."""
        self._intake.end(task_id)
        self._intake.forget(names_in(task_id))

    def given(self, task_id: str, job: ApplyResult) -> None:
        """Take note that the pool has it."""
        self._intake.give(task_id, job)

    def accepted(self, task_id: str) -> None:
        """Take note that the pool has begun with it."""
        self._intake.end(task_id)

    def connected(self) -> None:
        """Say who is here; hand back what waited for the pool when the broker was lost: Celery forgot it."""
        if self._pool == PREFORK:
            self._hand_back("its worker lost the broker", lambda waiting: not keep_with_child(waiting.job))
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
        """Hand back what the pool does not have: it shall not wait for what the pool has to finish."""
        self._hand_back("its worker is stopping", lambda waiting: waiting.job is None)

    def close(self) -> None:
        """Hand back what was never begun, and say goodbye."""
        self._closed.set()
        self._hand_back("its worker was stopped", lambda _: True)
        self._outbox.close(CLOSING_S)
        if self._bench is not None and self._pool != PREFORK:
            self._bench.close()
        with contextlib.suppress(NotReachable):
            self._hold()

    def _hand_back(self, reason: str, may_go: Callable[[Waiting], bool]) -> None:
        for waiting in self._intake.take_back(may_go):
            self._return(waiting.read(), reason)

    def _return(self, orders: Orders, reason: str) -> None:
        self.report(StepReturned(order.ref, reason, self.name) for order in orders.values())

    # -- the thread that keeps in touch

    def _hold(self) -> None:
        reserved = self._intake.reserved()
        # Read after those that wait: one that begins in between is named twice rather than not at all.
        active = tuple(
            (order.ref, round(request.time_start or time.time(), 3))
            for request in _requests(celery_state.active_requests)
            for order in request.orders.values()
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
            unsent=self._unsent(),
            leaving=self._closed.is_set(),
        )
        self._sender.push([self._seal.write(holding)])

    def _unsent(self) -> tuple[StepRef, ...]:
        """Name the steps that are reported in this process, and the broker has not taken the report yet."""
        return self._outbox.unsent + (() if self._bench is None else self._bench.unsent)

    def _learn_stops(self) -> None:
        self._newest_stop, names = self._sender.stops_since(self._newest_stop)
        if not names:
            return
        for name in names:
            self._stopped[name] = None
        while len(self._stopped) > MOST_STOPS:
            self._stopped.popitem(last=False)
        for task_id in self._intake.waiting():
            if self._is_stopped(task_id):
                # Celery drops it when its turn comes, and says so to `_revoked`.
                celery_state.revoked.add(task_id)
        if self._bench is not None and self._pool != PREFORK:
            for name in names:
                self._bench.stop(name)

    def _expire(self) -> None:
        """Report the steps whose time is over: no pool but prefork can end them."""
        now = time.time()
        active = {
            name: (order, request.time_start)
            for request in _requests(celery_state.active_requests)
            for name, order in request.orders.items()
        }
        self._overdue &= active.keys()
        for name, (order, started) in active.items():
            limit = order.timeout_s
            if not limit or started is None or now < started + limit or name in self._overdue:
                continue
            self._overdue.add(name)
            self.report_timeout([order], limit)
            if self._bench is not None:
                self._bench.stop(name)

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
        orders = self.orders(task_id, request.args or (), request.timelimit)
        if terminated:
            # At once: Celery counts it as over, so that our holdings name it no more.
            self.report_terminated(orders)
            return
        self._intake.end(task_id)
        self._intake.forget(name for name in names_in(task_id) if name not in orders)
        self._report_dropped(orders, STOPPED if self._is_stopped(task_id) else REVOKED)

    def report_terminated(self, orders: Orders) -> None:
        """Report what an operator has killed; harmless when done before."""
        self._report_dropped(orders, KILLED)

    def report_timeout(self, orders: Iterable[Dispatch], limit_s: float, *, killed: bool = False) -> None:
        """Report what took longer than it may."""
        end = " and was killed" if killed else ""
        for order in orders:
            error = Error("timeout", f"the tool ran longer than {order.timeout_s or limit_s:g} s{end}")
            self.report([StepFailed(order.ref, error, ("timeout",), worker=self.name)])

    def _is_stopped(self, task_id: str) -> bool:
        """Tell whether nothing of a message is wanted any more; where a part is, the bench sorts it out."""
        return all(name in self._stopped for name in names_in(task_id))

    def _report_dropped(self, orders: Orders, error: Error) -> None:
        self.report(
            StepFailed(order.ref, error, (error.type,), retry=False, worker=self.name)
            for order in orders.values()
        )

    def _connect(self) -> Sender:
        url, options = self._broker
        return Sender(connect(url, options), Names(key_prefix(options)))

    def _make_outbox(self, sender: Sender) -> Outbox:
        return Outbox(sender, self._seal, keep_s=2 * self._lease_s)


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
            return [request for request in list(held) if request.type == STEP_TASK]
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
