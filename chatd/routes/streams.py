"""Live streams: one chat's events (WebSocket or SSE), and the list of chats."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from functools import partial
from uuid import UUID

import structlog
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from chatd.constants import MAX_CLIENT_FRAME_BYTES, SUBSCRIBER_STALL_S
from chatd.errors import NotFound, Unauthorised
from chatd.routes.auth import identify
from chatd.routes.bodies import StreamFrom
from chatd.routes.chats import readable_chat
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_query
from chatd.routes.permission import STALE_S, while_permitted
from chatd.store import metadata, queries
from chatd.store.store import Store
from chatd.stream.sync import chat_events, pending_call
from chatd.watch_wire import WatchEvent, WatchKind
from chatd.wire import StreamEvent

__all__ = ["routes"]

# Seconds between pings of a silent WebSocket; proxies cut silence at 60.
HEARTBEAT_S = 25.0
# Seconds without news after which the list's stream says that we live.
WATCH_ALIVE_S = 25.0

routes = web.RouteTableDef()
log = structlog.get_logger("chatd.streams")


def _is_upgrade(request: web.Request) -> bool:
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def render_batch(events: list[StreamEvent]) -> str:
    """Events as one JSON array."""
    return "[" + ",".join(event.to_json() for event in events) + "]"


@routes.get("/api/experimental/chats/{chat_id}/stream")
@describe(query=StreamFrom, answer=StreamEvent, is_stream=True)
async def stream(request: web.Request) -> web.StreamResponse:
    """One chat's events: JSON arrays over WebSocket, or one event a message over SSE."""
    chat = await readable_chat(request)
    last_seen = request.headers.get("Last-Event-ID", "")
    after_id = read_query(request, StreamFrom).after_id
    if last_seen.isdecimal():
        after_id = max(after_id, int(last_seen[:18]))
    parts = services(request)
    events: AsyncGenerator[list[StreamEvent], None] = chat_events(
        parts.store, parts.hub, parts.buffer, chat.id, after_id=after_id, elsewhere=parts.elsewhere
    )
    is_owner = chat.owner_id == identity(request).user_id
    # Who only reads leaves the owner's mark where it is.
    reading = _being_read(parts.store, chat.id) if is_owner else contextlib.nullcontext()
    if not is_owner:
        events = _while_allowed(request, events)
    async with reading, contextlib.aclosing(events):
        if _is_upgrade(request):
            async with contextlib.aclosing(_batches(events)) as frames:
                return await _send_frames(request, frames)
        return await _send_sse(request, events)


async def _while_allowed(
    request: web.Request, events: AsyncGenerator[list[StreamEvent], None]
) -> AsyncGenerator[list[StreamEvent], None]:
    """*events*, until the chat is shared with the caller no longer."""
    async with contextlib.aclosing(events):
        async for batch in events:
            await readable_chat(request)
            yield batch


@contextlib.asynccontextmanager
async def _being_read(store: Store, chat_id: UUID) -> AsyncIterator[None]:
    """The owner looks: what is there when they come and when they go counts as read."""
    await _mark_read(store, chat_id)
    try:
        yield
    finally:
        # A mark that can't be set now is set the next time; the stream has ended anyhow.
        with _ending_when_broken(), contextlib.suppress(NotFound):
            await _mark_read(store, chat_id)


async def _mark_read(store: Store, chat_id: UUID) -> None:
    # Most come back to a chat that they have read: thousands of them are no thousands of writes.
    if not await store.read_shared(metadata.is_read, chat_id):
        await store.change(chat_id, metadata.mark_read)


async def _batches(events: AsyncIterator[list[StreamEvent]]) -> AsyncGenerator[str, None]:
    async for batch in events:
        # An empty one goes out too: by it a page knows that we live.
        yield render_batch(batch)


class _Stalled(Exception):
    """The client does not read: its connection was cut."""


@contextlib.asynccontextmanager
async def _in_time(request: web.Request) -> AsyncIterator[None]:
    """
    Send one frame, but don't wait for a client that does not read.

    Raises:
        _Stalled: it took too long; what is buffered for it is dropped with its connection.
    """
    try:
        async with asyncio.timeout(SUBSCRIBER_STALL_S):
            yield
    except TimeoutError:
        log.info("slow client cut off", action="stream_cut", path=request.path, after_s=SUBSCRIBER_STALL_S)
        if request.transport is not None:
            request.transport.abort()
        raise _Stalled from None


@contextlib.contextmanager
def _ending_when_broken() -> Iterator[None]:
    """A stream that can't go on ends, so that its client learns of it and comes back."""
    try:
        yield
    except (ConnectionError, _Stalled):
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
                async with _in_time(request):
                    await websocket.send_str(frame)
        await websocket.close(code=WSCloseCode.INTERNAL_ERROR)

    sender = asyncio.get_running_loop().create_task(send())
    code, reason = WSCloseCode.OK, b""
    try:
        async with while_permitted(partial(identify, request, max_age_s=STALE_S)):
            async for message in websocket:
                if message.type is WSMsgType.ERROR:
                    break
    except Unauthorised as exc:
        code, reason = WSCloseCode.POLICY_VIOLATION, str(exc).encode()
    finally:
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)
        await websocket.close(code=code, message=reason)
    return websocket


async def _send_sse(request: web.Request, events: AsyncIterator[list[StreamEvent]]) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    with _ending_when_broken(), contextlib.suppress(Unauthorised):
        async with while_permitted(partial(identify, request, max_age_s=STALE_S)):
            await _write_events(request, response, events)
    return response


async def _write_events(
    request: web.Request, response: web.StreamResponse, events: AsyncIterator[list[StreamEvent]]
) -> None:
    async for batch in events:
        text = "".join(_sse(event) for event in batch) or ": still here\n\n"
        async with _in_time(request):
            await response.write(text.encode())


def _sse(event: StreamEvent) -> str:
    head = f"id: {event.message.id}\n" if event.type == "message" else ""
    return f"{head}event: {event.type}\ndata: {event.to_json()}\n\n"


@routes.get("/api/experimental/chats/watch")
@describe(answer=list[WatchEvent], is_stream=True)
async def watch(request: web.Request) -> web.WebSocketResponse:
    """
    Every chat of the caller that is created or changes, and what changed of it.

    JSON arrays over WebSocket; an empty one says that we live.
    """
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
            frames = [
                await _chat_event(parts.store, chat_id, owner_id, subscription.take_kinds(chat_id))
                for chat_id in changed
            ]
            known = [frame for frame in frames if frame is not None]
            if known:
                yield "[" + ",".join(known) + "]"


async def _chat_event(store: Store, chat_id: UUID, owner_id: UUID, kinds: set[WatchKind]) -> str | None:
    calls = None
    try:
        chat = await store.read(queries.get_chat, chat_id, user_id=owner_id)
        if "action_required" in kinds:
            calls = tuple(map(pending_call, await store.read(queries.pending_calls, chat_id)))
    except NotFound:
        return None
    event = WatchEvent(kinds=tuple(sorted(kinds)), chat=chat, tool_calls=calls)
    return event.model_dump_json(exclude_none=True)
