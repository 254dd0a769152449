"""Chats shared with other users, to read."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One table."""
    op.create_table(
        "chat_readers",
        sa.Column("chat_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["chat_id"], ["chats.id"], name="fk_chat_readers_chat_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_chat_readers_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("chat_id", "user_id", name="pk_chat_readers"),
    )
    op.create_index("ix_chat_readers_user_id", "chat_readers", ["user_id"])
