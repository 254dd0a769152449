"""Tables. Order by id everywhere; deletes are soft; 0 is stored as NULL in token columns."""

from typing import Any

import sqlalchemy as sa

from chatd.store.columns import BigId, Json, SafeText, UtcDateTime

__all__ = [
    "agent_context",
    "agent_links",
    "agents",
    "api_tokens",
    "audit_log",
    "chat_reader_groups",
    "chat_readers",
    "chats",
    "compaction_thresholds",
    "context_pins",
    "context_snapshots",
    "deployment_settings",
    "desktop_shares",
    "files",
    "heartbeats",
    "mcp_servers",
    "messages",
    "metadata",
    "model_configs",
    "pinned_context",
    "push_subscriptions",
    "queued_messages",
    "replicas",
    "requests",
    "secrets",
    "tool_calls",
    "user_group_members",
    "user_groups",
    "user_identities",
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


_Id = sa.Uuid
_Time = UtcDateTime
_Text = SafeText
_BigId = BigId


users = sa.Table(
    "users",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("name", _Text, nullable=False, unique=True),
    # admin | member
    sa.Column("role", _Text, nullable=False, server_default="member"),
    # Set: every token of the user's was revoked, and none is made.
    sa.Column("disabled_at", _Time),
    # Millionths of a dollar a period; absent: the installation's limit.
    sa.Column("spend_limit_micros", sa.BigInteger),
    # What this user wants every new chat to be told.
    sa.Column("prompt", _Text),
    sa.Column("created_at", _Time, nullable=False),
)

# Who a user is at a provider that people log in with: its issuer and subject, which it never gives to
# another; a name may change hands there.
user_identities = sa.Table(
    "user_identities",
    metadata,
    sa.Column("issuer", _Text, primary_key=True),
    sa.Column("subject", _Text, primary_key=True),
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    # The role came with a group there, and goes with it.
    sa.Column("is_admin_by_group", sa.Boolean, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.UniqueConstraint("user_id", "issuer"),
)

user_groups = sa.Table(
    "user_groups",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("name", _Text, nullable=False, unique=True),
    # For each member, a period; absent: none of the group's.
    sa.Column("spend_limit_micros", sa.BigInteger),
    sa.Column("created_at", _Time, nullable=False),
)

user_group_members = sa.Table(
    "user_group_members",
    metadata,
    sa.Column("group_id", _Id, sa.ForeignKey("user_groups.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("created_at", _Time, nullable=False),
)

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("owner_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("name", _Text, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.UniqueConstraint("owner_id", "name"),
)

# kind: api | session | login | agent. Only a SHA-256 of the token is kept.
api_tokens = sa.Table(
    "api_tokens",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("kind", _Text, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("agent_id", _Id, sa.ForeignKey("agents.id", ondelete="CASCADE")),
    # What its maker calls it; a session's: the browser.
    sa.Column("name", _Text),
    # Names of chatd.scopes; absent: all that the user may.
    sa.Column("scopes", Json),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("expires_at", _Time),
    # Within a minute.
    sa.Column("used_at", _Time),
    sa.Column("revoked_at", _Time),
)

# What matters for security, in order; rows are added and, once they are old, removed, never changed:
# triggers of the migration see to it. No keys: entries outlive what they tell of.
audit_log = sa.Table(
    "audit_log",
    metadata,
    sa.Column("id", _BigId, primary_key=True, autoincrement=True),
    sa.Column("at", _Time, nullable=False, index=True),
    sa.Column("action", _Text, nullable=False),
    sa.Column("actor_id", _Id),
    sa.Column("actor", _Text, nullable=False),
    sa.Column("target", _Text),
    sa.Column("remote", _Text),
    sa.Column("details", Json, nullable=False),
    sqlite_autoincrement=True,
)

model_configs = sa.Table(
    "chat_model_configs",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("provider", _Text, nullable=False),
    sa.Column("model", _Text, nullable=False),
    sa.Column("display_name", _Text, nullable=False),
    sa.Column("rehearsal", sa.Boolean, nullable=False),
    # Whether there is a key for it now; the default is what a chat falls back to.
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_at", _Time, nullable=False),
)

chats = sa.Table(
    "chats",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("owner_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("agent_id", _Id, sa.ForeignKey("agents.id", ondelete="SET NULL"), index=True),
    sa.Column("parent_chat_id", _Id, sa.ForeignKey("chats.id", ondelete="SET NULL"), index=True),
    sa.Column("root_chat_id", _Id, sa.ForeignKey("chats.id", ondelete="SET NULL"), index=True),
    sa.Column("last_model_config_id", _Id, sa.ForeignKey("chat_model_configs.id"), nullable=False),
    # What was chosen last; absent: as the model does by itself.
    sa.Column("last_reasoning_effort", _Text),
    # "<parent chat>/<message>/<tool call>": a repeated spawn finds its child instead of making another.
    sa.Column("spawn_key", _Text, unique=True),
    sa.Column("title", _Text, nullable=False),
    sa.Column("mode", _Text),
    sa.Column("plan_mode", _Text),
    sa.Column("client_type", _Text, nullable=False, server_default="api"),
    sa.Column("status", _Text, nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    # Positions count from 1 within an owner's unarchived chats; 0: not pinned.
    sa.Column("pin_order", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("labels", Json, nullable=False, server_default=sa.text("'{}'")),
    sa.Column("dynamic_tools", Json),
    # Ids of the deployment's MCP servers that were chosen; absent: those that are on by default.
    sa.Column("mcp_server_ids", Json),
    # The owner's read cursor: an id, no key, since reading must never wait for history.
    sa.Column("last_read_message_id", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("requires_action_deadline_at", _Time),
    sa.Column("compaction_requested_at", _Time),
    sa.Column("worker_id", _Id),
    sa.Column("runner_id", _Id),
    sa.Column("last_error", Json),
    sa.Column("retry_state", Json),
    sa.Column("snapshot_version", sa.BigInteger, nullable=False),
    sa.Column("history_version", sa.BigInteger, nullable=False),
    sa.Column("queue_version", sa.BigInteger, nullable=False),
    sa.Column("retry_state_version", sa.BigInteger, nullable=False),
    sa.Column("generation_attempt", sa.BigInteger, nullable=False),
    # The pin: these five are written together, by chatd.store.pins alone.
    # Absent hash: not pinned; the error then says why the first turn began without.
    sa.Column("context_aggregate_hash", sa.LargeBinary),
    sa.Column("context_pin_id", _Id, sa.ForeignKey("context_pins.id"), index=True),
    sa.Column("context_error", _Text),
    sa.Column("context_dirty_since", _Time),
    # Where the pinned files are: {os, directory}.
    sa.Column("context_environment", Json),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("updated_at", _Time, nullable=False),
    sa.Index("ix_chats_runnable", "archived", "status", "updated_at", "id"),
    # The order of the list of roots, read backwards: 50 of 100,000 are found without sorting.
    sa.Index("ix_chats_list_order", "owner_id", "parent_chat_id", "pin_order", "updated_at", "id"),
)

messages = sa.Table(
    "chat_messages",
    metadata,
    sa.Column("id", _BigId, primary_key=True, autoincrement=True),
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_by", _Id),
    sa.Column("model_config_id", _Id),
    sa.Column("reasoning_effort", _Text),
    sa.Column("role", _Text, nullable=False),
    sa.Column("content", Json, nullable=False),
    sa.Column("content_version", sa.SmallInteger, nullable=False),
    sa.Column("visibility", _Text, nullable=False),
    sa.Column("input_tokens", sa.BigInteger),
    sa.Column("output_tokens", sa.BigInteger),
    sa.Column("total_tokens", sa.BigInteger),
    sa.Column("reasoning_tokens", sa.BigInteger),
    sa.Column("cache_creation_tokens", sa.BigInteger),
    sa.Column("cache_read_tokens", sa.BigInteger),
    # Tokens of the window that the call had.
    sa.Column("context_limit", sa.BigInteger),
    # Cost in millionths of a dollar; absent when the model has no price.
    sa.Column("cost_micros", sa.BigInteger),
    sa.Column("compressed", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("deleted", sa.Boolean, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Index("ix_chat_messages_chat_id_id", "chat_id", "id"),
    sa.Index("ix_chat_messages_chat_id_revision", "chat_id", "revision"),
    sqlite_autoincrement=True,
)

# Model calls that are no step of a turn: titles, summaries, advice.
side_calls = sa.Table(
    "chat_side_calls",
    metadata,
    sa.Column("id", _BigId, primary_key=True, autoincrement=True),
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("purpose", _Text, nullable=False),
    sa.Column("provider", _Text, nullable=False),
    sa.Column("model", _Text, nullable=False),
    sa.Column("input_tokens", sa.BigInteger),
    sa.Column("output_tokens", sa.BigInteger),
    sa.Column("total_tokens", sa.BigInteger),
    sa.Column("reasoning_tokens", sa.BigInteger),
    sa.Column("cache_creation_tokens", sa.BigInteger),
    sa.Column("cache_read_tokens", sa.BigInteger),
    sa.Column("cost_micros", sa.BigInteger),
    sa.Column("created_at", _Time, nullable=False),
    sqlite_autoincrement=True,
)

queued_messages = sa.Table(
    "chat_queued_messages",
    metadata,
    sa.Column("id", _BigId, primary_key=True, autoincrement=True),
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_by", _Id, nullable=False),
    sa.Column("model_config_id", _Id),
    sa.Column("content", Json, nullable=False),
    # What it changes of its chat once its turn begins: chatd.wire.TurnChanges.
    sa.Column("changes", Json, nullable=False, server_default=sa.text("'{}'")),
    sa.Column("position", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    # Whether the turn under way takes it in before its next model call.
    sa.Column("steer", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_at", _Time, nullable=False),
    sa.Index("ix_chat_queued_messages_chat_id_position_id", "chat_id", "position", "id"),
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
    # The one chat it belongs to; none while an upload waits for its message.
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), index=True),
    # origin: tool | upload. Uploads are limited in number for each chat, the oldest go first.
    sa.Column("origin", _Text, nullable=False, server_default=sa.text("'tool'")),
    sa.Column("linked_at", _Time),
    sa.Column("name", _Text),
    sa.Column("media_type", _Text, nullable=False),
    sa.Column("bytes", sa.LargeBinary, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

# What each workspace pushed last; overwritten in place.
context_snapshots = sa.Table(
    "agent_context_snapshots",
    metadata,
    sa.Column("agent_id", _Id, sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    # Counts within one life of the daemon.
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("aggregate_hash", sa.LargeBinary, nullable=False),
    sa.Column("error", _Text),
    sa.Column("environment", Json, nullable=False),
    sa.Column("received_at", _Time, nullable=False),
    # The copy that chats pinned to this snapshot share, once there is one.
    sa.Column("pin_id", _Id, sa.ForeignKey("context_pins.id"), index=True),
)


def _resource_columns() -> list[sa.Column[Any]]:
    """What is kept of a resource, for an agent and for a chat alike."""
    return [
        sa.Column("source", _Text, primary_key=True),
        sa.Column("kind", _Text, nullable=False),
        sa.Column("status", _Text, nullable=False),
        sa.Column("content_hash", sa.LargeBinary, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("source_path", _Text),
        sa.Column("error", _Text),
        sa.Column("body", Json, nullable=False),
        sa.Column("created_at", _Time, nullable=False),
        sa.Column("updated_at", _Time, nullable=False),
    ]


agent_context = sa.Table(
    "agent_context_resources",
    metadata,
    sa.Column("agent_id", _Id, sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    *_resource_columns(),
)

# Copies of snapshots, never changed once made: chats that were pinned to the same one share it, so that a
# push to a thousand chats copies its bodies once. No key to agents: a pin outlives its workspace.
context_pins = sa.Table(
    "context_pins",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("agent_id", _Id, nullable=False, index=True),
    sa.Column("aggregate_hash", sa.LargeBinary, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

pinned_context = sa.Table(
    "context_pin_resources",
    metadata,
    sa.Column("pin_id", _Id, sa.ForeignKey("context_pins.id", ondelete="CASCADE"), primary_key=True),
    *_resource_columns(),
)

# Who may read a root chat and all below it besides its owner: users, and the members of groups.
chat_readers = sa.Table(
    "chat_readers",
    metadata,
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("created_at", _Time, nullable=False),
)

chat_reader_groups = sa.Table(
    "chat_reader_groups",
    metadata,
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), primary_key=True),
    sa.Column(
        "group_id", _Id, sa.ForeignKey("user_groups.id", ondelete="CASCADE"), primary_key=True, index=True
    ),
    sa.Column("created_at", _Time, nullable=False),
)

# Answers of requests that carried an Idempotency-Key, for their repetition.
requests = sa.Table(
    "chat_requests",
    metadata,
    sa.Column("owner_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("key", _Text, primary_key=True),
    # SHA-256 of what was asked: the same key with another request is a mistake.
    sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    sa.Column("answer", Json, nullable=False),
    sa.Column("created_at", _Time, nullable=False, index=True),
)

# Calls handed to a workspace: which boot of its daemon got which call. A call whose boot is gone has an
# unknown outcome and is never run again.
tool_calls = sa.Table(
    "chat_tool_calls",
    metadata,
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("call_key", _Text, primary_key=True),
    sa.Column("boot_id", _Text, nullable=False),
    sa.Column("started_at", _Time, nullable=False),
)

# Links by which anybody may watch a chat's desktop. The link itself is not kept: it is signed.
desktop_shares = sa.Table(
    "desktop_shares",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("chat_id", _Id, sa.ForeignKey("chats.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("created_by", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("expires_at", _Time, nullable=False),
    sa.Column("revoked_at", _Time),
    sa.Column("views", sa.BigInteger, nullable=False),
    sa.Column("last_viewed_at", _Time),
)

# At what percentage of a model's window a user's chats are summarised; absent: the model's own.
compaction_thresholds = sa.Table(
    "user_compaction_thresholds",
    metadata,
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    sa.Column(
        "model_config_id", _Id, sa.ForeignKey("chat_model_configs.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("threshold_percent", sa.SmallInteger, nullable=False),
)

# The model and effort that a user prefers, by where: root | general | explore.
model_overrides = sa.Table(
    "user_model_overrides",
    metadata,
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("context", _Text, primary_key=True),
    sa.Column(
        "model_config_id", _Id, sa.ForeignKey("chat_model_configs.id", ondelete="CASCADE"), nullable=False
    ),
    sa.Column("reasoning_effort", _Text),
)

# MCP servers of the whole deployment, for every chat.
mcp_servers = sa.Table(
    "mcp_servers",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("slug", _Text, nullable=False, unique=True),
    sa.Column("display_name", _Text, nullable=False),
    sa.Column("description", _Text, nullable=False),
    sa.Column("transport", _Text, nullable=False),
    sa.Column("url", _Text, nullable=False),
    sa.Column("header_names", Json, nullable=False),
    # Headers as JSON, sealed by chatd.sealing; absent: there are none.
    sa.Column("sealed_headers", sa.LargeBinary),
    sa.Column("tool_allow_list", Json, nullable=False),
    sa.Column("tool_deny_list", Json, nullable=False),
    # force_on | default_on | default_off
    sa.Column("availability", _Text, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("allow_in_plan_mode", sa.Boolean, nullable=False),
    sa.Column("call_timeout_s", sa.Float, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("updated_at", _Time, nullable=False),
)

# What people set for the deployment while it runs, by name; chatd.store.deployment knows the names.
deployment_settings = sa.Table(
    "deployment_settings",
    metadata,
    sa.Column("name", _Text, primary_key=True),
    sa.Column("value", Json, nullable=False),
    sa.Column("updated_at", _Time, nullable=False),
)

# Browsers that are told when a chat wants its owner.
push_subscriptions = sa.Table(
    "push_subscriptions",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("user_id", _Id, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("endpoint", _Text, nullable=False, unique=True),
    sa.Column("p256dh", _Text, nullable=False),
    sa.Column("auth", _Text, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

# Keys that sign what leaves this control plane and comes back.
secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("name", _Text, primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

# Processes that share the database. *beats* rises while one lives; *gone_at* is set by itself when it leaves,
# or by another that saw no beat for a while: its chats are free then, and it starts anew under another id.
replicas = sa.Table(
    "replicas",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("address", _Text, nullable=False),
    sa.Column("version", _Text, nullable=False),
    # SHA-256 of what it shows to the others.
    sa.Column("credential_hash", sa.LargeBinary, nullable=False),
    sa.Column("beats", sa.BigInteger, nullable=False),
    sa.Column("started_at", _Time, nullable=False),
    sa.Column("beat_at", _Time, nullable=False),
    sa.Column("gone_at", _Time),
)

# Which replica each workspace is linked to; the newest link wins.
agent_links = sa.Table(
    "agent_links",
    metadata,
    sa.Column("agent_id", _Id, sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column(
        "replica_id", _Id, sa.ForeignKey("replicas.id", ondelete="CASCADE"), nullable=False, index=True
    ),
    sa.Column("connection_id", _Id, nullable=False),
    sa.Column("boot_id", _Text, nullable=False),
    sa.Column("name", _Text, nullable=False),
    sa.Column("streams_url", _Text),
    sa.Column("pushes_context", sa.Boolean, nullable=False),
    sa.Column("connected_at", _Time, nullable=False),
)
