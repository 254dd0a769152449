"""MCP servers as the API tells them: those of the deployment, and what one chat has."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from mcp_bridge.wire import RejectedTool, ServerState

__all__ = ["Availability", "ChatMcp", "ChatMcpServer", "McpHealth", "McpServer", "McpServerList", "Slug"]

# force_on: in every chat; default_on: unless it was not chosen; default_off: where it was chosen.
Availability = Literal["force_on", "default_on", "default_off"]
# Part of every tool's name, so within what vendors take; "__" ends it there.
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(?:[-_][a-z0-9]+)*$", max_length=40)]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class McpHealth(_Wire):
    """How a server is, as this replica sees it."""

    state: ServerState
    since: datetime | None = None
    tools: tuple[str, ...] = Field(default=(), description="The server's own names.")
    rejected: tuple[RejectedTool, ...] = Field(default=(), description="Not offered, and why.")
    protocol_version: str | None = None
    server_version: str | None = None
    last_error: str | None = None
    warnings: tuple[str, ...] = Field(default=(), description="What is odd about its entry.")
    retry_at: datetime | None = None


class McpServer(_Wire):
    """A server of the whole deployment. Its headers' values are never told."""

    id: UUID
    slug: Slug = Field(description="Begins its tools' names: <slug>__<tool>.")
    display_name: str
    description: str = ""
    transport: Literal["http", "sse"] = "http"
    url: str
    header_names: tuple[str, ...] = ()
    tool_allow_list: tuple[str, ...] = Field(default=(), description="None: all of them.")
    tool_deny_list: tuple[str, ...] = ()
    availability: Availability = "default_off"
    enabled: bool = True
    allow_in_plan_mode: bool = False
    call_timeout_s: float = 60.0
    created_at: datetime
    updated_at: datetime
    health: McpHealth | None = None

    def allows(self, tool: str) -> bool:
        """Whether chats may call the tool that the server calls so."""
        return tool not in self.tool_deny_list and (not self.tool_allow_list or tool in self.tool_allow_list)

    def is_on(self, chosen: tuple[UUID, ...] | None, *, plan_mode: bool = False) -> bool:
        """Whether a chat has it that chose *chosen*; None: it chose nothing."""
        if not self.enabled or (plan_mode and not self.allow_in_plan_mode):
            return False
        if self.availability == "force_on":
            return True
        return self.availability == "default_on" if chosen is None else self.id in chosen


class McpServerList(_Wire):
    """All servers of the deployment, by slug."""

    servers: tuple[McpServer, ...]


class ChatMcpServer(_Wire):
    """A server that a chat has or could have."""

    name: str
    origin: Literal["workspace", "deployment"]
    id: UUID | None = Field(default=None, description="Of one of the deployment.")
    display_name: str
    description: str = ""
    availability: Availability | None = None
    is_on: bool = Field(description="Whether this chat's model is offered its tools.")
    health: McpHealth


class ChatMcp(_Wire):
    """What one chat has; *workspace* tells whether its servers are known."""

    workspace: Literal["none", "away", "connected"]
    servers: tuple[ChatMcpServer, ...]
    left_out: tuple[str, ...] = Field(
        default=(), description="Tools that its model is not told of: a request takes 128, MCP's come last."
    )
