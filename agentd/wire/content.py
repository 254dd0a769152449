"""Content blocks of tool results, in MCP's shape."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AudioContent",
    "ContentBlock",
    "ImageContent",
    "TextContent",
    "ToolDefinition",
    "ToolOrigin",
    "ToolResult",
]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TextContent(_Wire):
    """Text for the model."""

    type: Literal["text"] = "text"
    text: str


class ImageContent(_Wire):
    """A picture, base64 once and never again."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str = Field(alias="mimeType", serialization_alias="mimeType")

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class AudioContent(_Wire):
    """Sound, base64; no model takes it as a result, so chats name it only."""

    type: Literal["audio"] = "audio"
    data: str
    mime_type: str = Field(alias="mimeType", serialization_alias="mimeType")

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


ContentBlock = Annotated[TextContent | ImageContent | AudioContent, Field(discriminator="type")]
ToolOrigin = Annotated[str, Field(pattern=r"^(builtin|desktop|mcp:.+)$")]


class ToolDefinition(_Wire):
    """One workspace tool: the same shape whether it is a file, a process, a desktop or an MCP tool."""

    name: str
    description: str = ""
    input_schema: dict[str, Any]
    origin: ToolOrigin = "builtin"
    timeout_s: float | None = Field(
        default=None, description="Longest that one call may take; none: what the caller gives every tool."
    )
    reads_only: bool = Field(
        default=False, description="It changes nothing, so a call may be made again where nobody knows."
    )


class ToolResult(_Wire):
    """
    What a tool call gave; failures the model should read are results, not errors.

    *structured* is the result as data; a result without *content* is that data and nothing else.
    """

    content: tuple[ContentBlock, ...] = ()
    is_error: bool = False
    structured: dict[str, Any] | None = None
