"""
Chats, messages, parts and stream events, as JSON.

The part object is both wire and storage format: a change of a field is a migration. Readers go by ``type``.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter

from chatd.context_wire import ChatContext
from chatd.event_wire import HistoryResetEvent, PreviewResetEvent, ToolProgressEvent
from chatd.model_wire import ReasoningEffort

__all__ = [
    "ActionRequiredEvent",
    "Chat",
    "ChatError",
    "ChatFile",
    "ChatMode",
    "ChatStatus",
    "ClientType",
    "ContextFilePart",
    "DynamicTool",
    "ErrorEvent",
    "FaultKind",
    "FileInput",
    "FilePart",
    "FileReferenceInput",
    "FileReferencePart",
    "HistoryResetEvent",
    "InputPart",
    "Message",
    "MessageEvent",
    "MessagePartEvent",
    "Part",
    "PendingCall",
    "PlanMode",
    "PreviewResetEvent",
    "QuestionAnswerInput",
    "QuestionAnswerPart",
    "QueueUpdateEvent",
    "QueuedMessage",
    "ReasoningPart",
    "RetryEvent",
    "RetryPayload",
    "Role",
    "SkillPart",
    "SourcePart",
    "StatusEvent",
    "StreamEvent",
    "TextInput",
    "TextPart",
    "ToolCallPart",
    "ToolProgressEvent",
    "ToolResultPart",
    "TurnChanges",
    "Usage",
    "Visibility",
    "part_list_adapter",
    "stream_event_adapter",
]

Role = Literal["system", "user", "assistant", "tool"]
Visibility = Literal["user", "model", "both"]
ChatStatus = Literal["waiting", "running", "interrupting", "requires_action", "error"]
ChatMode = Literal["computer_use", "explore"]
# While a plan is made nothing but that is written.
PlanMode = Literal["plan"]
ClientType = Literal["ui", "api"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    def to_json(self) -> str:
        """As it travels: absent fields are left out."""
        return self.model_dump_json(exclude_none=True)


class TextPart(_Wire):
    """Text; as a delta, a fragment of it."""

    type: Literal["text"] = "text"
    text: str
    provider_metadata: dict[str, Any] | None = None


class ReasoningPart(_Wire):
    """Visible reasoning, from its first word to its end or stop; signatures are in *provider_metadata*."""

    type: Literal["reasoning"] = "reasoning"
    text: str = ""
    created_at: datetime | None = None
    completed_at: datetime | None = None
    provider_metadata: dict[str, Any] | None = None


class ToolCallPart(_Wire):
    """
    A tool call.

    For the computer tool *tool_name* is ``computer`` and *args* is a
    ``computer.wire.ComputerCall``; the vendor's own shape is kept in
    *provider_metadata* for replay. *invalid* says why the vendor's arguments could
    not be understood: such a call is answered with an error and never run.
    *needs_approval* says why the vendor wants a person to allow it first; *approved*
    that one did. *created_at* is when the model had written it.
    """

    type: Literal["tool-call"] = "tool-call"
    tool_call_id: str
    tool_name: str
    args: dict[str, Any] | None = None
    args_delta: str | None = None
    invalid: str | None = None
    needs_approval: tuple[str, ...] | None = None
    approved: bool | None = None
    created_at: datetime | None = None
    provider_executed: bool = False
    provider_metadata: dict[str, Any] | None = None

    @property
    def waits_for_approval(self) -> bool:
        """Whether a person has yet to allow it."""
        return bool(self.needs_approval) and not self.approved


class ToolResultPart(_Wire):
    """
    A tool's answer.

    *result* is ``{"output": text}`` or other JSON, ``{"error": text}`` with
    *is_error*, or with *is_media* ``{"file_id", "mime_type", "text"}`` (in a prompt
    also ``"data"``, base64). *created_at* is when the tool had answered.
    """

    type: Literal["tool-result"] = "tool-result"
    tool_call_id: str
    tool_name: str
    result: Any = None
    is_error: bool = False
    is_media: bool = False
    created_at: datetime | None = None
    provider_executed: bool = False
    provider_metadata: dict[str, Any] | None = None


class FilePart(_Wire):
    """A file by reference (*file_id*) or inline (*data*, base64)."""

    type: Literal["file"] = "file"
    media_type: str
    file_id: str | None = None
    name: str | None = None
    data: str | None = None


class FileReferencePart(_Wire):
    """Lines of a file that the user points at; a model reads them as text."""

    type: Literal["file-reference"] = "file-reference"
    file_name: Annotated[str, Field(min_length=1, max_length=1024)]
    start_line: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    end_line: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    content: Annotated[str, Field(max_length=200_000)] = ""


class QuestionAnswerPart(_Wire):
    """What the user answers to a question that an agent asked while it went on."""

    type: Literal["question-answer"] = "question-answer"
    question_id: UUID
    text: Annotated[str, Field(min_length=1, max_length=20_000)]


class SourcePart(_Wire):
    """Where the model says that it read something."""

    type: Literal["source"] = "source"
    source_id: str | None = None
    url: str
    title: str | None = None
    provider_metadata: dict[str, Any] | None = None


class ContextFilePart(_Wire):
    """An instruction file of the workspace; from *context_file_content* on for the model alone."""

    type: Literal["context-file"] = "context-file"
    context_file_path: str
    context_file_truncated: bool = False
    context_file_agent_id: UUID | None = None
    context_file_content: str | None = None
    context_file_os: str | None = None
    context_file_directory: str | None = None


class SkillPart(_Wire):
    """A skill of the workspace; where it lies is for the model alone."""

    type: Literal["skill"] = "skill"
    skill_name: str
    skill_description: str | None = None
    skill_dir: str | None = None
    context_file_skill_meta_file: str | None = None


Part = Annotated[
    TextPart
    | ReasoningPart
    | ToolCallPart
    | ToolResultPart
    | SourcePart
    | FilePart
    | FileReferencePart
    | QuestionAnswerPart
    | ContextFilePart
    | SkillPart,
    Field(discriminator="type"),
]
part_list_adapter: TypeAdapter[tuple[Part, ...]] = TypeAdapter(tuple[Part, ...])


class TextInput(_Wire):
    """Text that a client sends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["text"]
    text: Annotated[str, Field(min_length=1, max_length=200_000)]


