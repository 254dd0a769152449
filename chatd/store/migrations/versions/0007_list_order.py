"""The order of the list of chats as an index."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One index in place of another."""
    columns = ["owner_id", "parent_chat_id", "pin_order", "updated_at", "id"]
    op.create_index("ix_chats_list_order", "chats", columns)
    op.drop_index("ix_chats_list", "chats")
