"""The executor as a Celery process: waits for the lease, answers the bell, ticks.

Everything here runs in one thread, the worker's own: bells are answered where they are taken from the queue,
ticks come from the worker's timer.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Final

from celery.worker import state as celery_state

from wfcelery.broker.client import connect, key_prefix
from wfcelery.broker.figures import Figures
from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import Names
from wfcelery.broker.sender import Sender
from wfcelery.errors import InvalidSettings, LostLease, NotReachable
from wfcelery.executor.clock import SystemClock
from wfcelery.executor.executor import NEVER, Executor
from wfcelery.executor.lookout import Lookout
from wfcelery.executor.notice_book import NoticeBook
from wfcelery.executor.packer import Packer
from wfcelery.executor.tally import Tally
from wfcelery.executor.watch import Watch
from wfcelery.rights.loading import load_authority
from wfcelery.shell.event_hooks import EventHooks, load_hooks
from wfcelery.shell.publisher import Publisher
from wfcelery.store import lease
from wfcelery.store.database import open_database
from wfcelery.tools.catalogue import Catalogue
from wfcelery.tools.registry import Registry
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery import Celery

    from wfcelery.executor.messages import Told
    from wfcelery.settings import Settings
    from wfcelery.store.changes import RunChange

logger: Final = logging.getLogger("wfcelery.executor")

LONGEST_LEASE_S: Final = 10.0
STANDBY_S: Final = 0.2
BATCHES_AT_ONCE: Final = 10
WAKE_WITHIN_S: Final = 60.0
OVERTAKEN: Final = 75  # EX_TEMPFAIL: whoever supervises us starts us again, as a standby


class ExecutorRole:
    """One process that is, or waits to be, the executor."""

    def __init__(self, app: Celery, settings: Settings, name: str) -> None:
        if not settings.secret_key:
            reason = "is not set; the executor needs it (`wfcelery keys --new` prints a good one)"
            raise InvalidSettings("secret_key", reason)
        self._settings = settings
        self._owner = f"{name} {os.getpid()}"
        self._tools = Registry.load(settings.tools)
        self._functions = load_hooks(settings.hooks)
        self._authority = load_authority(settings)
        self._ring = keyring(settings.secret_key)
        self._clock = SystemClock()
        self._database = open_database(settings.database_url)
        options = app.conf.broker_transport_options
        self._names = Names(key_prefix(options))
        self._client = connect(str(app.conf.broker_url), options)
        self._sender = Sender(self._client, self._names)
        self._lease: lease.Lease | None = None
        self._wake_at = NEVER
        self._trouble = ""

    def stand_by(self) -> None:
        """Return once this process is the executor; until then another one is."""
        ttl = min(LONGEST_LEASE_S, self._settings.lease_s / 3)
        waited = False
        while self._lease is None:
            celery_state.maybe_shutdown()
            try:
                self._lease = lease.acquire(self._database, self._owner, ttl_s=ttl, now=self._clock.now())
            except NotReachable as error:
                self._note(str(error))
            else:
                if self._lease is None and not waited:
                    logger.info("another executor is at work; standing by")
                    waited = True
            if self._lease is None:
                time.sleep(STANDBY_S)
        self._make_executor(self._lease)
        logger.info("executor of epoch %d", self._lease.epoch)

    def _make_executor(self, held: lease.Lease) -> None:
        seal = Seal(self._ring)
        self._mailbox = RedisMailbox(self._client, self._names, held.epoch, seal.read, seal.write)
        packer = Packer()
        self._publisher = Publisher(self._sender, self._mailbox, self._ring, packer)
        watch = Watch(
            held.epoch, lease_s=self._settings.lease_s, round_s=min(5.0, self._settings.lease_s / 2)
        )
        self._lookout = Lookout(watch, self._publisher, packer)
        self._tally = Tally(held.epoch, self._clock.now())
        self._figures = Figures(self._client, self._names)
        self._hooks = EventHooks(self._functions)
        self._executor = Executor(
            self._database,
            held,
            self._mailbox,
            self._publisher,
            self._clock,
            tools=Catalogue(self._tools),
            observer=self._see,
            lookout=self._lookout,
            authority=self._authority,
            notices=NoticeBook(
                self._publisher, self._settings.notify, knows_people=not self._authority.is_open
            ),
        )

    def begin(self) -> None:
        """Begin to work, or go on after the broker was away."""
        with _Troubles(self):
            self._wake_at = NEVER
            self.tick()

    def answer_bell(self) -> None:
        """Take in what is in the mailbox."""
        with _Troubles(self):
            self._drain()

    def hear_beat(self) -> None:
        """Beat is alive."""
        with _Troubles(self):
            self._mailbox.beat("beat", self._clock.now())

    def tick(self) -> None:
        """Take in what is in the mailbox, fire timers, judge what is out."""
        with _Troubles(self):
            nonce, _ = self._mailbox.nonce()
            drained = self._drain()
            self._mailbox.beat("executor", self._clock.now())
            # What is still in the mailbox may be the very report of a step that seems lost.
            self._turn(self._lookout.tick(nonce, judge=drained))
            self._tell_figures()

    def close(self) -> None:
        """Take in what is left in the mailbox, and let the next one take over."""
        if self._lease is not None:
            with _Troubles(self):
                self._drain()
                self._turn()
                self._tell_figures()
            self._hooks.close()
            try:
                self._lease.release()
            except (NotReachable, LostLease):
                self._lease.abandon()
        self._database.close()

    def _drain(self) -> bool:
        """Take batch after batch; tell whether the mailbox is empty."""
        for _ in range(BATCHES_AT_ONCE):
            self._turn(marks=False)
            if not self._mailbox.left:
                self._tally.caught_up_at = self._clock.now()
                self._ask_for_wake()
                return True
        self._sender.ring()
        return False

    def _turn(self, findings: Sequence[Told] = (), *, marks: bool = True) -> None:
        """Take one batch, and count it."""
        began = time.monotonic()
        taken = self._executor.run_once(findings, marks=marks)
        self._tally.took(taken, time.monotonic() - began)

    def _see(self, written: Sequence[RunChange]) -> None:
        """Be shown what a batch has changed."""
        self._tally.see(written)
        self._hooks.see(written)

    def _tell_figures(self) -> None:
        """Let others know what was counted."""
        self._figures.write({**self._tally.as_json(self._clock.now()), "hooks": self._hooks.as_json()})

    def _ask_for_wake(self) -> None:
        """Have the bell rung when the next timer is due, if that is soon; later ones wait in the table."""
        now = self._clock.now()
        if now >= self._wake_at:
            self._wake_at = NEVER
        due = self._executor.next_due
        if due < self._wake_at and due - now <= WAKE_WITHIN_S:
            self._publisher.wake(max(due, now))
            self._wake_at = due

    def _note(self, trouble: str) -> None:
        """Log a trouble once, and once that it is over."""
        if trouble and trouble != self._trouble:
            logger.warning("%s", trouble)
        elif not trouble and self._trouble:
            logger.info("going on")
        self._trouble = trouble

    def overtaken(self, error: LostLease) -> None:
        """Stop if somebody else writes now. Only the tables know: the broker may be older than they are."""
        try:
            with self._database.transaction() as conn:
                self._held().check(conn)
            self._mailbox.claim()
        except NotReachable as trouble:
            self._note(str(trouble))
        except LostLease:
            logger.error("%s", error)  # noqa: TRY400 - it is told by the error of the one who took over
            celery_state.should_stop = OVERTAKEN
        else:
            logger.warning("the broker knew of a later executor than the tables; its epoch was set back")

    def _held(self) -> lease.Lease:
        if self._lease is None:
            raise LostLease(0)
        return self._lease


class _Troubles:
    """What may go wrong in a turn without being anybody's fault."""

    def __init__(self, role: ExecutorRole) -> None:
        self._role = role

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, NotReachable):
            # Whatever was taken stays in flight, and is taken again by the next bell or tick.
            self._role._note(str(error))  # noqa: SLF001 - a part of the role
            return True
        if isinstance(error, LostLease):
            self._role.overtaken(error)
            return True
        if error is None:
            self._role._note("")  # noqa: SLF001 - same
        return False
