"""Bodies, queries and answers of the API, as models."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from chatd.constants import (
    CHATS_PAGE,
    CHATS_PAGE_MAX,
    MAX_DYNAMIC_TOOLS,
    MAX_LABEL_KEY_BYTES,
    MAX_LABEL_VALUE_BYTES,
    MAX_LABELS,
    MAX_SYSTEM_PROMPT,
    MAX_WORKSPACES,
    MESSAGES_PAGE,
    MESSAGES_PAGE_MAX,
    PROMPTS_PAGE,
    PROMPTS_PAGE_MAX,
)
from chatd.model_wire import ReasoningEffort
from chatd.question_wire import OpenQuestion
from chatd.wire import (
    ClientType,
    DynamicTool,
    FileInput,
    FilePart,
    FileReferencePart,
    InputPart,
    Message,
    Part,
    PlanMode,
    QuestionAnswerInput,
    QuestionAnswerPart,
    QueuedMessage,
    TextInput,
    TextPart,
    TurnChanges,
)

__all__ = [
    "ChatPatch",
    "CreateChat",
    "Created",
    "EditMessage",
    "Edited",
    "ListChats",
    "ListMessages",
    "ListPrompts",
    "MessageList",
    "Promoted",
    "PromptList",
    "QuestionList",
    "SendMessage",
    "Sent",
    "StreamFrom",
    "ToolResults",
    "check_labels",
]

# Parts of one message.
MAX_PARTS = 100
MAX_TITLE = 200
MAX_MODEL_NAME = 200
PLAN_MODE = "plan: the agent makes a plan, and only that; null: no longer; absent: as it is."
EFFORT = "How hard the model thinks, of its reasoning_efforts; null: as it does by itself; absent: as it was."
# The deployment's MCP servers of one chat.
MAX_CHOSEN = 100
WARNINGS = "What was done otherwise than asked: files that had to go, an effort that a model lacks."
# Ids of rows; what a client gives stays within a database's integers.
RowId = Annotated[int, Field(ge=0, le=2**62)]
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE)]
_LABEL_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
# As the description of the API tells it; values are bounded in bytes besides.
Labels = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=MAX_LABEL_KEY_BYTES)],
        Annotated[str, Field(min_length=1, max_length=MAX_LABEL_VALUE_BYTES)],
    ],
    Field(max_length=MAX_LABELS),
]


McpIds = Annotated[list[UUID], Field(max_length=MAX_CHOSEN)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Content(_Strict):
    content: list[InputPart] = Field(min_length=1, max_length=MAX_PARTS)
    model_config_id: str | None = Field(
        default=None,
        max_length=MAX_MODEL_NAME,
        description="A model's id, provider:model or name; the chat's own if absent.",
    )

    @field_validator("content")
    @classmethod
    def _not_blank(cls, parts: list[InputPart]) -> list[InputPart]:
        for index, part in enumerate(parts):
            if isinstance(part, TextInput | QuestionAnswerInput) and not part.text.strip():
                msg = f"part {index} is blank"
                raise ValueError(msg)
        return parts

    mcp_server_ids: McpIds | None = Field(
        default=None, description="The deployment's MCP servers for the chat; absent: as they are."
    )

    plan_mode: PlanMode | None = Field(default=None, description=PLAN_MODE)

    reasoning_effort: ReasoningEffort | None = Field(default=None, description=EFFORT)

    def changes(self) -> TurnChanges:
        """What it says of its chat besides its model."""
        given = {
            name: getattr(self, name) for name in self.model_fields_set & TurnChanges.model_fields.keys()
        }
        if self.mcp_server_ids is None:
            given.pop("mcp_server_ids", None)
        return TurnChanges(**given)

    def parts(self) -> tuple[Part, ...]:
        """The content as it is stored: structured, text without the space around it."""
        return tuple(_part(part) for part in self.content)

    def text(self) -> str:
        """The text in it."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextInput))


