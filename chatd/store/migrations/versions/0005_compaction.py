"""At what percentage of a model's window a user's chats are summarised."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "user_compaction_thresholds",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("model_config_id", sa.Uuid(), nullable=False),
        sa.Column("threshold_percent", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_config_id"],
            ["chat_model_configs.id"],
            name=op.f("fk_user_compaction_thresholds_model_config_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_user_compaction_thresholds_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "model_config_id", name=op.f("pk_user_compaction_thresholds")),
    )
