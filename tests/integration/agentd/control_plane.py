"""A control plane for one agent: aiohttp on loopback, and a peer for each link."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from pydantic import BaseModel

from agentd.wire.link import HELLO, PROTOCOL_VERSION, HelloParams, HelloResult
from agentd.wire.peer import Handler, JsonRpcPeer, RpcError

# Seconds for anything that might hang. Generous: other tests share the machine.
LIMIT_S = 30
TOKEN = "agent_token"


@dataclass
class LiveLink:
    """One link: its peer, its socket, what came over it, and whether it has ended."""

    peer: JsonRpcPeer
    websocket: web.WebSocketResponse
    hello: HelloParams
    received: list[str]
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def drop(self) -> None:
        """Tear the connection down, as a network does."""
        transport = self.websocket._req.transport if self.websocket._req else None
        assert transport is not None
        transport.abort()
        await self.ended.wait()


@dataclass
class ControlPlane:
    """Links and streams as they arrive; *answer_hello* may refuse one."""

    url: str = ""
    links: asyncio.Queue[LiveLink] = field(default_factory=asyncio.Queue)
    streams: asyncio.Queue[tuple[str, web.WebSocketResponse]] = field(default_factory=asyncio.Queue)
    refuse_hello: RpcError | None = None
    is_deaf: bool = False
    dials: int = 0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    handlers: dict[str, Handler] = field(default_factory=dict)

    async def serve_link(self, request: web.Request) -> web.StreamResponse:
        """What an agent dials."""
        self.dials += 1
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        received: list[str] = []
        link: LiveLink | None = None

        async def send(text: str) -> None:
            await websocket.send_str(text)

        async def hello(params: dict[str, Any]) -> BaseModel:
            nonlocal link
            if self.refuse_hello is not None:
                raise self.refuse_hello
            link = LiveLink(peer, websocket, HelloParams.model_validate(params), received)
            self.links.put_nowait(link)
            return HelloResult(protocol_version=PROTOCOL_VERSION, server_version="1", agent_id="agent")

        peer = JsonRpcPeer(send, {HELLO: hello, **self.handlers})
        await peer.run(_frames(websocket, received, self))
        if link is not None:
            link.ended.set()
        return websocket

    async def serve_stream(self, request: web.Request) -> web.StreamResponse:
        """What an agent dials back."""
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        self.streams.put_nowait((request.match_info["id"], websocket))
        await self.stopping.wait()
        return websocket


async def _frames(
    websocket: web.WebSocketResponse, received: list[str], plane: ControlPlane
) -> AsyncIterator[str | bytes]:
    async for message in websocket:
        if message.type is WSMsgType.TEXT:
            received.append(message.data)
            yield message.data
        if plane.is_deaf:
            await plane.stopping.wait()


@asynccontextmanager
async def control_plane(plane: ControlPlane | None = None) -> AsyncIterator[ControlPlane]:
    """A control plane that listens."""
    plane = plane or ControlPlane()
    app = web.Application()
    app.add_routes([
        web.get("/base/api/agent/link", plane.serve_link),
        web.get("/base/api/agent/streams/{id}", plane.serve_stream),
    ])  # fmt: skip
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        plane.url = f"http://127.0.0.1:{runner.addresses[0][1]}/base/"
        yield plane
    finally:
        plane.stopping.set()
        await runner.cleanup()


@asynccontextmanager
async def running(work: Callable[[], Awaitable[None]]) -> AsyncIterator[asyncio.Task[None]]:
    """*work* as a task that is cancelled at the end."""
    task = asyncio.ensure_future(work())
    try:
        async with asyncio.timeout(LIMIT_S):
            yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
