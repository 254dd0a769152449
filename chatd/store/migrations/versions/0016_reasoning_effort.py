"""How hard a model thinks: what was chosen, what a waiting message changes, what a person prefers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TABLE = "user_model_overrides"


def upgrade() -> None:
    with op.batch_alter_table("chats") as batch_op:
        batch_op.add_column(sa.Column("last_reasoning_effort", sa.Text(), nullable=True))
    with op.batch_alter_table("chat_messages") as batch_op:
        batch_op.add_column(sa.Column("reasoning_effort", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("context_limit", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("chat_queued_messages") as batch_op:
        batch_op.add_column(sa.Column("changes", JSON, nullable=False, server_default=sa.text("'{}'")))
    op.create_table(
        TABLE,
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("model_config_id", sa.Uuid(), nullable=False),
        sa.Column("reasoning_effort", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f"fk_{TABLE}_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["model_config_id"],
            ["chat_model_configs.id"],
            name=f"fk_{TABLE}_model_config_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "context", name=f"pk_{TABLE}"),
    )


def downgrade() -> None:
    op.drop_table(TABLE)
    for table, column in (
        ("chat_queued_messages", "changes"),
        ("chat_messages", "context_limit"),
        ("chat_messages", "reasoning_effort"),
        ("chats", "last_reasoning_effort"),
    ):
        with op.batch_alter_table(table) as batch_op:
            batch_op.drop_column(column)
