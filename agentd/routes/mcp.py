"""Local API: the workspace's MCP servers, their tools and their logs."""

from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from agentd.errors import BadRequest, NotFound
from agentd.mcp_host import McpHost
from agentd.routes.desktop import read_object
from mcp_bridge.errors import BridgeError, ServerNotFound, ToolNotFound
from mcp_bridge.naming import SEPARATOR

__all__ = ["HOST", "CallRequest", "routes"]

HOST: web.AppKey[McpHost] = web.AppKey("mcp_host", McpHost)
routes = web.RouteTableDef()

# Lines of a log in one answer.
MAX_LOG_LINES = 2_000


class CallRequest(BaseModel):
    """Call a tool of an MCP server; *timeout_s* is extended by progress."""

    model_config = ConfigDict(extra="forbid")

    tool_name: str = Field(min_length=1, max_length=400)
    arguments: dict[str, Any] = Field(default_factory=dict)
    timeout_s: float | None = Field(default=None, gt=0, le=4 * 3600)


@routes.get("/api/v0/mcp/servers")
async def servers(request: web.Request) -> web.Response:
    """Every configured server and how it is; *settled* is false until each was tried once."""
    return _servers(request)


def _servers(request: web.Request) -> web.Response:
    bridge = request.app[HOST].bridge
    statuses = [status.model_dump(mode="json") for status in bridge.statuses()]
    return web.json_response({"settled": bridge.settled.is_set(), "servers": statuses})


@routes.get("/api/v0/mcp/tools")
async def tools(request: web.Request) -> web.Response:
    """What the servers offer now; empty where there is nothing."""
    offered = [
        {
            "server_name": tool.server,
            "name": tool.name,
            "description": tool.description,
            "schema": tool.input_schema,
            "required": tool.input_schema.get("required", []),
        }
        for tool in request.app[HOST].bridge.tools()
    ]
    return web.json_response({"tools": offered})


@routes.post("/api/v0/mcp/call-tool")
async def call_tool(request: web.Request) -> web.Response:
    """Call a tool: 400 for a name that is none, 404 for an unknown server or tool, 502 when it failed."""
    wish = CallRequest.model_validate(await read_object(request))
    if SEPARATOR not in wish.tool_name:
        raise BadRequest("tool_name must be <server>__<tool>")
    bridge = request.app[HOST].bridge
    try:
        outcome = await bridge.call(wish.tool_name, wish.arguments, timeout_s=wish.timeout_s)
    except (ServerNotFound, ToolNotFound) as exc:
        raise NotFound(str(exc)) from exc
    except BridgeError as exc:
        return web.json_response({"message": str(exc), "code": exc.code}, status=502)
    content = [
        {"type": "text", "text": block.text}
        if block.type == "text"
        else {"type": block.type, "data": block.data, "media_type": block.mime_type}
        for block in outcome.content
    ]
    return web.json_response(
        {"content": content, "is_error": outcome.is_error, "structured": outcome.structured}
    )


@routes.get("/api/v0/mcp/servers/{name}/log")
async def server_log(request: web.Request) -> web.Response:
    """The newest lines of what a server said on stderr and of what became of it."""
    limit = request.query.get("limit", "200")
    if not limit.isdigit():
        raise BadRequest("limit must be a number")
    try:
        lines = request.app[HOST].bridge.logs(request.match_info["name"], min(int(limit), MAX_LOG_LINES))
    except ServerNotFound as exc:
        raise NotFound(str(exc)) from exc
    return web.json_response({"lines": [line.model_dump(mode="json") for line in lines]})


@routes.post("/api/v0/mcp/reload")
async def reload(request: web.Request) -> web.Response:
    """Read the configuration now; answers when every server was tried."""
    await request.app[HOST].reload()
    return _servers(request)
