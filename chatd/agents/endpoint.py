"""The control plane's end of the link: WebSocket routes that agents dial."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from aiohttp import WSCloseCode, WSMsgType, web

from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import (
    HELLO,
    MAX_FRAME_BYTES,
    PING,
    PROTOCOL_VERSION,
    TOOLS_CHANGED,
    TOOLS_PROGRESS,
    Empty,
    HelloParams,
    HelloResult,
    ToolProgress,
)
from agentd.wire.peer import Handler, JsonRpcPeer, LinkLost, RpcError
from agentd.wire.version import VERSION
from chatd.agents.directory import AgentConnection, Directory
from chatd.agents.streams import STREAM_SILENCE_S, IncomingStream
from chatd.errors import Unauthorised
from context_push.wire.push import CONTEXT_PUSH, ContextPush, PushAnswer, push_problem

__all__ = ["serve_link", "serve_stream"]

# Seconds between pings of a silent link.
HEARTBEAT_S = 20.0

TakePush = Callable[[UUID, ContextPush], Awaitable[PushAnswer]]

log = structlog.get_logger("chatd.agents")


async def serve_link(
    request: web.Request,
    directory: Directory,
    agent_id: UUID,
    *,
    take_push: TakePush | None,
    permitted: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> web.WebSocketResponse:
    """
    Serve one agent's link until it ends; without *take_push* its context is not taken.

    The link is served within *permitted*, which ends that by Unauthorised once the agent may not.
    """
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
            agent_id=agent_id,
            boot_id=greeting.boot_id,
            name=greeting.name,
            peer=peer,
            streams_url=greeting.streams_url,
            pushes_context=greeting.pushes_context and take_push is not None,
        )
        directory.connect(connection)
        log.info("agent connected", action="agent_connected", agent_id=str(agent_id), name=greeting.name)
        return HelloResult(protocol_version=PROTOCOL_VERSION, server_version=VERSION, agent_id=str(agent_id))

    async def ping(_: dict[str, Any]) -> Empty:
        return Empty()

    async def tools_changed(_: dict[str, Any]) -> Empty:
        if connection is not None:
            connection.forget_tools()
        return Empty()

    handlers: dict[str, Handler] = {HELLO: hello, PING: ping, TOOLS_CHANGED: tools_changed}
    if take_push is not None:
        handlers[CONTEXT_PUSH] = partial(_take_push, agent_id, take_push)
    peer = JsonRpcPeer(send, handlers, notes={TOOLS_PROGRESS: partial(_take_progress, directory, agent_id)})
    try:
        await _run(peer, websocket, permitted)
    finally:
        if connection is not None:
            directory.disconnect(connection)
            log.info("agent gone", action="agent_gone", agent_id=str(agent_id))
        await websocket.close()
    return websocket


def _take_progress(directory: Directory, agent_id: UUID, params: dict[str, Any]) -> None:
    directory.progressed(agent_id, ToolProgress.model_validate(params))


async def _run(
    peer: JsonRpcPeer,
    websocket: web.WebSocketResponse,
    permitted: Callable[[], AbstractAsyncContextManager[None]],
) -> None:
    try:
        async with permitted():
            await peer.run(_frames(websocket))
    except Unauthorised as exc:
        await websocket.close(code=WSCloseCode.POLICY_VIOLATION, message=str(exc).encode())


async def _take_push(agent_id: UUID, take: TakePush, params: dict[str, Any]) -> PushAnswer:
    """Check the push, then store it; one that breaks a bound is refused whole."""

    def check() -> ContextPush | str:
        push = ContextPush.model_validate(params)
        return push_problem(push) or push

    # Megabytes to read and to hash.
    push = await asyncio.to_thread(check)
    if isinstance(push, str):
        log.warning("push refused", action="push_refused", agent_id=str(agent_id), reason=push)
        return PushAnswer(accepted=False, reason=push)
    return await take(agent_id, push)


async def _frames(websocket: web.WebSocketResponse) -> AsyncIterator[str | bytes]:
    async for message in websocket:
        if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
            yield message.data


async def serve_stream(request: web.Request, directory: Directory, stream_id: str) -> web.WebSocketResponse:
    """Hand a dialled-back stream to whoever asked for it; return when they are done with it."""
    # The agent pings, and its silence is its end; pings of ours would only say the same again.
    websocket = web.WebSocketResponse(
        max_msg_size=0, compress=False, receive_timeout=STREAM_SILENCE_S, autoping=False
    )
    await websocket.prepare(request)
    stream = IncomingStream(websocket=websocket)
    if not directory.deliver(stream_id, stream):
        await websocket.close(code=1008, message=b"nobody waits for this stream")
        return websocket
    try:
        await stream.done.wait()
    finally:
        await websocket.close(code=stream.close_code, message=stream.reason.encode())
    return websocket