class FileInput(_Wire):
    """A file that the client uploaded before."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["file"]
    file_id: UUID


class FileReferenceInput(FileReferencePart):
    """Lines of a file that the user points at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["file-reference"]


class QuestionAnswerInput(QuestionAnswerPart):
    """The answer to a question of the chat that is open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["question-answer"]


# What a client may send as message content.
InputPart = Annotated[
    TextInput | FileInput | FileReferenceInput | QuestionAnswerInput, Field(discriminator="type")
]


class Usage(_Wire):
    """Tokens of one model call; absent means not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None
    context_limit: int | None = Field(default=None, description="Tokens of the model's window, if known.")


class FaultKind(StrEnum):
    """What went wrong with a model call; clients switch on these words. One that we don't know is generic."""

    GENERIC = "generic"
    OVERLOADED = "overloaded"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    STARTUP_TIMEOUT = "startup_timeout"
    STREAM_SILENCE_TIMEOUT = "stream_silence_timeout"
    AUTH = "auth"
    CONFIG = "config"
    USAGE_LIMIT = "usage_limit"
    MISSING_KEY = "missing_key"
    PROVIDER_DISABLED = "provider_disabled"
    CONTENT_FILTER = "content_filter"

    @classmethod
    def _missing_(cls, value: object) -> "FaultKind":  # noqa: ARG003 -- whatever it was
        return cls.GENERIC


class ChatError(_Wire):
    """Why a chat stopped; client-visible, so redacted and bounded."""

    message: str
    detail: str | None = None
    kind: FaultKind = FaultKind.GENERIC
    provider: str | None = None
    retryable: bool = False
    status_code: int | None = None


class ChatFile(_Wire):
    """A file that a person gave to a chat."""

    id: UUID
    name: str | None = None
    media_type: str
    size_bytes: int
    created_at: datetime