def _part(part: InputPart) -> Part:
    match part:
        case TextInput():
            return TextPart(text=part.text.strip())
        case FileInput():
            # Name and type are the stored file's.
            return FilePart(media_type="", file_id=str(part.file_id))
        case QuestionAnswerInput():
            return QuestionAnswerPart(**part.model_dump())
        case _:
            return FileReferencePart(**part.model_dump())


def check_labels(labels: dict[str, str]) -> dict[str, str]:
    """
    Labels within their limits.

    Raises:
        ValueError: too many, or a key or value that is none; the text names it.
    """
    if len(labels) > MAX_LABELS:
        msg = f"at most {MAX_LABELS} labels"
        raise ValueError(msg)
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or len(key) > MAX_LABEL_KEY_BYTES:
            msg = (
                f"label {key[:80]!r}: a key is 1 to {MAX_LABEL_KEY_BYTES} of A-Z a-z 0-9 . _ / -, "
                "a letter or digit first"
            )
            raise ValueError(msg)
        if not 1 <= len(value.encode()) <= MAX_LABEL_VALUE_BYTES:
            msg = f"label {key!r}: a value has 1 to {MAX_LABEL_VALUE_BYTES} bytes"
            raise ValueError(msg)
    return labels


class CreateChat(_Content):
    """A new chat and its first message."""

    title: str | None = Field(default=None, max_length=MAX_TITLE)
    workspace_id: UUID | None = Field(default=None, description="The oldest of the caller's if absent.")
    system_prompt: str = Field(
        default="", max_length=MAX_SYSTEM_PROMPT, description="What the chat's model is told for good."
    )
    client_type: ClientType = Field(default="api", description="ui: a person looks at it, on a page.")
    labels: Labels = Field(default_factory=dict)
    unsafe_dynamic_tools: list[DynamicTool] = Field(
        default_factory=list, max_length=MAX_DYNAMIC_TOOLS, description="Tools that this client runs."
    )

    @field_validator("content")
    @classmethod
    def _no_answers(cls, parts: list[InputPart]) -> list[InputPart]:
        if any(isinstance(part, QuestionAnswerInput) for part in parts):
            msg = "a new chat has asked nothing yet"
            raise ValueError(msg)
        return parts

    _labels = field_validator("labels")(check_labels)

    @field_validator("unsafe_dynamic_tools")
    @classmethod
    def _unique(cls, tools: list[DynamicTool]) -> list[DynamicTool]:
        names = [tool.name for tool in tools]
        if len(set(names)) < len(names):
            msg = "two tools have one name"
            raise ValueError(msg)
        return tools


class SendMessage(_Content):
    """A message for a chat; when it is busy: wait for the turn, stop it, or be taken in by it."""

    busy_behavior: Literal["queue", "interrupt", "steer"] = Field(
        default="queue", description="steer: before the next model call of the turn; else like queue."
    )


class EditMessage(_Content):
    """What a message of the user shall say instead."""


class ChatPatch(_Strict):
    """Changes of a chat; what is absent stays."""

    plan_mode: PlanMode | None = Field(default=None, description=PLAN_MODE)

    title: Title | None = None
    workspace_id: UUID | None = Field(
        default=None, description="Another workspace, for the chats below it too; null: none."
    )
    archived: bool | None = None
    pin_order: int | None = Field(default=None, ge=0, le=2**31 - 1, description="0 unpins.")
    labels: Labels | None = Field(default=None, description="All of them, anew.")
    mcp_server_ids: McpIds | None = Field(
        default=None, description="The deployment's MCP servers that the chat has, all of them anew."
    )

    @field_validator("labels")
    @classmethod
    def _labels(cls, labels: dict[str, str] | None) -> dict[str, str] | None:
        return None if labels is None else check_labels(labels)

    @model_validator(mode="after")
    def _pin_or_archive(self) -> "ChatPatch":
        if self.archived and self.pin_order:
            msg = "an archived chat can't be pinned"
            raise ValueError(msg)
        return self


