"""
The chat's desktop: RFB bytes over a binary WebSocket.

Every refusal, and the dial to the workspace, comes before the upgrade, so that the
browser gets a status and not a socket that opens and closes.
"""

import asyncio
import contextlib
from uuid import UUID

from aiohttp import WSMsgType, hdrs, web

from chatd.agents.directory import IncomingStream
from chatd.errors import AgentUnavailable, BadRequest
from chatd.routes.chats import chat_of_caller
from chatd.routes.context import services

__all__ = ["relay", "routes"]

# Seconds between pings of a viewer.
HEARTBEAT_S = 25.0
# Bytes of one frame from a viewer; clipboard text is its largest.
MAX_VIEWER_FRAME_BYTES = 1024 * 1024 + 4096

routes = web.RouteTableDef()


async def _agent_of(request: web.Request) -> UUID:
    chat = await chat_of_caller(request)
    if chat.agent_id is None:
        raise BadRequest("this chat has no workspace")
    return chat.agent_id


@routes.get("/api/experimental/chats/{chat_id}/desktop/status")
async def status(request: web.Request) -> web.Response:
    """How the desktop is; it is not started by asking."""
    agent_id = await _agent_of(request)
    answer = await services(request).directory.desktop_status(agent_id)
    return web.json_response(text=answer.model_dump_json())


@routes.get("/api/experimental/chats/{chat_id}/desktop")
async def desktop(request: web.Request) -> web.StreamResponse:
    """Watch the desktop; view-only is the viewer's wish here, not yet enforced."""
    agent_id = await _agent_of(request)
    if request.headers.get(hdrs.UPGRADE, "").lower() != "websocket":
        raise BadRequest("this route is a WebSocket that carries RFB; connect a VNC client such as noVNC")
    directory = services(request).directory
    directory.get(agent_id)
    try:
        upstream = await directory.open_stream(agent_id)
    except AgentUnavailable as exc:
        body = {"message": f"the desktop's stream could not be opened: {exc}", "code": exc.code}
        return web.json_response(body, status=500)
    try:
        viewer = web.WebSocketResponse(
            protocols=("binary",),
            heartbeat=HEARTBEAT_S,
            compress=False,
            max_msg_size=MAX_VIEWER_FRAME_BYTES,
        )
        with contextlib.suppress(ConnectionError):
            await viewer.prepare(request)
            await relay(viewer, upstream)
        return viewer
    finally:
        upstream.done.set()


async def relay(viewer: web.WebSocketResponse, upstream: IncomingStream) -> None:
    """
    Copy both ways until either side ends; then close the viewer's.

    Back-pressure: each direction waits for its writer.
    """
    loop = asyncio.get_running_loop()
    directions = {
        loop.create_task(_copy(upstream.websocket, viewer)),
        loop.create_task(_copy(viewer, upstream.websocket)),
    }
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in directions:
            task.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
        await viewer.close(code=1000, message=b"the desktop stream ended")


async def _copy(source: web.WebSocketResponse, target: web.WebSocketResponse) -> None:
    async for message in source:
        if message.type is WSMsgType.BINARY:
            await target.send_bytes(message.data)
        elif message.type is WSMsgType.ERROR:
            return
