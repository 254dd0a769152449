"""What people set for the deployment while it runs, and each person's standing instructions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "deployment_settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", JSON, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_deployment_settings"),
    )
    with op.batch_alter_table("users") as batch_op:
        batch_op.add_column(sa.Column("prompt", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_table("deployment_settings")
    with op.batch_alter_table("users") as batch_op:
        batch_op.drop_column("prompt")