class ToolOutput(_Strict):
    """What one tool of the client gave."""

    tool_call_id: str = Field(min_length=1, max_length=512)
    output: Any = Field(description="Any JSON.")
    is_error: bool = False


class ToolResults(_Strict):
    """Answers to all calls that wait for the client."""

    results: list[ToolOutput] = Field(min_length=1, max_length=MAX_DYNAMIC_TOOLS)


class Threshold(_Strict):
    """At what percentage of its model's window a chat is summarised; 100: never."""

    threshold_percent: int = Field(ge=0, le=100)


# -- queries -------------------------------------------------------------------


class ListChats(_Strict):
    """Which chats; *q* holds terms: words of the title, ``archived:true``, ``unread:true``, ``title:x``."""

    q: str = Field(default="", max_length=1000)
    label: list[
        Annotated[
            str,
            Field(
                pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*:.+$",
                max_length=MAX_LABEL_KEY_BYTES + 1 + MAX_LABEL_VALUE_BYTES,
            ),
        ]
    ] = Field(default_factory=list, max_length=MAX_LABELS, description="key:value, once for each label.")
    after_id: UUID | None = None
    offset: int = Field(default=0, ge=0, le=2**31 - 1)
    limit: int = Field(default=CHATS_PAGE, ge=1, le=CHATS_PAGE_MAX)


class ByWorkspace(_Strict):
    """Which workspaces."""

    workspace_ids: str = Field(
        max_length=MAX_WORKSPACES * 40, description="Ids with commas between, 25 at most."
    )

    def ids(self) -> list[UUID]:
        """
        The ids.

        Raises:
            ValueError: too many, or one that is none.
        """
        ids = [UUID(text.strip()) for text in self.workspace_ids.split(",") if text.strip()]
        if len(ids) > MAX_WORKSPACES:
            msg = f"at most {MAX_WORKSPACES}"
            raise ValueError(msg)
        return ids


class ListMessages(_Strict):
    """A page: ascending behind *after_id*; with *before_id* the newest first."""

    after_id: RowId = 0
    before_id: RowId | None = None
    limit: int = Field(default=MESSAGES_PAGE, ge=1, le=MESSAGES_PAGE_MAX)


class ListPrompts(_Strict):
    """How many prompts."""

    limit: int = Field(default=PROMPTS_PAGE, ge=1, le=PROMPTS_PAGE_MAX)


class StreamFrom(_Strict):
    """Messages up to *after_id* are known to the client."""

    after_id: RowId = 0


# -- answers -------------------------------------------------------------------


class MessageList(BaseModel):
    """A page of messages; the queue only on one without a cursor."""

    messages: list[Message]
    queued_messages: list[QueuedMessage]
    has_more: bool


class Sent(BaseModel):
    """*messages* entered the history, all that people see, in order; or *queued_message* waits."""

    message: Message | None = None
    messages: list[Message]
    queued_message: QueuedMessage | None = None
    queued: bool
    warnings: list[str] = Field(default_factory=list, description=WARNINGS)


class Download(BaseModel):
    """Where a file's bytes are, for a while; *url* is relative to this server's root."""

    url: str
    expires_at: datetime
    sha256: str
    size_bytes: int
    media_type: str
    name: str | None = None


class ProposedTitle(BaseModel):
    """A title; nothing is changed."""

    title: str


class Edited(BaseModel):
    """What an edit put into the history, and what it took out."""

    message: Message
    messages: list[Message]
    deleted_message_ids: list[int]
    warnings: list[str] = Field(default_factory=list, description=WARNINGS)


class Promoted(BaseModel):
    """*message* is there if it entered the history at once."""

    message: Message | None = None
    messages: list[Message]


class ThresholdList(BaseModel):
    """Percentages of the window, by model."""

    thresholds: dict[UUID, int]


class QuestionList(BaseModel):
    """Questions that nobody answered yet."""

    questions: list[OpenQuestion]


class PromptList(BaseModel):
    """What the user asked, newest first."""

    prompts: list[str]


class Created(BaseModel):
    """The id of what was made."""

    id: UUID
