"""Pins, labels, read cursors, clients' tools, uploads, costs, limits and repeated requests."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("users", sa.Column("spend_limit_micros", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("chat_model_configs") as batch_op:
        batch_op.add_column(sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False))
        batch_op.add_column(sa.Column("is_default", sa.Boolean(), server_default=sa.false(), nullable=False))
    with op.batch_alter_table("chats") as batch_op:
        batch_op.add_column(sa.Column("pin_order", sa.Integer(), server_default=sa.text("0"), nullable=False))
        batch_op.add_column(sa.Column("labels", JSON, server_default=sa.text("'{}'"), nullable=False))
        batch_op.add_column(sa.Column("dynamic_tools", JSON, nullable=True))
        batch_op.add_column(
            sa.Column("last_read_message_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
        )
        batch_op.add_column(sa.Column("requires_action_deadline_at", TIME, nullable=True))
        batch_op.add_column(sa.Column("compaction_requested_at", TIME, nullable=True))
        batch_op.create_index(
            "ix_chats_list", ["owner_id", "archived", "pin_order", "updated_at", "id"], unique=False
        )
    with op.batch_alter_table("chat_messages") as batch_op:
        batch_op.add_column(sa.Column("cost_micros", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("compressed", sa.Boolean(), server_default=sa.false(), nullable=False))
    with op.batch_alter_table("chat_queued_messages") as batch_op:
        batch_op.add_column(sa.Column("model_config_id", sa.Uuid(), nullable=True))
        batch_op.add_column(
            sa.Column("position", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
        )
        batch_op.drop_index("ix_chat_queued_messages_chat_id_id")
        batch_op.create_index(
            "ix_chat_queued_messages_chat_id_position_id", ["chat_id", "position", "id"], unique=False
        )
    # Those that wait already keep their order.
    op.execute("UPDATE chat_queued_messages SET position = id")
    with op.batch_alter_table("chat_files") as batch_op:
        batch_op.alter_column("chat_id", existing_type=sa.Uuid(), nullable=True)
        batch_op.add_column(sa.Column("origin", sa.Text(), server_default=sa.text("'tool'"), nullable=False))
        batch_op.add_column(sa.Column("linked_at", TIME, nullable=True))
    op.create_table(
        "chat_requests",
        sa.Column("owner_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("answer", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_chat_requests_owner_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("owner_id", "key", name=op.f("pk_chat_requests")),
    )
    op.create_index(op.f("ix_chat_requests_created_at"), "chat_requests", ["created_at"], unique=False)


def downgrade() -> None:
    op.drop_table("chat_requests")
    # Uploads that wait for their message have no place in the earlier schema.
    op.execute("DELETE FROM chat_files WHERE chat_id IS NULL")
    with op.batch_alter_table("chat_files") as batch_op:
        batch_op.drop_column("linked_at")
        batch_op.drop_column("origin")
        batch_op.alter_column("chat_id", existing_type=sa.Uuid(), nullable=False)
    with op.batch_alter_table("chat_queued_messages") as batch_op:
        batch_op.drop_index("ix_chat_queued_messages_chat_id_position_id")
        batch_op.create_index("ix_chat_queued_messages_chat_id_id", ["chat_id", "id"], unique=False)
        batch_op.drop_column("position")
        batch_op.drop_column("model_config_id")
    with op.batch_alter_table("chat_messages") as batch_op:
        batch_op.drop_column("compressed")
        batch_op.drop_column("cost_micros")
    with op.batch_alter_table("chats") as batch_op:
        batch_op.drop_index("ix_chats_list")
        for name in (
            "compaction_requested_at",
            "requires_action_deadline_at",
            "last_read_message_id",
            "dynamic_tools",
            "labels",
            "pin_order",
        ):
            batch_op.drop_column(name)
    with op.batch_alter_table("chat_model_configs") as batch_op:
        batch_op.drop_column("is_default")
        batch_op.drop_column("enabled")
    op.drop_column("users", "spend_limit_micros")
