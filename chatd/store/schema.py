"""Tables. Order by id everywhere; deletes are soft; 0 is stored as NULL in token columns."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

__all__ = [
    "UtcDateTime",
    "agents",
    "api_tokens",
    "chats",
    "files",
    "heartbeats",
    "messages",
    "metadata",
    "model_configs",
    "queued_messages",
    "tool_calls",
    "users",
]

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = sa.MetaData(naming_convention=NAMING)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """An aware UTC instant; SQLite keeps no zone, so it is put back on reading."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ANN401, ARG002
        """Store UTC; a naive time is a bug."""
        if value is None:
            return None
        if value.tzinfo is None:
            msg = "a stored time must be aware"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ANN401, ARG002
        """Read as aware UTC."""
        if value is None or value.tzinfo is not None:
            return value
        return value.replace(tzinfo=UTC)


_Id = sa.Uuid
_Time = UtcDateTime
# SQLite gives row ids only to INTEGER keys.
_BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")


users = sa.Table(
    "users",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", _Time, nullable=False),
)

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("owner_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.UniqueConstraint("owner_id", "name"),
)

# kind: api | session | login | agent. Only a SHA-256 of the token is kept.
api_tokens = sa.Table(
    "api_tokens",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    sa.Column("agent_id", _Id, sa.ForeignKey("agents.id", ondelete="CASCADE")),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("expires_at", _Time),
    sa.Column("used_at", _Time),
    sa.Column("revoked_at", _Time),
)

model_configs = sa.Table(
    "chat_model_configs",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("display_name", sa.Text, nullable=False),
    sa.Column("rehearsal", sa.Boolean, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

chats = sa.Table(
    "chats",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("owner_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("agent_id", _Id, sa.ForeignKey("agents.id", ondelete="SET NULL")),
    sa.Column("parent_chat_id", _Id, sa.ForeignKey("chats.id", ondelete="SET NULL"), index=True),
    sa.Column("root_chat_id", _Id, sa.ForeignKey("chats.id", ondelete="SET NULL"), index=True),
    sa.Column("last_model_config_id", _Id, sa.ForeignKey("chat_model_configs.id"), nullable=False),
    # "<parent chat>/<message>/<tool call>": a repeated spawn finds its child instead of making another.
    sa.Column("spawn_key", sa.Text, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("mode", sa.Text),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("worker_id", _Id),
    sa.Column("runner_id", _Id),
    sa.Column("last_error", sa.JSON(none_as_null=True)),
    sa.Column("retry_state", sa.JSON(none_as_null=True)),
    sa.Column("snapshot_version", sa.BigInteger, nullable=False),
    sa.Column("history_version", sa.BigInteger, nullable=False),
    sa.Column("queue_version", sa.BigInteger, nullable=False),
    sa.Column("retry_state_version", sa.BigInteger, nullable=False),
    sa.Column("generation_attempt", sa.BigInteger, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("updated_at", _Time, nullable=False),
    sa.Index("ix_chats_runnable", "archived", "status", "updated_at", "id"),
)

messages = sa.Table(
    "chat_messages",
    metadata,
    sa.Column("id", _BigId, primary_key=True, autoincrement=True),
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_by", _Id),
    sa.Column("model_config_id", _Id),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("content", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("content_version", sa.SmallInteger, nullable=False),
    sa.Column("visibility", sa.Text, nullable=False),
    sa.Column("input_tokens", sa.BigInteger),
    sa.Column("output_tokens", sa.BigInteger),
    sa.Column("total_tokens", sa.BigInteger),
    sa.Column("reasoning_tokens", sa.BigInteger),
    sa.Column("cache_creation_tokens", sa.BigInteger),
    sa.Column("cache_read_tokens", sa.BigInteger),
    sa.Column("deleted", sa.Boolean, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Index("ix_chat_messages_chat_id_id", "chat_id", "id"),
    sa.Index("ix_chat_messages_chat_id_revision", "chat_id", "revision"),
    sqlite_autoincrement=True,
)

queued_messages = sa.Table(
    "chat_queued_messages",
    metadata,
    sa.Column("id", _BigId, primary_key=True, autoincrement=True),
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_by", _Id, nullable=False),
    sa.Column("content", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Index("ix_chat_queued_messages_chat_id_id", "chat_id", "id"),
    sqlite_autoincrement=True,
)

heartbeats = sa.Table(
    "chat_heartbeats",
    metadata,
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("runner_id", _Id, primary_key=True),
    sa.Column("heartbeat_at", _Time, nullable=False, index=True),
)

files = sa.Table(
    "chat_files",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("owner_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("name", sa.Text),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("bytes", sa.LargeBinary, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

# Calls handed to a workspace: which boot of its daemon got which call. A call whose boot is gone has an
# unknown outcome and is never run again.
tool_calls = sa.Table(
    "chat_tool_calls",
    metadata,
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("call_key", sa.Text, primary_key=True),
    sa.Column("boot_id", sa.Text, nullable=False),
    sa.Column("started_at", _Time, nullable=False),
)
