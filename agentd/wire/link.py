"""
Methods of the link and their parameters.

The daemon calls ``hello`` once per connection. The control plane calls
``tools/list``, ``tools/call``, ``desktop/status`` and ``streams/open``; either side
calls ``ping``. A request is cancelled by the notification ``$/cancelRequest``.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agentd.wire.content import ToolDefinition

__all__ = [
    "CANCEL",
    "DESKTOP_STATUS",
    "HELLO",
    "MAX_FRAME_BYTES",
    "MAX_TOOL_TIMEOUT_S",
    "PING",
    "PROTOCOL_VERSION",
    "STREAMS_OPEN",
    "TOOLS_CALL",
    "TOOLS_LIST",
    "CancelParams",
    "Empty",
    "HelloParams",
    "HelloResult",
    "StreamOpenParams",
    "ToolCallParams",
    "ToolListResult",
]

PROTOCOL_VERSION = 1
HELLO = "hello"
PING = "ping"
TOOLS_LIST = "tools/list"
TOOLS_CALL = "tools/call"
DESKTOP_STATUS = "desktop/status"
STREAMS_OPEN = "streams/open"
CANCEL = "$/cancelRequest"

# Bytes of one link frame. A 4K screenshot is about 7 MB, 9.4 MB in base64; a longer frame
# closes the connection.
MAX_FRAME_BYTES = 16 * 1024 * 1024
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
    boot_id: str = Field(description="New for every start of the daemon; calls of another boot are lost.")


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
    timeout_s: Annotated[float, Field(gt=0, le=MAX_TOOL_TIMEOUT_S)] = 120.0
    boot_id: str | None = Field(
        default=None,
        description="Boot that is thought to run it already; another boot answers outcome_unknown.",
    )


class StreamOpenParams(_Wire):
    """Ask the daemon to dial back one WebSocket that carries a desktop's RFB bytes."""

    stream_id: Annotated[str, Field(min_length=1, max_length=200)]
    desktop: str = "main"


class CancelParams(_Wire):
    """Id of the request to cancel."""

    id: int | str
