"""
One viewer's RFB bytes between its WebSocket and the workspace's.

Owns the copying, the look again whether the viewer still may, and how an end is told to the other
side. What a viewer may do with the desktop is enforced by the workspace.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import WSCloseCode, web

from agentd.wire.upgrade import SUBPROTOCOL, upgrade_trouble
from chatd.agents.copying import Ending, WebSocket, copy
from chatd.agents.streams import IncomingStream
from chatd.errors import BadRequest, ChatdError

__all__ = ["MAX_VIEWER_FRAME_BYTES", "carry", "require_upgrade"]

# Seconds between pings of a viewer; proxies cut silence at 60.
PING_S = 25.0
# Seconds without any progress of what was sent after which the kernel gives a viewer up. No limit is
# set on its pong: that waits behind all pictures that a slow viewer has not taken yet.
STALLED_S = 60
# Bytes of one frame from a viewer; a clipboard of 1 MiB, with its line ends doubled, is the largest.
MAX_VIEWER_FRAME_BYTES = 4 * 1024 * 1024
# Seconds between two looks whether a viewer still may watch.
RECHECK_S = 10.0
# Bytes of a WebSocket's close reason.
MAX_REASON_BYTES = 123

log = structlog.get_logger("chatd.viewing")


def require_upgrade(request: web.Request) -> None:
    """Refuse what can't become a stream of RFB; raises BadRequest."""
    if trouble := upgrade_trouble(request.headers):
        raise BadRequest(trouble)


async def carry(
    request: web.Request, upstream: IncomingStream, still_may: Callable[[], Awaitable[None]]
) -> web.WebSocketResponse:
    """
    Upgrade *request* and copy both ways until either side ends or *still_may* raises a ChatdError.

    Back-pressure: each direction waits for its writer, so memory stays bounded.

    Cancellation: both sides are closed.
    """
    viewer = web.WebSocketResponse(
        protocols=(SUBPROTOCOL,), compress=False, max_msg_size=MAX_VIEWER_FRAME_BYTES, autoping=False
    )
    ending = Ending(code=WSCloseCode.GOING_AWAY, reason="the server is going away")
    try:
        with contextlib.suppress(ConnectionError):
            await viewer.prepare(request)
            _limit_stalls(request)
            ending = await _copy_both(viewer, upstream.websocket, still_may)
    finally:
        upstream.end(ending.code, ending.reason)
        await viewer.close(code=ending.code, message=ending.reason.encode()[:MAX_REASON_BYTES])
    return viewer


async def _copy_both(
    viewer: web.WebSocketResponse, desktop: WebSocket, still_may: Callable[[], Awaitable[None]]
) -> Ending:
    loop = asyncio.get_running_loop()
    tasks = [
        loop.create_task(copy(desktop, viewer, "the desktop ended the stream")),
        loop.create_task(copy(viewer, desktop, "the viewer left")),
        loop.create_task(_watch_permission(still_may)),
        loop.create_task(_ping(viewer)),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ping(viewer: web.WebSocketResponse) -> Ending:
    with contextlib.suppress(ConnectionError):
        while True:
            await asyncio.sleep(PING_S)
            await viewer.ping()
    return Ending(code=WSCloseCode.OK, reason="the viewer left")


def _limit_stalls(request: web.Request) -> None:
    sock = request.transport.get_extra_info("socket") if request.transport is not None else None
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_S * 1000)


async def _watch_permission(still_may: Callable[[], Awaitable[None]]) -> Ending:
    while True:
        await asyncio.sleep(RECHECK_S)
        try:
            await still_may()
        except ChatdError as exc:
            log.info("viewer sent away", action="viewer_revoked", code=exc.code)
            return Ending(code=WSCloseCode.POLICY_VIOLATION, reason="you may not watch this any more")
