"""
Streams between the daemon and its control plane: for each viewer one WebSocket, dialled by either side.

Dialled back, it works from behind a NAT. Fetched by the control plane, where the daemon has an address
that can be reached, it spares a proxy of the control plane's the way back. After the handshake the two
are the same.
"""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import structlog
from aiohttp import WSMsgType, web

from agentd.errors import NotFound
from agentd.viewers import Admission, Viewers
from agentd.wire.upgrade import ALIVE, SUBPROTOCOL

__all__ = ["CLOSE_TIMEOUT_S", "DialledStreams", "FetchedStreams", "accept", "websocket_url"]

# Bytes of one frame from a viewer; a clipboard of 1 MiB, with its line ends doubled, is the largest.
MAX_FRAME_BYTES = 4 * 1024 * 1024
# Seconds between pings, and without any progress of what was sent until the kernel gives the other side
# up. No limit is set on a pong: a slow viewer's waits behind all pictures that it has not taken yet.
PING_INTERVAL_S = 20
STALLED_S = 120
# Seconds for the handshake, and for the closing one: a control plane that is gone must not hold up a stop.
OPEN_TIMEOUT_S = 10
CLOSE_TIMEOUT_S = 1
# Seconds until a stream that was let in must have been fetched.
FETCH_LIMIT_S = 30.0

WebSocket = aiohttp.ClientWebSocketResponse | web.WebSocketResponse

log = structlog.get_logger("agentd.streams")


def websocket_url(base_url: str, path: str) -> str:
    """``http(s)://host/prefix`` and ``/path`` as ``ws(s)://host/prefix/path``."""
    parts = urlsplit(base_url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + path, "", ""))


class SocketEnd:
    """A viewer at the other end of a WebSocket, which leaves pings to us."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def send(self, data: bytes) -> None:
        """Send one binary frame, waiting for room."""
        await self._websocket.send_bytes(data)

    async def ping(self) -> None:
        """Ask for a sign of life."""
        await self._websocket.ping(ALIVE)

    async def receive(self) -> bytes | None:
        """The next frame's bytes, none for a sign of life; None at the end."""
        while True:
            message = await self._websocket.receive()
            match message.type:
                case WSMsgType.BINARY:
                    return bytes(message.data)
                case WSMsgType.TEXT:
                    return bytes(message.data.encode())
                case WSMsgType.PONG:
                    return b""
                case WSMsgType.PING:
                    with suppress(ConnectionError):
                        await self._websocket.pong(bytes(message.data))
                case _:
                    return None


async def _carry(websocket: WebSocket, viewers: Viewers, admission: Admission) -> None:
    """
    Carry the stream of a viewer that was let in over *websocket*, until either side ends; close it.

    Cancellation: the stream ends as at any other end.
    """
    _limit_stalls(websocket)
    pinging = asyncio.create_task(_ping(websocket), name="stream pings")
    try:
        ending = await viewers.run(admission, SocketEnd(websocket))
    finally:
        pinging.cancel()
    await websocket.close(code=ending.code, message=ending.reason.encode())


async def accept(request: web.Request, viewers: Viewers, admission: Admission) -> web.WebSocketResponse:
    """Upgrade *request* and carry the stream over it; the admission is given up in any case."""
    websocket = web.WebSocketResponse(
        protocols=(SUBPROTOCOL,),
        compress=False,
        max_msg_size=MAX_FRAME_BYTES,
        timeout=CLOSE_TIMEOUT_S,
        autoping=False,
    )
    try:
        await websocket.prepare(request)
        await _carry(websocket, viewers, admission)
    finally:
        admission.close()
    return websocket


async def _ping(websocket: WebSocket) -> None:
    with suppress(ConnectionError):
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            await websocket.ping()


def _limit_stalls(websocket: WebSocket) -> None:
    sock = websocket.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_S * 1000)


class DialledStreams:
    """
    The streams of one link that we dial.

    Args:
        viewers: run the streams.
        control_url: of the control plane, ``http(s)://host/prefix``.
        headers: the credential.
    """

    def __init__(self, viewers: Viewers, *, control_url: str, headers: Mapping[str, str]) -> None:
        self._viewers = viewers
        # Where the link is at the moment.
        self.control_url = control_url
        self._headers = dict(headers)
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(self, stream_id: str, admission: Admission) -> None:
        """Carry the stream of a viewer that was let in, until either side ends."""
        url = websocket_url(self.control_url, f"/api/agent/streams/{stream_id}")
        task = asyncio.get_running_loop().create_task(self._dial(url, admission), name=f"stream {stream_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End every stream."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _dial(self, url: str, admission: Admission) -> None:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(connect=OPEN_TIMEOUT_S)) as session,
                session.ws_connect(
                    url,
                    headers=self._headers,
                    max_msg_size=MAX_FRAME_BYTES,
                    autoping=False,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                ) as websocket,
            ):
                await _carry(websocket, self._viewers, admission)
        except (OSError, aiohttp.ClientError) as exc:
            log.warning("stream failed", action="stream_failed", reason=str(exc))
        finally:
            with suppress(OSError):
                admission.close()


class FetchedStreams:
    """
    Streams that the control plane fetches: it asks for one over the link, then dials us with its id.

    The id is the credential: the control plane makes it up, it travels over the link alone, works once
    and not for long.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Admission, asyncio.TimerHandle]] = {}

    def expect(self, stream_id: str, admission: Admission) -> None:
        """Hold the place of a viewer that was let in until its stream is fetched."""
        timer = asyncio.get_running_loop().call_later(FETCH_LIMIT_S, self._give_up, stream_id)
        self._waiting[stream_id] = (admission, timer)

    def take(self, stream_id: str) -> Admission:
        """
        Whose stream it is; the caller runs or closes it.

        Raises:
            NotFound: nobody asked for it, or too long ago.
        """
        found = self._waiting.pop(stream_id, None)
        if found is None:
            raise NotFound("nobody asked for this stream, or too long ago")
        found[1].cancel()
        return found[0]

    def close(self) -> None:
        """Give up those that wait."""
        for stream_id in tuple(self._waiting):
            self._give_up(stream_id)

    def _give_up(self, stream_id: str) -> None:
        self.take(stream_id).close()
