"""
Methods of the link and their parameters.

The daemon calls ``hello`` once per connection, and ``tools/changed`` whenever its list of
tools is another than before. The control plane calls ``tools/list``, ``tools/call``,
``desktop/status`` and ``streams/open``; either side calls ``ping``. A request is cancelled
by the notification ``$/cancelRequest``; a call that takes long tells of itself by ``tools/progress``.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agentd.wire.content import ToolDefinition
from agentd.wire.control import ViewerGrant

__all__ = [
    "CANCEL",
    "DESKTOP_CONTROL",
    "DESKTOP_LEAVE",
    "DESKTOP_STATUS",
    "HELLO",
    "MAX_FRAME_BYTES",
    "MAX_PROGRESS_CHARACTERS",
    "MAX_TOOL_TIMEOUT_S",
    "PING",
    "PROTOCOL_VERSION",
    "STREAMS_OPEN",
    "TOOLS_CALL",
    "TOOLS_CHANGED",
    "TOOLS_LIST",
    "TOOLS_PROGRESS",
    "CancelParams",
    "DesktopLeaveParams",
    "DesktopStatusParams",
    "Empty",
    "HelloParams",
    "HelloResult",
    "StreamOpenParams",
    "ToolCallParams",
    "ToolListResult",
    "ToolProgress",
]

PROTOCOL_VERSION = 1
HELLO = "hello"
PING = "ping"
TOOLS_LIST = "tools/list"
TOOLS_CALL = "tools/call"
TOOLS_CHANGED = "tools/changed"
TOOLS_PROGRESS = "tools/progress"
DESKTOP_STATUS = "desktop/status"
DESKTOP_CONTROL = "desktop/control"
DESKTOP_LEAVE = "desktop/leave"
STREAMS_OPEN = "streams/open"
CANCEL = "$/cancelRequest"

# Bytes of one link frame. A 4K screenshot is about 7 MB, 9.4 MB in base64; a longer frame
# closes the connection.
MAX_FRAME_BYTES = 16 * 1024 * 1024
# Characters of what a call tells of itself.
MAX_PROGRESS_CHARACTERS = 2_000
# Seconds. The longest wait of `execute` (4 h) plus its answer.
MAX_TOOL_TIMEOUT_S = 4 * 3600.0 + 60


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Empty(_Wire):
    """No parameters, or nothing to say."""


class HelloParams(_Wire):
    """First request of the daemon on a new connection."""

    protocol_version: int
    name: Annotated[str, Field(min_length=1, max_length=200)]
    version: str
    boot_id: str = Field(description="New for every start of the daemon.")
    pushes_context: bool = Field(default=False, description="Whether context/push is to be expected.")
    streams_url: str | None = Field(
        default=None,
        description="http(s)://host/prefix where streams may be fetched; null: nowhere.",
    )


class HelloResult(_Wire):
    """The control plane's answer."""

    protocol_version: int
    server_version: str
    agent_id: str


class ToolListResult(_Wire):
    """All tools of the workspace, in a stable order."""

    tools: tuple[ToolDefinition, ...]


class ToolCallParams(_Wire):
    """
    Run one tool.

    ``call_id`` names the intention: the same id asks for the same run. A repeat
    attaches to the run or returns its stored answer and never runs it twice.
    """

    call_id: Annotated[str, Field(min_length=1, max_length=300)]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)
    chat_id: str | None = None
    actor: Annotated[str, Field(max_length=200)] = Field(
        default="agent", description="Who asks, for the action log: a chat's agent, mcp, person:NAME."
    )
    vendor_call_id: str | None = Field(
        default=None, max_length=300, description="The id that the model's vendor gave; for the action log."
    )
    root_chat_id: str | None = Field(
        default=None, description="Chat that a person opened, when chat_id is a sub-agent's."
    )
    timeout_s: Annotated[float, Field(gt=0, le=MAX_TOOL_TIMEOUT_S)] = 120.0
    writes_only: str | None = Field(
        default=None, max_length=4_096, description="The one file that this call may write; null: any."
    )
    boot_id: str | None = Field(
        default=None,
        description="Boot that was given it first; what that one began and did not answer is unknown.",
    )


class ToolProgress(_Wire):
    """What a call under way has to tell now, in place of what it told before: its last lines, a count."""

    call_id: Annotated[str, Field(min_length=1, max_length=300)]
    text: Annotated[str, Field(max_length=MAX_PROGRESS_CHARACTERS)]


class StreamOpenParams(_Wire):
    """Ask the daemon to dial back one WebSocket that carries a desktop's RFB bytes."""

    stream_id: Annotated[str, Field(min_length=1, max_length=200)]
    desktop: str | None = Field(default=None, description="By name; null: the one of chat_id.")
    chat_id: str | None = Field(default=None, description="Chat that a person opened; null: of nobody.")
    agent_chat_id: str | None = Field(
        default=None, description="Agent whose desktop is meant, where each has its own; null: the chat's."
    )
    is_fetched: bool = Field(
        default=False, description="The control plane dials the daemon's streams_url; else the daemon dials."
    )
    viewer: ViewerGrant = Field(
        default_factory=lambda: ViewerGrant(seat="anybody"),
        description="Who watches, and what else they may.",
    )


class DesktopStatusParams(_Wire):
    """Ask for one desktop's status; it is not started by that."""

    chat_id: str | None = Field(default=None, description="Chat that a person opened; null: of nobody.")
    agent_chat_id: str | None = Field(
        default=None, description="Agent whose desktop is meant, where each has its own; null: the chat's."
    )


class DesktopLeaveParams(_Wire):
    """An agent is done at its desktop: others may have it."""

    chat_id: Annotated[str, Field(min_length=1, max_length=200)]


class CancelParams(_Wire):
    """Id of the request to cancel."""

    id: int | str
