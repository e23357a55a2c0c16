"""The first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from wfcelery.store.times import Time

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TRIGGERS = {
    "postgresql": (
        (
            "CREATE FUNCTION workflow_steps_end_once() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "BEGIN RAISE EXCEPTION 'workflow_steps: an attempt that has ended never changes'; END"
            " $$"
        ),
        (
            "CREATE TRIGGER workflow_steps_end_once BEFORE UPDATE OF status, result, error, "
            "completed_at, attempt ON workflow_steps FOR EACH ROW WHEN ((OLD.status IN ('done', "
            "'failed', 'skipped', 'cancelled')) AND (NEW.status IS DISTINCT FROM OLD.status OR "
            "NEW.result IS DISTINCT FROM OLD.result OR NEW.error IS DISTINCT FROM OLD.error OR "
            "NEW.completed_at IS DISTINCT FROM OLD.completed_at OR NEW.attempt IS DISTINCT FROM "
            "OLD.attempt)) EXECUTE FUNCTION workflow_steps_end_once()"
        ),
        (
            "CREATE FUNCTION workflow_events_are_appended() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'workflow_events: history is never rewritten'; END $$"
        ),
        (
            "CREATE TRIGGER workflow_events_are_appended BEFORE UPDATE OF seq, at, type, step, "
            "item, attempt, actor, data, transition ON workflow_events FOR EACH ROW WHEN (NEW.seq"
            " IS DISTINCT FROM OLD.seq OR NEW.at IS DISTINCT FROM OLD.at OR NEW.type IS DISTINCT "
            "FROM OLD.type OR NEW.step IS DISTINCT FROM OLD.step OR NEW.item IS DISTINCT FROM "
            "OLD.item OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.actor IS DISTINCT FROM "
            "OLD.actor OR NEW.data IS DISTINCT FROM OLD.data OR NEW.transition IS DISTINCT FROM "
            "OLD.transition) EXECUTE FUNCTION workflow_events_are_appended()"
        ),
        (
            "CREATE FUNCTION workflow_definitions_are_fixed() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'workflow_definitions: a definition never changes; define "
            "a new version'; END $$"
        ),
        (
            "CREATE TRIGGER workflow_definitions_are_fixed BEFORE UPDATE OF id, name, version, "
            "document, pins, depth ON workflow_definitions FOR EACH ROW WHEN (NEW.id IS DISTINCT "
            "FROM OLD.id OR NEW.name IS DISTINCT FROM OLD.name OR NEW.version IS DISTINCT FROM "
            "OLD.version OR NEW.document IS DISTINCT FROM OLD.document OR NEW.pins IS DISTINCT "
            "FROM OLD.pins OR NEW.depth IS DISTINCT FROM OLD.depth) EXECUTE FUNCTION "
            "workflow_definitions_are_fixed()"
        ),
    ),
    "sqlite": (
        (
            "CREATE TRIGGER workflow_steps_end_once BEFORE UPDATE OF status, result, error, "
            "completed_at, attempt ON workflow_steps WHEN (OLD.status IN ('done', 'failed', "
            "'skipped', 'cancelled')) AND (NEW.status IS NOT OLD.status OR NEW.result IS NOT "
            "OLD.result OR NEW.error IS NOT OLD.error OR NEW.completed_at IS NOT OLD.completed_at"
            " OR NEW.attempt IS NOT OLD.attempt) BEGIN SELECT RAISE(ABORT, 'workflow_steps: an "
            "attempt that has ended never changes'); END"
        ),
        (
            "CREATE TRIGGER workflow_events_are_appended BEFORE UPDATE OF seq, at, type, step, "
            "item, attempt, actor, data, transition ON workflow_events WHEN NEW.seq IS NOT "
            "OLD.seq OR NEW.at IS NOT OLD.at OR NEW.type IS NOT OLD.type OR NEW.step IS NOT "
            "OLD.step OR NEW.item IS NOT OLD.item OR NEW.attempt IS NOT OLD.attempt OR NEW.actor "
            "IS NOT OLD.actor OR NEW.data IS NOT OLD.data OR NEW.transition IS NOT OLD.transition"
            " BEGIN SELECT RAISE(ABORT, 'workflow_events: history is never rewritten'); END"
        ),
        (
            "CREATE TRIGGER workflow_definitions_are_fixed BEFORE UPDATE OF id, name, version, "
            "document, pins, depth ON workflow_definitions WHEN NEW.id IS NOT OLD.id OR NEW.name "
            "IS NOT OLD.name OR NEW.version IS NOT OLD.version OR NEW.document IS NOT "
            "OLD.document OR NEW.pins IS NOT OLD.pins OR NEW.depth IS NOT OLD.depth BEGIN SELECT "
            "RAISE(ABORT, 'workflow_definitions: a definition never changes; define a new "
            "version'); END"
        ),
    ),
}


def where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    _create_commands()
    _create_dead_letters()
    _create_executor()
    _create_signals()
    _create_workers()
    _create_workflow_definitions()
    _create_workflows()
    _create_votes()
    _create_workflow_events()
    _create_workflow_steps()
    for statement in TRIGGERS[op.get_bind().dialect.name]:
        op.execute(statement)


def _create_commands() -> None:
    op.create_table(
        "commands",
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("run_id", ID),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at", Time(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commands")),
    )
    op.create_index("ix_commands_at", "commands", ["at"], unique=False)


def _create_dead_letters() -> None:
    op.create_table(
        "dead_letters",
        sa.Column("id", COUNTER, sa.Identity(always=False), nullable=False),
        sa.Column("at", Time(), nullable=False),
        sa.Column("run_id", ID),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
    )


def _create_executor() -> None:
    op.create_table(
        "executor",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("renewed_at", Time()),
        sa.Column("expires_at", Time()),
        sa.PrimaryKeyConstraint("shard", name=op.f("pk_executor")),
    )


def _create_signals() -> None:
    op.create_table(
        "signals",
        sa.Column("seq", COUNTER, sa.Identity(always=False), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("run_id", ID),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("used_at", Time()),
        sa.Column("expires_at", Time()),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_signals")),
        sa.UniqueConstraint("id", name=op.f("uq_signals_id")),
    )
    op.create_index(
        "ix_signals_expiring", "signals", ["expires_at"], unique=False, **where("expires_at IS NOT NULL")
    )
    op.create_index(
        "ix_signals_key",
        "signals",
        ["name", "key", "seq"],
        unique=False,
        **where("used_at IS NULL AND run_id IS NULL"),
    )
    op.create_index(
        "ix_signals_run",
        "signals",
        ["run_id", "seq"],
        unique=False,
        **where("used_at IS NULL AND run_id IS NOT NULL"),
    )


def _create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("seen_at", Time(), nullable=False),
        sa.Column("queues", sa.Text(), nullable=False),
        sa.Column("holding", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )


def _create_workflow_definitions() -> None:
    op.create_table(
        "workflow_definitions",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("pins", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("deleted_at", Time()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflow_definitions")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_workflow_definitions_name_version")),
    )


def _create_workflows() -> None:
    op.create_table(
        "workflows",
        sa.Column("id", ID, nullable=False),
        sa.Column("definition_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("key_space", sa.Text()),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("root_id", ID, nullable=False),
        sa.Column("parent_run_id", ID),
        sa.Column("parent_step", sa.Text()),
        sa.Column("parent_item", sa.Integer()),
        sa.Column("parent_attempt", sa.Integer()),
        sa.Column("parent_fence", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.Column("last_done", sa.Text()),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("updated_at", Time(), nullable=False),
        sa.Column("completed_at", Time()),
        sa.Column("cancelled_at", Time()),
        sa.Column("output_digest", sa.Text()),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("output", sa.Text()),
        sa.CheckConstraint(
            "status IN ('cancelled', 'completed', 'failed', 'paused', 'running')",
            name=op.f("ck_workflows_status"),
        ),
        sa.ForeignKeyConstraint(
            ["definition_id"], ["workflow_definitions.id"], name=op.f("fk_workflows_definition_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflows")),
    )
    op.create_index("ix_workflows_created", "workflows", ["created_at", "id"], unique=False)
    op.create_index(
        "ix_workflows_key", "workflows", ["key", "created_at", "id"], unique=False, **where("key IS NOT NULL")
    )
    op.create_index("ix_workflows_name", "workflows", ["name", "created_at", "id"], unique=False)
    op.create_index("ix_workflows_root", "workflows", ["root_id"], unique=False)
    op.create_index("ix_workflows_status", "workflows", ["status", "created_at", "id"], unique=False)
    op.create_index(
        "uq_workflows_live_key",
        "workflows",
        ["key_space", "key"],
        unique=True,
        **where("status IN ('paused', 'running') AND key_space IS NOT NULL"),
    )


def _create_votes() -> None:
    op.create_table(
        "votes",
        sa.Column("id", COUNTER, sa.Identity(always=False), nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("voter", sa.Text(), nullable=False),
        sa.Column("approve", sa.Boolean(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("at", Time(), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_votes_workflow_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_votes")),
        sa.UniqueConstraint("workflow_id", "step", "attempt", "voter", name="uq_votes_voter"),
    )


def _create_workflow_events() -> None:
    op.create_table(
        "workflow_events",
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", Time(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("step", sa.Text()),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("transition", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflows.id"], name=op.f("fk_workflow_events_workflow_id")
        ),
        sa.PrimaryKeyConstraint("workflow_id", "seq", name=op.f("pk_workflow_events")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "uq_workflow_events_transition",
        "workflow_events",
        ["workflow_id", "step", "item", "attempt", "type"],
        unique=True,
        **where("transition"),
    )


def _create_workflow_steps() -> None:
    op.create_table(
        "workflow_steps",
        sa.Column("id", ID, nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text()),
        sa.Column("waits_for", sa.Text()),
        sa.Column("missing", sa.Integer(), nullable=False),
        sa.Column("live", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("escalated", sa.Boolean(), nullable=False),
        sa.Column("took", sa.Text()),
        sa.Column("ready_at", Time()),
        sa.Column("due_at", Time()),
        sa.Column("sent_at", Time()),
        sa.Column("started_at", Time()),
        sa.Column("heartbeat_at", Time()),
        sa.Column("completed_at", Time()),
        sa.Column("worker", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("args_digest", sa.Text()),
        sa.Column("result_digest", sa.Text()),
        sa.Column("args", sa.Text()),
        sa.Column("secrets", sa.Text()),
        sa.Column("result", sa.Text()),
        sa.CheckConstraint(
            "status IN ('cancelled', 'done', 'failed', 'pending', 'ready', 'running', 'skipped')",
            name=op.f("ck_workflow_steps_status"),
        ),
        sa.CheckConstraint(
            "waits_for IN ('approval', 'flow', 'items', 'join', 'person', "
            "'report', 'retry', 'signal', 'time')",
            name=op.f("ck_workflow_steps_waits_for"),
        ),
        sa.CheckConstraint("attempt >= 1", name=op.f("ck_workflow_steps_attempt")),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflows.id"], name=op.f("fk_workflow_steps_workflow_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflow_steps")),
        sa.UniqueConstraint("workflow_id", "item", "name", "attempt", name="uq_workflow_steps_attempt"),
    )
    op.create_index(
        "ix_workflow_steps_due",
        "workflow_steps",
        ["due_at", "id"],
        unique=False,
        **where("status = 'pending' AND due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_workflow_steps_ready",
        "workflow_steps",
        ["ready_at", "id"],
        unique=False,
        **where("status = 'ready'"),
    )
    op.create_index(
        "ix_workflow_steps_running",
        "workflow_steps",
        ["sent_at", "id"],
        unique=False,
        **where("status = 'running'"),
    )
    op.create_index(
        "ix_workflow_steps_signal",
        "workflow_steps",
        ["args_digest"],
        unique=False,
        **where("waits_for = 'signal'"),
    )
