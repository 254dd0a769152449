"""What workspaces push of their instructions and skills, and what chats are pinned to."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "context_pins",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("aggregate_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_context_pins")),
    )
    op.create_index(op.f("ix_context_pins_agent_id"), "context_pins", ["agent_id"], unique=False)
    op.create_table(
        "agent_context_snapshots",
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("aggregate_hash", sa.LargeBinary(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("environment", JSON, nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.Column("pin_id", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["pin_id"], ["context_pins.id"], name=op.f("fk_agent_context_snapshots_pin_id")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name=op.f("fk_agent_context_snapshots_agent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_agent_context_snapshots")),
    )
    op.create_index(
        op.f("ix_agent_context_snapshots_pin_id"), "agent_context_snapshots", ["pin_id"], unique=False
    )
    _create_resources("agent_context_resources", "agent_id", "agents")
    _create_resources("context_pin_resources", "pin_id", "context_pins")
    with op.batch_alter_table("chats") as batch_op:
        batch_op.add_column(sa.Column("context_aggregate_hash", sa.LargeBinary(), nullable=True))
        batch_op.add_column(sa.Column("context_pin_id", sa.Uuid(), nullable=True))
        batch_op.create_foreign_key(
            op.f("fk_chats_context_pin_id"), "context_pins", ["context_pin_id"], ["id"]
        )
        batch_op.create_index(op.f("ix_chats_context_pin_id"), ["context_pin_id"], unique=False)
        batch_op.add_column(sa.Column("context_error", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("context_dirty_since", TIME, nullable=True))
        batch_op.add_column(sa.Column("context_environment", JSON, nullable=True))
        batch_op.create_index(op.f("ix_chats_agent_id"), ["agent_id"], unique=False)


def _create_resources(table: str, owner: str, owners: str) -> None:
    columns: list[Any] = [
        sa.Column(owner, sa.Uuid(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("source_path", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("body", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            [owner], [f"{owners}.id"], name=op.f(f"fk_{table}_{owner}"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(owner, "source", name=op.f(f"pk_{table}")),
    ]
    op.create_table(table, *columns)
