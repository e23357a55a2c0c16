"""What people are told of: written down with what it tells of, rung to the notifier, tried until it is sent.

The executor sends nothing itself. The notifier is told the ids of notices, reads the rows, and says how it
went; a bell that is lost is rung again from here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wfcelery.core.effects import Notify
from wfcelery.core.values import canonical
from wfcelery.executor.messages import NoticeTried
from wfcelery.executor.ports import NoticePost
from wfcelery.store import notices
from wfcelery.store.notices import Notice, NoticeStatus

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from wfcelery.executor.batch import Batch

RUNG_AGAIN_S: Final = 60.0
LATEST_AGAIN_S: Final = 21_600.0
"""While nobody says how a notice went, it is rung again after a minute, then twice that, up to six hours."""

GIVEN_UP_S: Final = 3 * 86_400.0
NOBODY_SENT: Final = "nobody has sent it in three days; is a notifier running (`wfcelery notifier`)?"

GAPS_S: Final = (30.0, 120.0, 600.0, 3_600.0, 21_600.0)
"""How long to wait after each try that failed; after the last of them comes one more try."""

LONGEST_ERROR: Final = 500
MOST_AT_ONCE: Final = 500


class NoticeBook:
    """Keeps the notices of an executor. `defaults` are told of everything, whatever the flow says.

    Unless it `knows_people`, only addresses are told: without a policy no person or channel has any.
    """

    def __init__(self, post: NoticePost, defaults: Sequence[str] = (), *, knows_people: bool = True) -> None:
        self._post = post
        self._knows_people = knows_people
        self._defaults = tuple(defaults)
        self._to_ring: list[str] = []
        self._may_wait = True

    def write(self, conn: Connection, batch: Batch) -> None:
        """Write what a batch tells people, and what was heard of earlier notices, in its transaction."""
        if batch.notices:
            made = [notice for effect in batch.notices for notice in self._notices(batch, effect)]
            notices.put_many(conn, made)
            self._to_ring += dict.fromkeys(notice.id for notice in made)
            self._may_wait = self._may_wait or bool(made)
        if batch.tried:
            self._record(conn, batch.tried, batch.now)

    def look(self, conn: Connection, now: float) -> None:
        """Find those whose moment has come. Costs nothing while none waits."""
        if not self._may_wait:
            return
        due = [rung_again(notice, now) for notice in notices.due(conn, now, MOST_AT_ONCE)]
        for notice in due:
            notices.save(conn, notice)
        self._to_ring += [notice.id for notice in due if notice.status is NoticeStatus.WAITING]
        self._may_wait = bool(due) or notices.any_waits(conn)

    def ring(self) -> None:
        """Tell the notifier, once all is committed."""
        if self._to_ring:
            rung, self._to_ring = self._to_ring, []
            self._post.ring(rung)

    def forget(self) -> None:
        """Only the tables are true now."""
        self._to_ring.clear()
        self._may_wait = True

    def _notices(self, batch: Batch, effect: Notify) -> Iterable[Notice]:
        seq = batch.runs[effect.run_id].seq
        for recipient in dict.fromkeys((*effect.to, *self._defaults)):
            if not self._knows_people and "://" not in recipient:
                continue
            yield Notice(
                id=notice_id(effect, recipient, seq),
                run_id=effect.run_id,
                step=effect.step,
                attempt=effect.attempt,
                kind=effect.kind.value,
                recipient=recipient,
                created_at=batch.now,
                next_at=batch.now + RUNG_AGAIN_S,
                data=effect.data,
            )

    def _record(self, conn: Connection, tried: Sequence[NoticeTried], now: float) -> None:
        known = notices.get_many(conn, [each.notice_id for each in tried])
        for each in tried:
            notice = known.get(each.notice_id)
            if notice is not None and notice.status is NoticeStatus.WAITING:
                known[notice.id] = after(notice, each, now)
                notices.save(conn, known[notice.id])


def notice_id(effect: Notify, recipient: str, seq: int) -> str:
    """Name a notice by what it tells whom, and by how long the run's history is then: never twice."""
    said = canonical([effect.run_id, effect.kind.value, effect.step, effect.attempt, seq, recipient])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def rung_again(notice: Notice, now: float) -> Notice:
    """Give a notice that is due as it is once it was rung; after days of silence it is given up."""
    age = now - notice.created_at
    if age > GIVEN_UP_S:
        return replace(notice, status=NoticeStatus.FAILED, error=notice.error or NOBODY_SENT)
    return replace(notice, next_at=now + min(max(age, RUNG_AGAIN_S), LATEST_AGAIN_S))


def after(notice: Notice, tried: NoticeTried, now: float) -> Notice:
    """Give a notice that waits as it is after a try."""
    tries = notice.tries + 1
    reached = tuple(dict.fromkeys((*notice.reached, *tried.reached)))
    if not tried.error:
        return replace(
            notice, status=NoticeStatus.SENT, tries=tries, sent_at=now, error=None, reached=reached
        )
    failed = replace(notice, tries=tries, error=tried.error[:LONGEST_ERROR], reached=reached)
    if tried.final or tries > len(GAPS_S):
        return replace(failed, status=NoticeStatus.FAILED)
    return replace(failed, next_at=now + GAPS_S[tries - 1])
