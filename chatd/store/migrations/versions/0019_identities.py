"""Who users are at the provider that they log in with."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
phase = "pre"


def upgrade() -> None:
    op.create_table(
        "user_identities",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("is_admin_by_group", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_user_identities_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("issuer", "subject", name="pk_user_identities"),
        sa.UniqueConstraint("user_id", "issuer", name="uq_user_identities_user_id_issuer"),
    )


def downgrade() -> None:
    op.drop_table("user_identities")
