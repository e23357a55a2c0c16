"""Joining the transaction of the caller: the row is written in it, and sent when it has committed."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Engine, Table, event, insert
from sqlalchemy.orm import Session, SessionTransaction, scoped_session
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from wfcelery.contrib.flask.prompt_sender import PromptSender
from wfcelery.contrib.flask.table import OutboxRows, put, values_of
from wfcelery.errors import InvalidInput
from wfcelery.workflows.outbox import Entry

Caller: TypeAlias = "Session | scoped_session[Any] | Connection"
WRITTEN: Final = "wfcelery_written"
"""Under this name a session knows what was written in its transaction."""
LOOKED_FOR_S: Final = 1.0
"""A connection tells of a commit before it happens: how long the row is looked for then."""


def join(caller: Caller, table: Table, entry: Entry, sender: PromptSender) -> None:
    """Write the row as a part of the caller's transaction, and send it after the commit.

    The events say only when to look: what is sent is what others can see in the table by then.
    """
    session = caller() if isinstance(caller, scoped_session) else caller
    if isinstance(session, Session):
        _join_session(session, table, entry, sender)
    elif isinstance(session, Connection):
        _join_connection(session, table, entry, sender)
    else:
        kind = type(session).__name__
        raise InvalidInput("outbox", f"must be an SQLAlchemy Session or Connection, not {kind}")


def _join_session(session: Session, table: Table, entry: Entry, sender: PromptSender) -> None:
    bind = session.get_bind(clause=insert(table))
    session.execute(insert(table).values(values_of(entry)))
    engine = bind if isinstance(bind, Engine) else bind.engine
    if not _is_shared(engine):
        return
    is_first = WRITTEN not in session.info
    session.info.setdefault(WRITTEN, []).append((sender, OutboxRows(engine, table), entry.id))
    if not is_first:
        return

    def committed(done: Session) -> None:
        # A savepoint that is released has committed nothing yet.
        if not done.in_nested_transaction():
            for waiting, rows, run_id in done.info.get(WRITTEN, ()):
                waiting.wake(rows, run_id)
            done.info[WRITTEN] = []

    def rolled_back(done: Session, ended: SessionTransaction) -> None:
        if not ended.nested:
            done.info[WRITTEN] = []

    event.listen(session, "after_commit", committed)
    event.listen(session, "after_soft_rollback", rolled_back)


def _join_connection(conn: Connection, table: Table, entry: Entry, sender: PromptSender) -> None:
    put(conn, table, entry)
    if not _is_shared(conn.engine):
        return
    rows = OutboxRows(conn.engine, table)

    def committing(_conn: Connection) -> None:
        sender.wake(rows, entry.id, looked_for_s=LOOKED_FOR_S)

    event.listen(conn, "commit", committing, once=True)


def _is_shared(engine: Engine) -> bool:
    """Tell whether another thread can look at the database without being in the caller's way.

    In memory it cannot: it would see another database, or commit what the caller has not.
    """
    return not isinstance(engine.pool, StaticPool | SingletonThreadPool)
