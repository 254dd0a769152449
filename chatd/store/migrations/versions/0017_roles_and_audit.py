"""Roles of users, names and scopes of tokens, and the audit log, which is only ever added to."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# Days for which nobody, not even housekeeping, can remove an entry by a statement.
KEPT_DAYS = 90

SQLITE = (
    (
        "CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log "
        "BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END"
    ),
    (
        "CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log "
        f"WHEN OLD.at > datetime('now', '-{KEPT_DAYS} days') "
        "BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END"
    ),
)
POSTGRESQL = (
    (
        "CREATE FUNCTION audit_log_guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP = 'DELETE' AND OLD.at <= now() - interval '{KEPT_DAYS} days' THEN RETURN OLD; END IF; "
        "RAISE EXCEPTION 'the audit log is only added to'; END $$"
    ),
    (
        "CREATE TRIGGER audit_log_guard BEFORE UPDATE OR DELETE ON audit_log "
        "FOR EACH ROW EXECUTE FUNCTION audit_log_guard()"
    ),
    (
        "CREATE FUNCTION audit_log_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'the audit log is only added to'; END $$"
    ),
    (
        "CREATE TRIGGER audit_log_refuse BEFORE TRUNCATE ON audit_log "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_log_refuse()"
    ),
)


def upgrade() -> None:
    op.add_column("users", sa.Column("role", sa.Text(), nullable=False, server_default="member"))
    op.add_column("users", sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("api_tokens", sa.Column("name", sa.Text(), nullable=True))
    json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
    op.add_column("api_tokens", sa.Column("scopes", json, nullable=True))
    op.create_index("ix_api_tokens_user_id", "api_tokens", ["user_id"])
    op.create_table(
        "audit_log",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("remote", sa.Text(), nullable=True),
        sa.Column("details", json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_at", "audit_log", ["at"])
    for statement in SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("audit_log")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_log_guard()")
        op.execute("DROP FUNCTION audit_log_refuse()")
    op.drop_index("ix_api_tokens_user_id", "api_tokens")
    op.drop_column("api_tokens", "scopes")
    op.drop_column("api_tokens", "name")
    op.drop_column("users", "disabled_at")
    op.drop_column("users", "role")
