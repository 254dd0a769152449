"""Live streams: one chat's events (WebSocket or SSE), and the list of chats."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import structlog
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from chatd.errors import NotFound
from chatd.routes.chats import _number, chat_of_caller
from chatd.routes.context import identity, services
from chatd.store import queries
from chatd.stream.sync import chat_events
from chatd.wire import StreamEvent

__all__ = ["routes"]

# Seconds between pings of a silent WebSocket; proxies cut silence at 60.
HEARTBEAT_S = 25.0
# Seconds without news after which the list's stream says that we live.
WATCH_ALIVE_S = 25.0
# Bytes a client may send in one frame: it has nothing to say here.
MAX_CLIENT_FRAME_BYTES = 4096

routes = web.RouteTableDef()
log = structlog.get_logger("chatd.streams")


def _is_upgrade(request: web.Request) -> bool:
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def render_batch(events: list[StreamEvent]) -> str:
    """Events as one JSON array."""
    return "[" + ",".join(event.model_dump_json(exclude_none=True) for event in events) + "]"


@routes.get("/api/experimental/chats/{chat_id}/stream")
async def stream(request: web.Request) -> web.StreamResponse:
    """One chat's events: JSON arrays over WebSocket, or one event a message over SSE."""
    chat = await chat_of_caller(request)
    last_seen = request.headers.get("Last-Event-ID", "")
    after_id = _number(request, "after_id", default=0, low=0, high=2**62)
    if last_seen.isdecimal():
        after_id = max(after_id, int(last_seen[:18]))
    parts = services(request)
    events = chat_events(parts.store, parts.hub, parts.buffer, chat.id, after_id=after_id)
    async with contextlib.aclosing(events):
        if _is_upgrade(request):
            return await _send_frames(request, _batches(events))
        return await _send_sse(request, events)


async def _batches(events: AsyncIterator[list[StreamEvent]]) -> AsyncIterator[str]:
    async for batch in events:
        # An empty one goes out too: by it a page knows that we live.
        yield render_batch(batch)


@contextlib.contextmanager
def _ending_when_broken() -> Iterator[None]:
    """A stream that can't go on ends, so that its client learns of it and comes back."""
    try:
        yield
    except ConnectionError:
        return
    except Exception:
        log.exception("stream failed", action="stream_failed")


async def _send_frames(request: web.Request, frames: AsyncIterator[str]) -> web.WebSocketResponse:
    """Send text frames until either side ends."""
    websocket = web.WebSocketResponse(
        heartbeat=HEARTBEAT_S, compress=False, max_msg_size=MAX_CLIENT_FRAME_BYTES
    )
    await websocket.prepare(request)

    async def send() -> None:
        with _ending_when_broken():
            async for frame in frames:
                await websocket.send_str(frame)
        await websocket.close(code=WSCloseCode.INTERNAL_ERROR)

    sender = asyncio.get_running_loop().create_task(send())
    try:
        async for message in websocket:
            if message.type is WSMsgType.ERROR:
                break
    finally:
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)
        await websocket.close()
    return websocket


async def _send_sse(request: web.Request, events: AsyncIterator[list[StreamEvent]]) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    with _ending_when_broken():
        async for batch in events:
            text = "".join(_sse(event) for event in batch) or ": still here\n\n"
            await response.write(text.encode())
    return response


def _sse(event: StreamEvent) -> str:
    head = f"id: {event.message.id}\n" if event.type == "message" else ""
    return f"{head}event: {event.type}\ndata: {event.model_dump_json(exclude_none=True)}\n\n"


@routes.get("/api/experimental/chats/watch")
async def watch(request: web.Request) -> web.WebSocketResponse:
    """Every chat of the caller that is created or changes."""
    return await _send_frames(request, _changed_chats(request))


async def _changed_chats(request: web.Request) -> AsyncIterator[str]:
    parts, owner_id = services(request), identity(request).user_id
    with parts.hub.watch_owner(owner_id) as subscription:
        while True:
            try:
                async with asyncio.timeout(WATCH_ALIVE_S):
                    changed = await subscription.wait()
            except TimeoutError:
                yield "[]"
                continue
            frames = [await _chat_event(request, chat_id, owner_id) for chat_id in changed]
            known = [frame for frame in frames if frame is not None]
            if known:
                yield "[" + ",".join(known) + "]"


async def _chat_event(request: web.Request, chat_id: UUID, owner_id: UUID) -> str | None:
    try:
        chat = await services(request).store.read(queries.get_chat, chat_id, owner_id=owner_id)
    except NotFound:
        return None
    return f'{{"type":"chat","chat":{chat.model_dump_json(exclude_none=True)}}}'
