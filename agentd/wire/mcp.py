"""The workspace's MCP servers over the link: the control plane calls ``mcp/servers``."""

from pydantic import BaseModel, ConfigDict, Field

from mcp_bridge.wire import ServerStatus

__all__ = ["MCP_SERVERS", "McpServers"]

MCP_SERVERS = "mcp/servers"


class McpServers(BaseModel):
    """Every configured server, and the names that it gave to its offered tools."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    servers: tuple[ServerStatus, ...]
    tools: dict[str, tuple[str, ...]] = Field(default_factory=dict)
