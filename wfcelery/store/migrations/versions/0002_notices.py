"""What people are told of, who asked for what, and which gates wait."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from wfcelery.store.times import Time

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table of notices; requests that were answered before were asked by nobody we know."""
    op.add_column("commands", sa.Column("actor", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "notices",
        sa.Column("id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("step", sa.Text()),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at", Time(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("sent_at", Time()),
        sa.Column("error", sa.Text()),
        sa.Column("reached", sa.Text(), nullable=False),
        sa.CheckConstraint("status IN ('failed', 'sent', 'waiting')", name=op.f("ck_notices_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
    )
    waiting = sa.text("status = 'waiting'")
    op.create_index(
        "ix_notices_waiting",
        "notices",
        ["next_at", "id"],
        unique=False,
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    failed = sa.text("status = 'failed'")
    op.create_index(
        "ix_notices_failed",
        "notices",
        ["created_at", "id"],
        unique=False,
        sqlite_where=failed,
        postgresql_where=failed,
    )
    approval = sa.text("waits_for = 'approval'")
    op.create_index(
        "ix_workflow_steps_approval",
        "workflow_steps",
        ["ready_at", "id"],
        unique=False,
        sqlite_where=approval,
        postgresql_where=approval,
    )
    op.create_index("ix_notices_run", "notices", ["run_id", "created_at"], unique=False)
