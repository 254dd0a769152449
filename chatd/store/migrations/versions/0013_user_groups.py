"""Groups of users: their spending limits, and chats shared with them."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "user_groups",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spend_limit_micros", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_user_groups"),
        sa.UniqueConstraint("name", name="uq_user_groups_name"),
    )
    _pairs("user_group_members", ("group_id", "user_groups"), ("user_id", "users"))
    _pairs("chat_reader_groups", ("chat_id", "chats"), ("group_id", "user_groups"))


def _pairs(table: str, *columns: tuple[str, str]) -> None:
    """A table of pairs, found from both sides."""
    names = [name for name, _ in columns]
    op.create_table(
        table,
        *(sa.Column(name, sa.Uuid(), nullable=False) for name in names),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        *(
            sa.ForeignKeyConstraint([name], [f"{other}.id"], name=f"fk_{table}_{name}", ondelete="CASCADE")
            for name, other in columns
        ),
        sa.PrimaryKeyConstraint(*names, name=f"pk_{table}"),
    )
    op.create_index(f"ix_{table}_{names[1]}", table, [names[1]])


def downgrade() -> None:
    for table in ("chat_reader_groups", "user_group_members", "user_groups"):
        op.drop_table(table)
