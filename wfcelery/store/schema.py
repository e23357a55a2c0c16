"""The tables. Four describe runs, the others are the engine's own small ones.

Columns carry the names of the fields of `core.state`. Payloads are canonical JSON texts: the value null is
the text `null`, and SQL's NULL means that there is none. Ids compare byte by byte on both databases.
`workflow_steps.position` orders the rows of a run by when they appeared.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)

from wfcelery.core.state import LIVE, RunStatus, StepStatus, WaitsFor
from wfcelery.store.times import Time

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

VERSION_TABLE: Final = "wfcelery_version"

_Id: Final = Text().with_variant(Text(collation="C"), "postgresql")
_Counter: Final = BigInteger().with_variant(Integer(), "sqlite")


class NoticeStatus(StrEnum):
    """How a notice stands: it is still to be sent, it was sent, or nobody tries any more."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


def _one_of(column: str, allowed: type[StrEnum]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({_quoted(allowed)})", name=column)


def _quoted(words: type[StrEnum] | frozenset[RunStatus]) -> str:
    return ", ".join(f"'{word.value}'" for word in sorted(words))


def _partial(name: str, where: str, *columns: Column[object], unique: bool = False) -> Index:
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


workflow_definitions: Final = Table(
    "workflow_definitions",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Column("pins", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("deleted_at", Time),
    UniqueConstraint("name", "version"),
)

workflows: Final = Table(
    "workflows",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("definition_id", _Id, ForeignKey("workflow_definitions.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("key", Text),
    Column("key_space", Text),
    Column("tags", Text, nullable=False),
    Column("root_id", _Id, nullable=False),
    Column("parent_run_id", _Id),
    Column("parent_step", Text),
    Column("parent_item", Integer),
    Column("parent_attempt", Integer),
    Column("parent_fence", BigInteger),
    Column("error", Text),
    Column("last_done", Text),
    Column("seq", BigInteger, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("completed_at", Time),
    Column("cancelled_at", Time),
    Column("output_digest", Text),
    Column("input", Text, nullable=False),
    Column("output", Text),
    _one_of("status", RunStatus),
)
LIVE_KEY: Final = _partial(
    "uq_workflows_live_key",
    f"status IN ({_quoted(LIVE)}) AND key_space IS NOT NULL",
    workflows.c.key_space,
    workflows.c.key,
    unique=True,
)
Index("ix_workflows_root", workflows.c.root_id)
Index("ix_workflows_created", workflows.c.created_at, workflows.c.id)
Index("ix_workflows_status", workflows.c.status, workflows.c.created_at, workflows.c.id)
Index("ix_workflows_name", workflows.c.name, workflows.c.created_at, workflows.c.id)
_partial("ix_workflows_key", "key IS NOT NULL", workflows.c.key, workflows.c.created_at, workflows.c.id)

workflow_steps: Final = Table(
    "workflow_steps",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("workflow_id", _Id, ForeignKey("workflows.id"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("item", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("tool", Text),
    Column("waits_for", Text),
    Column("missing", Integer, nullable=False),
    Column("live", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("escalated", Boolean, nullable=False),
    Column("took", Text),
    Column("ready_at", Time),
    Column("due_at", Time),
    Column("sent_at", Time),
    Column("started_at", Time),
    Column("heartbeat_at", Time),
    Column("completed_at", Time),
    Column("worker", Text),
    Column("error", Text),
    Column("args_digest", Text),
    Column("result_digest", Text),
    Column("args", Text),
    Column("secrets", Text),
    Column("result", Text),
    # In this order the index also finds the rows outside any foreach without passing by its items.
    UniqueConstraint("workflow_id", "item", "name", "attempt", name="uq_workflow_steps_attempt"),
    _one_of("status", StepStatus),
    _one_of("waits_for", WaitsFor),
    CheckConstraint("attempt >= 1", name="attempt"),
)
_partial("ix_workflow_steps_ready", "status = 'ready'", workflow_steps.c.ready_at, workflow_steps.c.id)
_partial("ix_workflow_steps_running", "status = 'running'", workflow_steps.c.sent_at, workflow_steps.c.id)
_partial(
    "ix_workflow_steps_due",
    "status = 'pending' AND due_at IS NOT NULL",
    workflow_steps.c.due_at,
    workflow_steps.c.id,
)
_partial("ix_workflow_steps_signal", "waits_for = 'signal'", workflow_steps.c.args_digest)
_partial(
    "ix_workflow_steps_approval", "waits_for = 'approval'", workflow_steps.c.ready_at, workflow_steps.c.id
)


workflow_events: Final = Table(
    "workflow_events",
    metadata,
    Column("workflow_id", _Id, ForeignKey("workflows.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Time, nullable=False),
    Column("type", Text, nullable=False),
    Column("step", Text),
    Column("item", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("actor", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("transition", Boolean, nullable=False),
    sqlite_with_rowid=False,
)
_partial(
    "uq_workflow_events_transition",
    "transition",
    workflow_events.c.workflow_id,
    workflow_events.c.step,
    workflow_events.c.item,
    workflow_events.c.attempt,
    workflow_events.c.type,
    unique=True,
)

executor: Final = Table(
    "executor",
    metadata,
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("owner", Text),
    Column("renewed_at", Time),
    Column("expires_at", Time),
)

commands: Final = Table(
    "commands",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("run_id", _Id),
    Column("ok", Boolean, nullable=False),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Time, nullable=False),
    Column("actor", Text, nullable=False, server_default=""),
    Index("ix_commands_at", "at"),
)

signals: Final = Table(
    "signals",
    metadata,
    Column("seq", _Counter, Identity(), primary_key=True),
    Column("id", _Id, nullable=False, unique=True),
    Column("run_id", _Id),
    Column("name", Text, nullable=False),
    Column("key", Text),
    Column("payload", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("used_at", Time),
    Column("expires_at", Time),
)
_partial("ix_signals_run", "used_at IS NULL AND run_id IS NOT NULL", signals.c.run_id, signals.c.seq)
_partial("ix_signals_key", "used_at IS NULL AND run_id IS NULL", signals.c.name, signals.c.key, signals.c.seq)
_partial("ix_signals_expiring", "expires_at IS NOT NULL", signals.c.expires_at)

votes: Final = Table(
    "votes",
    metadata,
    Column("id", _Counter, Identity(), primary_key=True),
    Column("workflow_id", _Id, ForeignKey("workflows.id"), nullable=False),
    Column("step", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("voter", Text, nullable=False),
    Column("approve", Boolean, nullable=False),
    Column("comment", Text, nullable=False),
    Column("form", Text, nullable=False),
    Column("at", Time, nullable=False),
    UniqueConstraint("workflow_id", "step", "attempt", "voter", name="uq_votes_voter"),
)

workers: Final = Table(
    "workers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("boot_id", Text, nullable=False),
    Column("seen_at", Time, nullable=False),
    Column("queues", Text, nullable=False),
    Column("holding", Text, nullable=False),
)

dead_letters: Final = Table(
    "dead_letters",
    metadata,
    Column("id", _Counter, Identity(), primary_key=True),
    Column("at", Time, nullable=False),
    Column("run_id", _Id),
    Column("message", Text, nullable=False),
    Column("error", Text, nullable=False),
)

notices: Final = Table(
    "notices",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("run_id", _Id, nullable=False),
    Column("step", Text),
    Column("attempt", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("recipient", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("next_at", Time, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("sent_at", Time),
    Column("error", Text),
    Column("reached", Text, nullable=False),
    _one_of("status", NoticeStatus),
)
_partial("ix_notices_waiting", "status = 'waiting'", notices.c.next_at, notices.c.id)
_partial("ix_notices_failed", "status = 'failed'", notices.c.created_at, notices.c.id)
Index("ix_notices_run", notices.c.run_id, notices.c.created_at)


def is_status(table: Table, *statuses: StrEnum) -> TextClause:
    """Compare with statuses written out: a partial index is not seen through a parameter."""
    words = ", ".join(f"'{status.value}'" for status in sorted(statuses))
    compared = f"= {words}" if len(statuses) == 1 else f"IN ({words})"
    return text(f"{table.name}.status {compared}")
