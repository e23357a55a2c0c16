"""Notices: what people are told of, one row for each recipient, and how the telling went.

The links by which people decide are not here: whoever sends a notice makes them, and only then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy import Integer, and_, bindparam, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from wfcelery.core.state import StepStatus, WaitsFor
from wfcelery.core.values import Json, canonical
from wfcelery.store.database import POSTGRESQL
from wfcelery.store.schema import NoticeStatus, is_status, notices, workflow_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sqlalchemy import Connection, Row

__all__ = [
    "Notice",
    "NoticeStatus",
    "any_waits",
    "due",
    "failed",
    "forget",
    "get",
    "get_many",
    "of_run",
    "put_many",
    "save",
    "untold",
]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that one recipient is told: a person, `group:NAME`, `channel:NAME`, or an address.

    `kind` is that of `core.messages.NoticeKind`, `data` what the notice says. `reached` are those who have it
    already when a try has failed for others. While it waits, `next_at` is when it is tried (again).
    """

    id: str
    run_id: str
    step: str | None
    attempt: int
    kind: str
    recipient: str
    created_at: float
    next_at: float
    data: Mapping[str, Json] = field(default_factory=dict)
    status: NoticeStatus = NoticeStatus.WAITING
    tries: int = 0
    sent_at: float | None = None
    error: str | None = None
    reached: tuple[str, ...] = ()


_waits = is_status(notices, NoticeStatus.WAITING)
_due = (
    select(notices)
    .where(_waits, notices.c.next_at <= bindparam("now"))
    .order_by(notices.c.next_at, notices.c.id)
    .limit(bindparam("most", type_=Integer))
)
_any = select(notices.c.id).where(_waits).limit(1)
_some = select(notices).where(notices.c.id.in_(bindparam("ids", expanding=True)))
_of_run = (
    select(notices)
    .where(notices.c.run_id == bindparam("run"))
    .order_by(notices.c.created_at.desc(), notices.c.id.desc())
    .limit(bindparam("most", type_=Integer))
)


_failed = (
    select(notices)
    .where(is_status(notices, NoticeStatus.FAILED))
    .order_by(notices.c.created_at.desc(), notices.c.id.desc())
    .limit(bindparam("most", type_=Integer))
)


_steps = workflow_steps.c
_untold = (
    select(notices)
    .join(
        workflow_steps,
        and_(
            _steps.workflow_id == notices.c.run_id,
            _steps.name == notices.c.step,
            _steps.attempt == notices.c.attempt,
        ),
    )
    .where(
        _steps.waits_for == WaitsFor.APPROVAL.value,
        is_status(workflow_steps, StepStatus.PENDING),
        or_(
            is_status(notices, NoticeStatus.FAILED),
            and_(_waits, notices.c.tries == 0, notices.c.next_at <= bindparam("before")),
        ),
    )
    .order_by(notices.c.created_at, notices.c.id)
    .limit(bindparam("most", type_=Integer))
)


def put_many(conn: Connection, made: Sequence[Notice]) -> None:
    """Write notices; one that is there already stays as it is."""
    if made:
        conn.execute(_insert(conn.dialect.name), [_row(notice) for notice in made])


def due(conn: Connection, now: float, limit: int) -> list[Notice]:
    """List those that wait and whose moment has come, the longest due first."""
    return [_notice(row) for row in conn.execute(_due, {"now": now, "most": limit})]


def get(conn: Connection, notice_id: str) -> Notice | None:
    """Read one."""
    return get_many(conn, [notice_id]).get(notice_id)


def get_many(conn: Connection, ids: Sequence[str]) -> dict[str, Notice]:
    """Read those that exist, by id."""
    if not ids:
        return {}
    return {row.id: _notice(row) for row in conn.execute(_some, {"ids": list(ids)})}


def save(conn: Connection, notice: Notice) -> None:
    """Write how a notice stands now; one that no longer waits never changes."""
    conn.execute(
        update(notices)
        .where(notices.c.id == notice.id, _waits)
        .values(
            status=notice.status.value,
            tries=notice.tries,
            next_at=notice.next_at,
            sent_at=notice.sent_at,
            error=notice.error,
            reached=canonical(notice.reached),
        )
    )


def any_waits(conn: Connection) -> bool:
    """Tell whether any notice is still to be sent."""
    return conn.execute(_any).first() is not None


def of_run(conn: Connection, run_id: str, limit: int = 100) -> list[Notice]:
    """List the notices of a run, newest first."""
    return [_notice(row) for row in conn.execute(_of_run, {"run": run_id, "most": limit})]


def failed(conn: Connection, limit: int = 100) -> list[Notice]:
    """List those that nobody tries to send any more, newest first."""
    return [_notice(row) for row in conn.execute(_failed, {"most": limit})]


def untold(conn: Connection, before: float, limit: int = 100) -> list[Notice]:
    """List those of open gates that have failed, or were due at a moment and never tried."""
    return [_notice(row) for row in conn.execute(_untold, {"before": before, "most": limit})]


def forget(conn: Connection, before: float) -> int:
    """Delete those that were made before a moment and no longer wait; say how many."""
    ended = is_status(notices, NoticeStatus.SENT, NoticeStatus.FAILED)
    return conn.execute(delete(notices).where(ended, notices.c.created_at < before)).rowcount


@lru_cache(maxsize=2)
def _insert(dialect: str) -> postgresql.Insert | sqlite.Insert:
    insert = postgresql.insert(notices) if dialect == POSTGRESQL else sqlite.insert(notices)
    return insert.on_conflict_do_nothing(index_elements=[notices.c.id])


def _row(notice: Notice) -> dict[str, object]:
    return {
        "id": notice.id,
        "run_id": notice.run_id,
        "step": notice.step,
        "attempt": notice.attempt,
        "kind": notice.kind,
        "recipient": notice.recipient,
        "data": canonical(notice.data),
        "status": notice.status.value,
        "tries": notice.tries,
        "next_at": notice.next_at,
        "created_at": notice.created_at,
        "sent_at": notice.sent_at,
        "error": notice.error,
        "reached": canonical(notice.reached),
    }


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        id=row.id,
        run_id=row.run_id,
        step=row.step,
        attempt=row.attempt,
        kind=row.kind,
        recipient=row.recipient,
        created_at=row.created_at,
        next_at=row.next_at,
        data=json.loads(row.data),
        status=NoticeStatus(row.status),
        tries=row.tries,
        sent_at=row.sent_at,
        error=row.error,
        reached=tuple(json.loads(row.reached)),
    )
