"""Rows to values and back; the only place where stored JSON becomes parts."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

import sqlalchemy as sa

from chatd.context_wire import ChatContext
from chatd.errors import Misuse
from chatd.model_wire import ReasoningEffort
from chatd.store.legacy import read_legacy
from chatd.wire import (
    Chat,
    ChatError,
    ChatStatus,
    Message,
    Part,
    QueuedMessage,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    TurnChanges,
    Usage,
    Visibility,
    part_list_adapter,
)

__all__ = [
    "CONTENT_VERSION",
    "NewFile",
    "NewMessage",
    "chat_from_row",
    "dump_parts",
    "is_clients",
    "message_from_row",
    "message_values",
    "notice_message",
    "open_calls",
    "public_message",
    "public_queued",
    "queued_from_row",
    "read_content",
    "without_internals",
]

# 1: a JSON array of chatd.wire parts.
CONTENT_VERSION = 1
_STATUSES = frozenset(get_args(ChatStatus))
USAGE_COLUMNS = tuple(Usage.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """Bytes that a message refers to; stored in the message's own transaction."""

    id: UUID
    media_type: str
    data: bytes
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to be inserted."""

    role: Role
    content: tuple[Part, ...]
    visibility: Visibility = "both"
    created_by: UUID | None = None
    model_config_id: UUID | None = None
    reasoning_effort: ReasoningEffort | None = None
    usage: Usage | None = None
    files: tuple[NewFile, ...] = field(default=())
    compressed: bool = False
    cost_micros: int | None = None


def notice_message(text: str, *, metadata: dict[str, Any] | None = None) -> NewMessage:
    """What people read in the chat, and its model does not."""
    told = TextPart(text=text, provider_metadata=metadata)
    return NewMessage(role="assistant", content=(told,), visibility="user")


def stamped(part: Part, now: datetime) -> Part:
    """*part* with the times that it should tell and does not: it was made by us, just now."""
    match part:
        case ReasoningPart(created_at=None):
            return part.model_copy(update={"created_at": now, "completed_at": now})
        case ToolCallPart(created_at=None) | ToolResultPart(created_at=None):
            return part.model_copy(update={"created_at": now})
        case _:
            return part


def dump_parts(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Parts as stored: absent fields are left out."""
    return [part.model_dump(mode="json", exclude_none=True) for part in parts]


def message_values(message: NewMessage, *, chat_id: UUID, revision: int, now: datetime) -> dict[str, Any]:
    """Column values of a new message row."""
    usage = (message.usage or Usage()).model_dump()
    return {
        "chat_id": chat_id,
        "created_by": message.created_by,
        "model_config_id": message.model_config_id,
        "reasoning_effort": message.reasoning_effort,
        "role": message.role,
        "content": dump_parts(stamped(part, now) for part in message.content),
        "content_version": CONTENT_VERSION,
        "visibility": message.visibility,
        "compressed": message.compressed,
        "cost_micros": message.cost_micros or None,
        "deleted": False,
        "revision": revision,
        "created_at": now,
        **{name: usage[name] or None for name in USAGE_COLUMNS},
    }


def chat_from_row(
    row: sa.RowMapping,
    *,
    children: tuple[Chat, ...] = (),
    has_unread: bool = False,
    is_shared: bool = False,
) -> Chat:
    """A ``chats`` row as it goes to clients."""
    status, error = row["status"], row["last_error"]
    if status not in _STATUSES:
        # Of another version, or set by hand: the chat must be seen to be repaired.
        status, error = (
            "error",
            {"message": f"This chat is in no valid state ({status}); reconcile-invalid repairs it."},
        )
    return Chat(
        id=row["id"],
        owner_id=row["owner_id"],
        title=row["title"],
        status=status,
        mode=row["mode"],
        plan_mode=row["plan_mode"],
        client_type=row["client_type"],
        parent_chat_id=row["parent_chat_id"],
        root_chat_id=row["root_chat_id"] or row["id"],
        last_model_config_id=row["last_model_config_id"],
        last_reasoning_effort=row["last_reasoning_effort"],
        agent_id=row["agent_id"],
        last_error=None if error is None else ChatError.model_validate(error),
        archived=row["archived"],
        context=_context(row),
        pin_order=row["pin_order"],
        labels=row["labels"],
        mcp_server_ids=row["mcp_server_ids"],
        has_unread=has_unread,
        shared=is_shared,
        queued_for_capacity=status == "running" and row["worker_id"] is None,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        children=children,
    )


