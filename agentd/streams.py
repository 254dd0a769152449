"""One desktop stream: RFB bytes between a local socket and a WebSocket that we dial."""

import asyncio
from collections.abc import Mapping

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

__all__ = ["CLOSE_TIMEOUT_S", "serve_stream"]

# Bytes read at once. Xvnc writes at most 64 KiB pieces; more only adds latency.
CHUNK_BYTES = 64 * 1024
# Bytes that may wait in the WebSocket before we stop reading from the desktop.
WRITE_LIMIT_BYTES = 256 * 1024
# Seconds for the closing handshake: a control plane that is gone must not hold up a stop.
CLOSE_TIMEOUT_S = 1

log = structlog.get_logger("agentd.streams")


async def serve_stream(
    url: str, headers: Mapping[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """
    Copy both ways until either side ends; then close both.

    Back-pressure: each direction waits for its writer, so memory stays bounded.

    Cancellation: both sides are closed.
    """
    try:
        async with connect(
            url,
            additional_headers=dict(headers),
            compression=None,
            max_size=None,
            proxy=None,
            write_limit=WRITE_LIMIT_BYTES,
            open_timeout=10,
            close_timeout=CLOSE_TIMEOUT_S,
        ) as websocket:
            await _relay(websocket, reader, writer)
    except (OSError, WebSocketException, TimeoutError) as exc:
        log.info("stream ended", action="stream_end", reason=str(exc))
    finally:
        writer.close()


async def _relay(
    websocket: ClientConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    directions = {
        asyncio.ensure_future(_from_desktop(websocket, reader)),
        asyncio.ensure_future(_to_desktop(websocket, writer)),
    }
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in directions:
            task.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def _from_desktop(websocket: ClientConnection, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(CHUNK_BYTES):
        await websocket.send(data)


async def _to_desktop(websocket: ClientConnection, writer: asyncio.StreamWriter) -> None:
    try:
        async for data in websocket:
            writer.write(data if isinstance(data, bytes) else data.encode())
            await writer.drain()
    except ConnectionClosed:
        return
