"""Waiting messages that are taken in by the turn under way."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("chat_queued_messages") as batch_op:
        batch_op.add_column(sa.Column("steer", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    with op.batch_alter_table("chat_queued_messages") as batch_op:
        batch_op.drop_column("steer")