def _context(row: sa.RowMapping) -> ChatContext | None:
    """What the row tells of the pin; nothing where there is neither a pin nor a reason for none."""
    is_pinned = bool(row["context_aggregate_hash"])
    if not is_pinned and row["context_error"] is None:
        return None
    return ChatContext(
        pinned=is_pinned,
        dirty=row["context_dirty_since"] is not None,
        dirty_since=row["context_dirty_since"],
        error=row["context_error"],
    )


def message_from_row(row: sa.RowMapping) -> Message:
    """A ``chat_messages`` row, whole: for the model. See ``without_internals`` for clients."""
    usage = Usage(**{name: row[name] for name in USAGE_COLUMNS})
    return Message(
        id=row["id"],
        chat_id=row["chat_id"],
        role=row["role"],
        content=read_content(row["content"], row["content_version"], row["role"]),
        visibility=row["visibility"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        usage=None if usage == Usage() else usage,
        model_config_id=row["model_config_id"],
        reasoning_effort=row["reasoning_effort"],
    )


def read_content(content: Any, version: int, role: Role) -> tuple[Part, ...]:  # noqa: ANN401 -- stored JSON
    """
    Stored content as parts, whichever version wrote it.

    Raises:
        Misuse: a version that we don't know: written by a newer chatd.
    """
    if content is None or content == "":
        return ()
    if version == CONTENT_VERSION:
        return part_list_adapter.validate_python(content)
    if version == 0:
        return read_legacy(content, role)
    raise Misuse(f"content version {version} is not known to this chatd; run the newer one")


def queued_from_row(row: sa.RowMapping) -> QueuedMessage:
    """A ``chat_queued_messages`` row."""
    return QueuedMessage(
        id=row["id"],
        chat_id=row["chat_id"],
        content=part_list_adapter.validate_python(row["content"]),
        model_config_id=row["model_config_id"],
        changes=TurnChanges.model_validate(row["changes"]),
        steer=row["steer"],
        created_at=row["created_at"],
    )


# Fields that no client sees.
_INTERNAL = frozenset(
    {
        "provider_metadata",
        "data",
        "context_file_content",
        "context_file_os",
        "context_file_directory",
        "skill_dir",
        "context_file_skill_meta_file",
    }
)


def public_message(message: Message) -> Message:
    """A message as clients see it."""
    return message.model_copy(update={"content": tuple(map(without_internals, message.content))})


def public_queued(queued: QueuedMessage) -> QueuedMessage:
    """A waiting message as clients see it."""
    return queued.model_copy(update={"content": tuple(map(without_internals, queued.content))})


def without_internals(part: Part) -> Part:
    """
    The leak rule: what a client may see of *part*.

    Vendor metadata stays inside, bytes that a file id stands for, and what of the
    workspace's context is for the model.
    """
    if part.type == "file" and not part.file_id:
        return part
    hidden = dict.fromkeys(_INTERNAL & type(part).model_fields.keys())
    part = part.model_copy(update=hidden)
    if isinstance(part, ToolResultPart) and part.is_media and isinstance(part.result, dict):
        slim = {key: value for key, value in part.result.items() if key != "data"}
        return part.model_copy(update={"result": slim})
    return part


def open_calls(messages: Sequence[Message]) -> list[ToolCallPart]:
    """Local calls of the last assistant message of *messages* (oldest first) that nothing answered."""
    answered: set[str] = set()
    for message in reversed(messages):
        answered |= {part.tool_call_id for part in message.content if isinstance(part, ToolResultPart)}
        if message.role == "assistant":
            return [call for call in local_calls(message.content) if call.tool_call_id not in answered]
    return []


def is_clients(call: ToolCallPart, client_tools: Collection[str]) -> bool:
    """Whether the chat's client is to answer: its own tool, or one that a person has yet to allow."""
    return call.tool_name in client_tools or call.waits_for_approval


def local_calls(parts: Iterable[Part]) -> list[ToolCallPart]:
    """Tool calls that are ours to answer, in order."""
    return [part for part in parts if isinstance(part, ToolCallPart) and not part.provider_executed]
