"""Content blocks of tool results, in MCP's shape."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ContentBlock", "ImageContent", "TextContent", "ToolDefinition", "ToolOrigin", "ToolResult"]


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


ContentBlock = Annotated[TextContent | ImageContent, Field(discriminator="type")]
ToolOrigin = Annotated[str, Field(pattern=r"^(builtin|desktop|mcp:.+)$")]


class ToolDefinition(_Wire):
    """One workspace tool: the same shape whether it is a file, a process, a desktop or an MCP tool."""

    name: str
    description: str = ""
    input_schema: dict[str, Any]
    origin: ToolOrigin = "builtin"


class ToolResult(_Wire):
    """What a tool call gave; failures the model should read are results, not errors."""

    content: tuple[ContentBlock, ...] = ()
    is_error: bool = False
    structured: dict[str, Any] | None = None
