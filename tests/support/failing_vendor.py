"""
A vendor on loopback that fails as it is told, below HTTP: bytes in a table, then an ending.

The failure's name is the first word of the request's path, so one server serves them all.
"""

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import h2.config
import h2.connection
import h2.events

__all__ = ["Failure", "Http2Failure", "failing_vendor", "failing_vendor_http2"]

Ending = Literal["close", "reset", "hang"]
# Linger on, for no time: closing sends a reset.
RESET = struct.pack("ii", 1, 0)
LARGEST_REQUEST = 1 << 20
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is sent instead of an answer, and how the connection ends."""

    sent: bytes = b""
    ending: Ending = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Http2Failure:
    """What is sent of an answer, and the frame behind it."""

    sent: bytes = b""
    frame: Literal["reset", "goaway", "goaway_all", "close"]
    code: int = 0


@asynccontextmanager
async def failing_vendor(
    find: Callable[[str], Failure], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Listen; the address is ``127.0.0.1:port``."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readexactly(1)
            if head == b"\x16":
                # A client that speaks TLS to a server that does not.
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                return
            head += await reader.readuntil(b"\r\n\r\n")
            name = head.split(b" ", 2)[1].decode().split("/")[1]
            length = _LENGTH.search(head)
            await reader.readexactly(min(int(length[1]) if length else 0, LARGEST_REQUEST))
            failure = find(name)
            writer.write(failure.sent)
            await writer.drain()
            if failure.ending == "hang":
                await reader.read()
            if failure.ending == "reset":
                raw: socket.socket = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def failing_vendor_http2(find: Callable[[str], Http2Failure]) -> AsyncIterator[str]:
    """Listen for HTTP/2 without TLS (prior knowledge); the address is ``127.0.0.1:port``."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        paths: dict[int, str] = {}
        try:
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        path = dict(event.headers)[b":path"].decode()
                        paths[event.stream_id] = path.split("/")[1]
                    elif isinstance(event, h2.events.StreamEnded) and _fail(
                        connection, event.stream_id, find(paths[event.stream_id])
                    ):
                        return
                writer.write(connection.data_to_send())
        except ConnectionError:
            pass
        finally:
            writer.write(connection.data_to_send())
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _fail(connection: h2.connection.H2Connection, stream: int, failure: Http2Failure) -> bool:
    """Answer and fail; whether the connection is to be closed."""
    if failure.sent:
        headers = [(":status", "200"), ("content-type", "text/event-stream")]
        connection.send_headers(stream, headers)
        connection.send_data(stream, failure.sent)
    match failure.frame:
        case "reset":
            connection.reset_stream(stream, failure.code)
        case "goaway":
            connection.close_connection(failure.code, last_stream_id=0)
        case "goaway_all":
            connection.close_connection(failure.code, last_stream_id=stream)
        case "close":
            return True
    return failure.frame != "reset"
