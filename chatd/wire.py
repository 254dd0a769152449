"""
Chats, messages, parts and stream events, as JSON.

The part object is both the wire and the storage format: treat any change of a
field like a migration. Readers discriminate on ``type`` only.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

__all__ = [
    "Chat",
    "ChatError",
    "ChatMode",
    "ChatStatus",
    "ErrorEvent",
    "FilePart",
    "HistoryResetEvent",
    "InputPart",
    "Message",
    "MessageEvent",
    "MessagePartEvent",
    "ModelConfig",
    "Part",
    "PreviewResetEvent",
    "QueueUpdateEvent",
    "QueuedMessage",
    "ReasoningPart",
    "RetryEvent",
    "RetryPayload",
    "Role",
    "StatusEvent",
    "StreamEvent",
    "TextPart",
    "ToolCallPart",
    "ToolResultPart",
    "Usage",
    "Visibility",
    "part_list_adapter",
    "stream_event_adapter",
]

Role = Literal["system", "user", "assistant", "tool"]
Visibility = Literal["user", "model", "both"]
ChatStatus = Literal["waiting", "running", "interrupting", "requires_action", "error"]
ChatMode = Literal["computer_use", "explore"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TextPart(_Wire):
    """Text; as a delta, a fragment of it."""

    type: Literal["text"] = "text"
    text: str
    provider_metadata: dict[str, Any] | None = None


class ReasoningPart(_Wire):
    """The model's visible reasoning; signatures travel in *provider_metadata*."""

    type: Literal["reasoning"] = "reasoning"
    text: str = ""
    provider_metadata: dict[str, Any] | None = None


class ToolCallPart(_Wire):
    """
    A tool call.

    For the computer tool *tool_name* is ``computer`` and *args* is a
    ``computer.wire.ComputerCall``; the vendor's own shape is kept in
    *provider_metadata* for replay. *invalid* says why the vendor's arguments could
    not be understood: such a call is answered with an error and never run.
    """

    type: Literal["tool-call"] = "tool-call"
    tool_call_id: str
    tool_name: str
    args: dict[str, Any] | None = None
    args_delta: str | None = None
    invalid: str | None = None
    provider_executed: bool = False
    provider_metadata: dict[str, Any] | None = None


class ToolResultPart(_Wire):
    """
    A tool's answer.

    *result* is ``{"output": text}`` or other JSON, ``{"error": text}`` with
    *is_error*, or with *is_media* ``{"file_id", "mime_type", "text"}`` (in a prompt
    also ``"data"``, base64).
    """

    type: Literal["tool-result"] = "tool-result"
    tool_call_id: str
    tool_name: str
    result: Any = None
    is_error: bool = False
    is_media: bool = False
    provider_executed: bool = False
    provider_metadata: dict[str, Any] | None = None


class FilePart(_Wire):
    """A file by reference (*file_id*) or inline (*data*, base64)."""

    type: Literal["file"] = "file"
    media_type: str
    file_id: str | None = None
    name: str | None = None
    data: str | None = None


Part = Annotated[
    TextPart | ReasoningPart | ToolCallPart | ToolResultPart | FilePart,
    Field(discriminator="type"),
]
part_list_adapter: TypeAdapter[tuple[Part, ...]] = TypeAdapter(tuple[Part, ...])


class InputPart(_Wire):
    """What a client may send as message content: text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["text"]
    text: Annotated[str, Field(min_length=1, max_length=200_000)]


class Usage(_Wire):
    """Tokens of one model call; absent means not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None


class ModelConfig(_Wire):
    """A model that chats may use. *rehearsal* marks the built-in stand-in that needs no key."""

    id: UUID
    provider: Literal["anthropic", "openai", "openai-compat"]
    model: str
    display_name: str
    is_default: bool = False
    rehearsal: bool = False


class ChatError(_Wire):
    """Why a chat stopped; client-visible, so redacted and bounded."""

    message: str
    detail: str | None = None
    kind: str = "generic"
    provider: str | None = None
    retryable: bool = False
    status_code: int | None = None


class Chat(_Wire):
    """A chat, without its messages."""

    id: UUID
    owner_id: UUID
    title: str
    status: ChatStatus
    mode: ChatMode | None = None
    parent_chat_id: UUID | None = None
    root_chat_id: UUID
    last_model_config_id: UUID
    agent_id: UUID | None = None
    last_error: ChatError | None = None
    archived: bool = False
    created_at: datetime
    updated_at: datetime
    children: tuple["Chat", ...] = ()


class Message(_Wire):
    """One row of the history; ordered by *id*."""

    id: int
    chat_id: UUID
    role: Role
    content: tuple[Part, ...]
    visibility: Visibility = "both"
    created_at: datetime
    usage: Usage | None = None
    model_config_id: UUID | None = None


class QueuedMessage(_Wire):
    """A message that waits for the current turn to end."""

    id: int
    chat_id: UUID
    content: tuple[Part, ...]
    created_at: datetime


class RetryPayload(_Wire):
    """A model call failed and will be tried again."""

    attempt: int
    delay_ms: int
    error: str
    kind: str
    provider: str | None = None
    status_code: int | None = None
    retrying_at: datetime


class MessagePartEvent(_Wire):
    """A fragment of the answer being written; *seq* counts from 1 within its episode."""

    type: Literal["message_part"] = "message_part"
    chat_id: UUID
    role: Role
    part: Part
    history_version: int
    generation_attempt: int
    seq: int


class MessageEvent(_Wire):
    """A durable message; upsert by id."""

    type: Literal["message"] = "message"
    chat_id: UUID
    message: Message


class StatusEvent(_Wire):
    """The chat's status changed."""

    type: Literal["status"] = "status"
    chat_id: UUID
    status: ChatStatus


class ErrorEvent(_Wire):
    """The turn ended in an error."""

    type: Literal["error"] = "error"
    chat_id: UUID
    error: ChatError


class QueueUpdateEvent(_Wire):
    """The whole queue, as it is now."""

    type: Literal["queue_update"] = "queue_update"
    chat_id: UUID
    queued_messages: tuple[QueuedMessage, ...] = ()


class RetryEvent(_Wire):
    """A model call is about to be tried again."""

    type: Literal["retry"] = "retry"
    chat_id: UUID
    retry: RetryPayload


class PreviewResetEvent(_Wire):
    """Forget every fragment shown so far."""

    type: Literal["preview_reset"] = "preview_reset"
    chat_id: UUID


class HistoryResetEvent(_Wire):
    """Forget every message; the current ones follow."""

    type: Literal["history_reset"] = "history_reset"
    chat_id: UUID


StreamEvent = Annotated[
    MessagePartEvent
    | MessageEvent
    | StatusEvent
    | ErrorEvent
    | QueueUpdateEvent
    | RetryEvent
    | PreviewResetEvent
    | HistoryResetEvent,
    Field(discriminator="type"),
]
stream_event_adapter: TypeAdapter[StreamEvent] = TypeAdapter(StreamEvent)