class Chat(_Wire):
    """A chat, without its messages. *files* are told when one chat is asked for."""

    id: UUID
    owner_id: UUID
    title: str
    status: ChatStatus
    mode: ChatMode | None = None
    plan_mode: PlanMode | None = Field(default=None, description="plan: its agent only makes a plan.")
    client_type: ClientType = Field(default="api", description="ui: it was opened on the page.")
    parent_chat_id: UUID | None = None
    root_chat_id: UUID
    last_model_config_id: UUID
    last_reasoning_effort: ReasoningEffort | None = Field(
        default=None, description="What was chosen last; absent: as its model does by itself."
    )
    agent_id: UUID | None = None
    last_error: ChatError | None = None
    archived: bool = False
    context: ChatContext | None = None
    pin_order: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    mcp_server_ids: tuple[UUID, ...] | None = Field(
        default=None, description="The deployment's MCP servers that were chosen; absent: the default ones."
    )
    has_unread: bool = False
    # Whether others may read it.
    shared: bool = False
    queued_for_capacity: bool = Field(
        default=False, description="It is to go on, and no worker has taken it: as many are at work as may."
    )
    files: tuple[ChatFile, ...] | None = None
    warnings: tuple[str, ...] | None = Field(
        default=None, description="At its creation: what was done otherwise than asked."
    )
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
    created_by: UUID | None = None
    created_at: datetime
    usage: Usage | None = None
    model_config_id: UUID | None = None
    reasoning_effort: ReasoningEffort | None = None


class TurnChanges(_Wire):
    """
    What a message changes of its chat once its turn begins.

    What was not set stays; None sets it back: no plan, the model's own effort, the servers by default.
    """

    plan_mode: PlanMode | None = None
    reasoning_effort: ReasoningEffort | None = None
    mcp_server_ids: tuple[UUID, ...] | None = None

    def to_values(self) -> dict[str, Any]:
        """Those that were set, as stored."""
        return self.model_dump(mode="json", exclude_unset=True)


class QueuedMessage(_Wire):
    """
    A message that waits for the current turn to end, or with *steer* for its next model call.

    *changes* is what it then changes of its chat besides its model.
    """

    id: int
    chat_id: UUID
    content: tuple[Part, ...]
    model_config_id: UUID | None = None
    changes: TurnChanges = Field(default_factory=TurnChanges)
    steer: bool = False
    created_at: datetime


class DynamicTool(_Wire):
    """A tool that the chat's client runs."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_-]+$")]
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)


class PendingCall(_Wire):
    """
    A call that waits for the chat's client; *args* is JSON as text.

    With *needs_approval* it is not the client's to run: it answers ``{"approved": true}`` or false.
    """

    tool_call_id: str
    tool_name: str
    args: str
    needs_approval: tuple[str, ...] | None = None


class RetryPayload(_Wire):
    """A model call failed and will be tried again."""

    attempt: int
    delay_ms: int
    error: str
    kind: FaultKind
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
    # Rendered once, however many watch.
    _json: str = PrivateAttr(default="")

    def to_json(self) -> str:
        """As it travels."""
        if not self._json:
            self._json = super().to_json()
        return self._json


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


class ActionRequiredEvent(_Wire):
    """The client is to answer these calls."""

    type: Literal["action_required"] = "action_required"
    chat_id: UUID
    tool_calls: tuple[PendingCall, ...]


class RetryEvent(_Wire):
    """A model call is about to be tried again."""

    type: Literal["retry"] = "retry"
    chat_id: UUID
    retry: RetryPayload


StreamEvent = Annotated[
    MessagePartEvent
    | MessageEvent
    | StatusEvent
    | ErrorEvent
    | QueueUpdateEvent
    | ActionRequiredEvent
    | RetryEvent
    | PreviewResetEvent
    | ToolProgressEvent
    | HistoryResetEvent,
    Field(discriminator="type"),
]
stream_event_adapter: TypeAdapter[StreamEvent] = TypeAdapter(StreamEvent)
