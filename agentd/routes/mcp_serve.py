"""Local API: the desktop as an MCP server, one WebSocket for each client of ``agentd mcp serve``."""

from typing import Any

from aiohttp import web
from mcp.server import NotificationOptions, Server

from agentd.mcp_server.access import MAX_MESSAGE_BYTES, PIPE
from agentd.mcp_server.pipe import PipeReader, PipeWriter

__all__ = ["SERVER", "routes"]

SERVER: web.AppKey[Server[Any]] = web.AppKey("mcp_server", Server)
routes = web.RouteTableDef()


@routes.get(PIPE)
async def pipe(request: web.Request) -> web.WebSocketResponse:
    """Serve MCP until the client goes away; a call that still runs is then stopped."""
    websocket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES, compress=False)
    await websocket.prepare(request)
    server = request.app[SERVER]
    options = server.create_initialization_options(NotificationOptions())
    await server.run(PipeReader(websocket), PipeWriter(websocket), options)
    return websocket
