"""Rows to values and back; the only place where stored JSON becomes parts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.wire import (
    Chat,
    ChatError,
    Message,
    Part,
    QueuedMessage,
    Role,
    ToolCallPart,
    ToolResultPart,
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
    "message_from_row",
    "message_values",
    "queued_from_row",
    "without_internals",
]

# 1: a JSON array of chatd.wire parts.
CONTENT_VERSION = 1
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
    usage: Usage | None = None
    files: tuple[NewFile, ...] = field(default=())


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
        "role": message.role,
        "content": dump_parts(message.content),
        "content_version": CONTENT_VERSION,
        "visibility": message.visibility,
        "deleted": False,
        "revision": revision,
        "created_at": now,
        **{name: usage[name] or None for name in USAGE_COLUMNS},
    }


def chat_from_row(row: sa.RowMapping, *, children: tuple[Chat, ...] = ()) -> Chat:
    """A ``chats`` row as it goes to clients."""
    error = row["last_error"]
    return Chat(
        id=row["id"],
        owner_id=row["owner_id"],
        title=row["title"],
        status=row["status"],
        mode=row["mode"],
        parent_chat_id=row["parent_chat_id"],
        root_chat_id=row["root_chat_id"] or row["id"],
        last_model_config_id=row["last_model_config_id"],
        agent_id=row["agent_id"],
        last_error=None if error is None else ChatError.model_validate(error),
        archived=row["archived"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        children=children,
    )


def message_from_row(row: sa.RowMapping) -> Message:
    """A ``chat_messages`` row, whole: for the model. See ``without_internals`` for clients."""
    usage = Usage(**{name: row[name] for name in USAGE_COLUMNS})
    return Message(
        id=row["id"],
        chat_id=row["chat_id"],
        role=row["role"],
        content=part_list_adapter.validate_python(row["content"]),
        visibility=row["visibility"],
        created_at=row["created_at"],
        usage=None if usage == Usage() else usage,
        model_config_id=row["model_config_id"],
    )


def queued_from_row(row: sa.RowMapping) -> QueuedMessage:
    """A ``chat_queued_messages`` row."""
    return QueuedMessage(
        id=row["id"],
        chat_id=row["chat_id"],
        content=part_list_adapter.validate_python(row["content"]),
        created_at=row["created_at"],
    )


def without_internals(part: Part) -> Part:
    """The leak rule: what a client may see of *part*. Vendor metadata stays inside."""
    if part.type == "file":
        return part.model_copy(update={"data": None}) if part.file_id else part
    part = part.model_copy(update={"provider_metadata": None})
    if isinstance(part, ToolResultPart) and part.is_media and isinstance(part.result, dict):
        slim = {key: value for key, value in part.result.items() if key != "data"}
        return part.model_copy(update={"result": slim})
    return part


def local_calls(parts: Iterable[Part]) -> list[ToolCallPart]:
    """Tool calls that are ours to answer, in order."""
    return [part for part in parts if isinstance(part, ToolCallPart) and not part.provider_executed]
