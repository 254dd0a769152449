"""Models that leave the bridge: tools, results and the state of servers."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AudioBlock",
    "BridgedTool",
    "CallOutcome",
    "ImageBlock",
    "LogLine",
    "OutcomeBlock",
    "RejectedTool",
    "ServerState",
    "ServerStatus",
    "TextBlock",
    "Transport",
]

Transport = Literal["stdio", "http", "sse"]
ServerState = Literal["connecting", "ready", "waiting", "failed", "disabled", "closed"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class TextBlock(_Wire):
    """Text for the model."""

    type: Literal["text"] = "text"
    text: str


class ImageBlock(_Wire):
    """A picture, base64."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str = Field(alias="mimeType")


class AudioBlock(_Wire):
    """Sound, base64."""

    type: Literal["audio"] = "audio"
    data: str
    mime_type: str = Field(alias="mimeType")


OutcomeBlock = Annotated[TextBlock | ImageBlock | AudioBlock, Field(discriminator="type")]


class CallOutcome(_Wire):
    """What a tool gave; failures that the model should read are outcomes, not errors."""

    content: tuple[OutcomeBlock, ...] = ()
    is_error: bool = False
    structured: dict[str, Any] | None = None


class BridgedTool(_Wire):
    """A tool as models see it: legal name and schema for every vendor."""

    name: str = Field(description="Offered name, unique in the bridge.")
    server: str
    tool: str = Field(description="The server's own name for it.")
    title: str | None = None
    description: str = ""
    input_schema: dict[str, Any]
    read_only: bool | None = Field(default=None, description="What the server claims; a hint.")


class RejectedTool(_Wire):
    """A tool that is not offered, and why."""

    tool: str
    reason: str


class ServerStatus(_Wire):
    """One configured server."""

    name: str
    transport: Transport | None = None
    state: ServerState
    source: str = Field(default="", description="File or table that configures it.")
    tools: int = 0
    rejected: tuple[RejectedTool, ...] = ()
    protocol_version: str | None = None
    server_version: str | None = Field(default=None, description="Name and version that it tells.")
    pid: int | None = None
    starts: int = Field(default=0, description="How often it was started or connected to.")
    since: datetime | None = Field(default=None, description="When this state began.")
    retry_at: datetime | None = None
    last_error: str | None = None
    warnings: tuple[str, ...] = Field(default=(), description="What is odd about its entry.")


class LogLine(_Wire):
    """One line of a server's log."""

    at: datetime
    origin: Literal["stderr", "stdout", "bridge"]
    text: str
