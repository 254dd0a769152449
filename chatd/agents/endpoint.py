"""The control plane's end of the link: WebSocket routes that agents dial."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import structlog
from aiohttp import WSMsgType, web

from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import HELLO, MAX_FRAME_BYTES, PING, PROTOCOL_VERSION, Empty, HelloParams, HelloResult
from agentd.wire.peer import JsonRpcPeer, LinkLost, RpcError
from agentd.wire.version import VERSION
from chatd.agents.directory import AgentConnection, Directory, IncomingStream

__all__ = ["serve_link", "serve_stream"]

# Seconds between pings of a silent link.
HEARTBEAT_S = 20.0

log = structlog.get_logger("chatd.agents")


async def serve_link(request: web.Request, directory: Directory, agent_id: UUID) -> web.WebSocketResponse:
    """Serve one agent's link until it ends."""
    websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_FRAME_BYTES, compress=False)
    await websocket.prepare(request)
    connection: AgentConnection | None = None

    async def send(text: str) -> None:
        if websocket.closed:
            raise LinkLost("the link went down")
        await websocket.send_str(text)

    async def hello(params: dict[str, Any]) -> HelloResult:
        nonlocal connection
        greeting = HelloParams.model_validate(params)
        if greeting.protocol_version != PROTOCOL_VERSION:
            text = f"this control plane speaks protocol {PROTOCOL_VERSION}, not {greeting.protocol_version}"
            raise RpcError(REFUSED, text, code="unsupported_protocol")
        connection = AgentConnection(
            agent_id=agent_id, boot_id=greeting.boot_id, name=greeting.name, peer=peer
        )
        directory.connect(connection)
        log.info("agent connected", action="agent_connected", agent_id=str(agent_id), name=greeting.name)
        return HelloResult(protocol_version=PROTOCOL_VERSION, server_version=VERSION, agent_id=str(agent_id))

    async def ping(_: dict[str, Any]) -> Empty:
        return Empty()

    peer = JsonRpcPeer(send, {HELLO: hello, PING: ping})
    try:
        await peer.run(_frames(websocket))
    finally:
        if connection is not None:
            directory.disconnect(connection)
            log.info("agent gone", action="agent_gone", agent_id=str(agent_id))
        await websocket.close()
    return websocket


async def _frames(websocket: web.WebSocketResponse) -> AsyncIterator[str | bytes]:
    async for message in websocket:
        if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
            yield message.data


async def serve_stream(request: web.Request, directory: Directory, stream_id: str) -> web.WebSocketResponse:
    """Hand a dialled-back stream to whoever asked for it; return when they are done with it."""
    websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=0, compress=False)
    await websocket.prepare(request)
    stream = IncomingStream(websocket=websocket)
    if not directory.deliver(stream_id, stream):
        await websocket.close(code=1008, message=b"nobody waits for this stream")
        return websocket
    try:
        await stream.done.wait()
    finally:
        await websocket.close()
    return websocket
