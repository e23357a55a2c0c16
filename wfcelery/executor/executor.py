"""The single writer. Read this after `core/decide`: it is the whole loop.

    take a batch → ask who may → decide each → write one transaction → hand steps over → let the messages go

A crash anywhere loses nothing: what was not committed is still in the mailbox; what was committed and not
handed over is `ready` in the tables, and is found there by the next executor.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from wfcelery.core.catalogue import ToolCatalogue
from wfcelery.core.effects import Dispatch
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.messages import Answer, Broken, StepFailed, StepSent, TimerDue
from wfcelery.core.state import Run, StepRef
from wfcelery.errors import LostLease, NotReachable, StoreError
from wfcelery.executor.asking import answered
from wfcelery.executor.batch import NOT_ABOUT_RUNS, Batch, Letter
from wfcelery.executor.clearance import Clearance, Guarded
from wfcelery.executor.definitions import Definitions
from wfcelery.executor.entitlement import Entitlement, parts
from wfcelery.executor.lookout import Lookout, write_workers
from wfcelery.executor.messages import (
    Message,
    Sign,
    Start,
    Told,
    is_asked,
    is_sign,
    run_of,
    text_of,
)
from wfcelery.executor.notice_book import NoticeBook
from wfcelery.executor.ports import Clock, Dispatcher, Mailbox
from wfcelery.executor.tidying import tidy
from wfcelery.executor.timers import NEVER, first_due
from wfcelery.rights import Authority, Everybody
from wfcelery.store import commands, dead_letters, steps
from wfcelery.store.changes import RunChange
from wfcelery.store.database import Database
from wfcelery.store.lease import Lease

if TYPE_CHECKING:
    from sqlalchemy import Connection

logger: Final = logging.getLogger("wfcelery.executor")

BATCH: Final = 500
CACHED_RUNS: Final = 2_048
TIDY_EVERY_S: Final = 3_600.0
BATCHES_BEFORE_TIMERS: Final = 20
MARK_WITHIN_S: Final = 1.0
"""How long the tables may say `ready` of a step that was handed over, while there is other work to do."""


class Executor:
    """Holds the lease and does all the writing. One call of `run_once` is one batch.

    `only` restricts the timers to one run and its sub-runs; `observer` is shown what each batch has changed;
    the `lookout` is told of what is out and who is alive; the `authority` is asked what everybody may do; the
    `notices` are kept for people, and without them nobody is told of anything. One that hands nothing over
    leaves what is ready to the next.
    """

    def __init__(
        self,
        database: Database,
        lease: Lease,
        mailbox: Mailbox,
        dispatcher: Dispatcher,
        clock: Clock,
        *,
        tools: ToolCatalogue | None = None,
        limits: Limits = DEFAULT,
        only: str | None = None,
        observer: Callable[[Sequence[RunChange]], None] | None = None,
        lookout: Lookout | None = None,
        authority: Authority | None = None,
        hands_over: bool = True,
        notices: NoticeBook | None = None,
    ) -> None:
        self._database = database
        self._lease = lease
        self._mailbox = mailbox
        self._dispatcher = dispatcher
        self._clock = clock
        self._limits = limits
        self._only = only
        self._observer = observer
        self._lookout = lookout
        self._notices = notices
        self._authority = authority or Everybody()
        self._hands_over = hands_over
        self._entitlement = Entitlement(self._authority, tools, limits)
        self._clearance = Clearance(self._authority, tools)
        self._denied: list[StepFailed] = []
        self._definitions = Definitions(tools, limits)
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._unmarked: dict[str, list[StepRef]] = {}
        self._unwritable: set[str] = set()
        self._marks_due = NEVER
        self._next_due = 0.0
        self._renew_at = 0.0
        self._tidy_at = 0.0
        self._put_off = 0
        self._knows_out = False

    @property
    def next_due(self) -> float:
        """Tell when the next timer is due; infinity if none is set."""
        return self._next_due

    @property
    def has_marks(self) -> bool:
        """Tell whether steps were handed over of which the tables do not know yet."""
        return bool(self._unmarked)

    def run_once(self, findings: Sequence[Told] = (), *, marks: bool = True) -> int:
        """Take in one batch, the findings, then the timers that are due; tell how many messages there were.

        Without `marks`, a batch that holds nothing else is no reason to write that steps were handed over.
        """
        self._look_again()
        taken = self._mailbox.take(BATCH)
        signs = [message for message in taken if is_sign(message)]
        messages = [message for message in taken if not is_sign(message)] if signs else taken
        if self._lookout is not None:
            findings = [*self._lookout.hear(signs, messages), *findings]
        messages = [*messages, *(each for each in findings if run_of(each) not in self._unwritable)]
        now = self._clock.now()
        due = now >= self._next_due and self._is_turn_of_timers()
        late = _has_come(self._marks_due, now, MARK_WITHIN_S)
        idle = not due and not self._must_renew(now) and not (self._unmarked and (marks or late))
        if not messages and not signs and idle:
            return 0
        try:
            *first, last = [messages] if self._authority.is_open else parts(messages)
            for part in first:
                self._commit(part)
            self._commit(last, timers=due, marks=late or (marks and not messages), signs=signs)
            while self._denied:
                self._commit(self._take_denied())
        except LostLease:
            self._forget()
            raise
        except StoreError:
            # Somebody wrote behind our back, or something cannot be written: find out what, one by one.
            self._forget()
            sent = [StepSent(refs[0]) for refs in self._unmarked.values()]
            waiting: deque[Message] = deque((*sent, *messages, *(self._overdue(now) if due else ())))
            while waiting or self._denied:
                waiting.extend(self._take_denied())
                self._commit_alone(waiting.popleft())
        except Exception:
            # Perhaps it was committed, perhaps not.
            self._forget()
            raise
        if taken:
            self._mailbox.done()
        return len(taken)

    def _look_again(self) -> None:
        """Make sure that what is out is watched: at the start, and whenever a commit is in doubt."""
        if self._lookout is not None and not self._knows_out:
            with self._database.reading() as conn:
                found = self._lookout.look_again(conn, self._definitions)
            self._knows_out = True
            if found:
                logger.info("%d steps were out", found)

    def _is_turn_of_timers(self) -> bool:
        """Let timers wait for what came before them, but not for ever: an executor may never be idle."""
        if self._mailbox.left and self._put_off < BATCHES_BEFORE_TIMERS:
            self._put_off += 1
            return False
        self._put_off = 0
        return True

    def _must_renew(self, now: float) -> bool:
        return _has_come(self._renew_at, now, self._lease.ttl_s)

    def _commit_alone(self, message: Message) -> None:
        """Write one message; one that cannot be written is set aside, and its run fails."""
        try:
            self._commit([message])
        except (LostLease, NotReachable):
            self._forget()
            raise
        except StoreError as error:
            self._forget()
            run_id = None if isinstance(message, NOT_ABOUT_RUNS) else run_of(message)
            now = self._clock.now()
            with self._database.transaction() as conn:
                self._lease.check(conn)
                dead_letters.put(conn, at=now, run_id=run_id, message=text_of(message), error=str(error))
                if is_asked(message) and not commands.get_many(conn, [message.command_id]):
                    reason = f"it could not be written: {error}"
                    answer = Answer(ok=False, reason=reason, code="internal")
                    commands.put_many(conn, [answered(message, answer, now)])
            if run_id is None:
                return
            self._unmarked.pop(run_id, None)
            if isinstance(message, Broken):
                self._unwritable.add(run_id)
            elif not isinstance(message, Start):
                self._commit_alone(Broken(run_id, f"a message could not be written: {error}"))

    def _overdue(self, now: float) -> list[TimerDue]:
        with self._database.reading() as conn:
            return self._due(conn, now)

    def _due(self, conn: Connection, now: float) -> list[TimerDue]:
        """List the timers to fire; those of runs that cannot be written would only fail again."""
        due = steps.due(conn, now, BATCH, self._only)
        return [timer for timer in due if timer.run_id not in self._unwritable]

    def _commit(
        self,
        messages: Sequence[Message],
        *,
        timers: bool = False,
        marks: bool = False,
        signs: Sequence[Sign] = (),
    ) -> None:
        now = self._clock.now()
        refused: Mapping[str, Answer] = {}
        if not self._authority.is_open:
            messages, refused = self._entitlement.judge(
                self._database, messages, self._runs, self._definitions
            )
        with self._database.transaction() as conn:
            self._hold_lease(conn, now)
            batch = Batch(
                conn,
                self._definitions,
                cached=self._runs,
                unmarked=self._unmarked,
                now=now,
                limits=self._limits,
                refused=refused,
            )
            batch.preload(messages)
            batch.handle(messages)
            more = timers and self._fire(conn, batch, now)
            if marks:
                batch.mark_all()
            batch.write()
            ready = batch.to_send() if self._hands_over else []
            guarded = self._clearance.guarded(batch, ready) if ready else ()
            if self._notices is not None:
                self._notices.write(conn, batch)
            if signs:
                write_workers(conn, signs, now)
            found = steps.next_due(conn, self._only) if timers else None
        self._unmarked = batch.unmarked
        if not self._unmarked:
            self._marks_due = NEVER
        self._remember(batch)
        if timers:
            soonest = now + MARK_WITHIN_S if self._unwritable else now
            self._next_due = now if more else NEVER if found is None else max(found, soonest)
        self._next_due = min(self._next_due, first_due(batch.written))
        if self._lookout is not None:
            self._lookout.changed(batch.written)
        if self._observer is not None and batch.written:
            self._observer(batch.written)  # Before anything that the broker can keep from happening.
        self._publish(batch, ready, guarded)
        if self._notices is not None:
            self._notices.ring()

    def _hold_lease(self, conn: Connection, now: float) -> None:
        """Make sure that nobody else writes, now and for a while."""
        self._lease.check(conn)
        if self._must_renew(now):
            self._lease.renew(conn, now)
            self._renew_at = now + self._lease.ttl_s / 3
            if self._notices is not None:
                self._notices.look(conn, now)
            if now >= self._tidy_at:
                tidy(conn, now)
                self._tidy_at = now + TIDY_EVERY_S

    def _fire(self, conn: Connection, batch: Batch, now: float) -> bool:
        """Let due timers act, after the messages that came before them; tell whether more are due."""
        due = self._due(conn, now)
        batch.preload(due)
        batch.handle(due)
        return len(due) == BATCH

    def _publish(self, batch: Batch, ready: Sequence[Dispatch], guarded: Sequence[Guarded]) -> None:
        if guarded:
            denied = self._clearance.refusals(guarded)
            self._denied += denied
            kept_back = {each.ref for each in denied}
            ready = [each for each in ready if each.ref not in kept_back]
        if ready and self._hand_over(ready):
            for each in ready:
                self._unmarked.setdefault(each.ref.run_id, []).append(each.ref)
            self._marks_due = min(self._marks_due, batch.now + MARK_WITHIN_S)
        if batch.stops:
            self._dispatcher.stop(batch.stops)

    def _take_denied(self) -> list[StepFailed]:
        """Give the steps that were not handed over because they may not run, as failures to be written."""
        taken, self._denied = self._denied, []
        return taken

    def _hand_over(self, ready: Sequence[Dispatch]) -> bool:
        """Send steps to workers; tell whether that is certain."""
        if self._lookout is None:
            self._dispatcher.send(ready)
            return True
        self._lookout.handed(ready)
        try:
            self._dispatcher.send(ready)
        except NotReachable:
            # Perhaps some were sent, perhaps none: they stay ready until the lookout knows.
            return False
        return True

    def _remember(self, batch: Batch) -> None:
        for run_id, run in batch.runs.items():
            if run.is_live or run.open:
                self._runs[run_id] = run
                self._runs.move_to_end(run_id)
            else:
                self._runs.pop(run_id, None)
        while len(self._runs) > CACHED_RUNS:
            self._runs.popitem(last=False)

    def _forget(self) -> None:
        """Drop everything remembered: only the tables are true now."""
        self._runs.clear()
        self._definitions.forget()
        self._next_due = 0.0
        self._renew_at = 0.0
        self._knows_out = False
        self._denied = []
        if self._notices is not None:
            self._notices.forget()


def _has_come(moment: float, now: float, most: float) -> bool:
    """Tell whether a moment that was never more than `most` away has come, or the clock was set back."""
    return now >= moment or (moment - now > most and moment != NEVER)


__all__ = ["BATCH", "NEVER", "Executor", "Letter"]
