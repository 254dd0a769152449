"""MCP servers of the deployment, and which of them a chat chose."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "mcp_servers",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("header_names", JSON, nullable=False),
        sa.Column("sealed_headers", sa.LargeBinary(), nullable=True),
        sa.Column("tool_allow_list", JSON, nullable=False),
        sa.Column("tool_deny_list", JSON, nullable=False),
        sa.Column("availability", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("allow_in_plan_mode", sa.Boolean(), nullable=False),
        sa.Column("call_timeout_s", sa.Float(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mcp_servers")),
        sa.UniqueConstraint("slug", name=op.f("uq_mcp_servers_slug")),
    )
    with op.batch_alter_table("chats") as batch_op:
        batch_op.add_column(sa.Column("mcp_server_ids", JSON, nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("chats") as batch_op:
        batch_op.drop_column("mcp_server_ids")
    op.drop_table("mcp_servers")
