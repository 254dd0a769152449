"""Processes that share the database, and which of them each workspace is linked to."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
phase = "pre"


def upgrade() -> None:
    op.create_table(
        "replicas",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("credential_hash", sa.LargeBinary(), nullable=False),
        sa.Column("beats", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("beat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_replicas"),
    )
    op.create_table(
        "agent_links",
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("replica_id", sa.Uuid(), nullable=False),
        sa.Column("connection_id", sa.Uuid(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("streams_url", sa.Text(), nullable=True),
        sa.Column("pushes_context", sa.Boolean(), nullable=False),
        sa.Column("connected_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_links_agent_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["replica_id"], ["replicas.id"], name="fk_agent_links_replica_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("agent_id", name="pk_agent_links"),
    )
    op.create_index("ix_agent_links_replica_id", "agent_links", ["replica_id"])


def downgrade() -> None:
    op.drop_table("agent_links")
    op.drop_table("replicas")
