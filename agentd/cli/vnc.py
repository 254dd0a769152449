"""
A local TCP port for VNC programs: each connection becomes one stream of a desktop.

Bytes are copied as they are; what the program may do is enforced by whoever serves the stream. Only
programs of the user who opened the port are served: RFB has no login of its own here.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import aiohttp
from aiohttp import WSMsgType

from agentd.cli.exits import CliError, Exit

__all__ = ["VncPort", "parse_listen"]

# Bytes read at once.
CHUNK_BYTES = 64 * 1024
# Seconds for a program that is refused to hear why.
REFUSAL_LIMIT_S = 10.0
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
REASONS = {
    400: "there is no desktop to show: the chat has no workspace, or it is not connected",
    401: "the token is not valid (any more); is it one of this control plane, or of another `agentd up`?",
    404: "there is no such chat, workspace or desktop",
    409: "another person has control of this desktop; ask for it to be given back, or use --view-only",
}

Connect = Callable[[], AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]]


def parse_listen(text: str) -> tuple[str, int]:
    """
    ``HOST:PORT``, a loopback address.

    Raises:
        CliError: it is none.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if host not in LOOPBACK or not port.isdecimal() or int(port) > 65_535:
        msg = f"{text!r} is no loopback address with a port, such as 127.0.0.1:5901; for others use ssh -L"
        raise CliError(Exit.USAGE, msg, code="usage")
    return host, int(port)


class VncPort:
    """
    A listening port.

    Args:
        connect: opens a stream's WebSocket; raises ``aiohttp.ClientError`` when it is refused.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> str:
        """
        Listen; returns the address as ``HOST:PORT``.

        Raises:
            CliError: the port is taken.
        """
        try:
            self._server = await asyncio.start_server(self._accept, host, port)
        except OSError as exc:
            msg = f"can't listen on {host}:{port}: {exc.strerror}; choose another with --listen"
            raise CliError(Exit.CANNOT_START, msg, code="port_in_use") from exc
        bound = self._server.sockets[0].getsockname()[:2]
        return f"[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"{bound[0]}:{bound[1]}"

    async def close(self) -> None:
        """Stop listening and end every stream."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await self._serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await asyncio.to_thread(_uid_of_peer, writer) != os.getuid():
            await _refuse(reader, writer, "this port serves the user who opened it")
            return
        try:
            async with self._connect() as websocket:
                await _copy_both(reader, writer, websocket)
        except aiohttp.WSServerHandshakeError as exc:
            await _refuse(
                reader, writer, REASONS.get(exc.status, f"the desktop can't be shown ({exc.status})")
            )
        except (aiohttp.ClientError, OSError) as exc:
            await _refuse(reader, writer, f"nobody serves this desktop: {exc}")


async def _copy_both(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, websocket: aiohttp.ClientWebSocketResponse
) -> None:
    directions = {
        asyncio.ensure_future(_to_desktop(reader, websocket)),
        asyncio.ensure_future(_to_program(websocket, writer)),
    }
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in directions:
            task.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def _to_desktop(reader: asyncio.StreamReader, websocket: aiohttp.ClientWebSocketResponse) -> None:
    with suppress(OSError, aiohttp.ClientError):
        while data := await reader.read(CHUNK_BYTES):
            await websocket.send_bytes(data)


async def _to_program(websocket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        async for message in websocket:
            if message.type is WSMsgType.BINARY:
                writer.write(message.data)
                await writer.drain()


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reason: str) -> None:
    """Say no in RFB, so that the program shows the reason (RFC 6143, 7.1.2)."""
    text = reason.encode()
    with suppress(OSError, asyncio.IncompleteReadError):
        async with asyncio.timeout(REFUSAL_LIMIT_S):
            writer.write(b"RFB 003.008\n")
            version = await reader.readexactly(12)
            none = struct.pack(">I", 0) if version < b"RFB 003.007\n" else b"\0"
            writer.write(none + struct.pack(">I", len(text)) + text)
            await writer.drain()
            await reader.read()


def _uid_of_peer(writer: asyncio.StreamWriter) -> int | None:
    """The user at the other end of a loopback connection, as the kernel's table says; None: not found."""
    sock = writer.get_extra_info("socket")
    ours, peer = sock.getsockname(), sock.getpeername()
    table = "tcp6" if sock.family == socket.AF_INET6 else "tcp"
    wanted = (_hex_address(sock.family, *peer[:2]), _hex_address(sock.family, *ours[:2]))
    for line in Path("/proc/net", table).read_text().splitlines()[1:]:
        fields = line.split()
        if (fields[1], fields[2]) == wanted:
            return int(fields[7])
    return None


def _hex_address(family: int, host: str, port: int) -> str:
    """As ``/proc/net/tcp`` writes it: words of the address in the machine's own byte order."""
    packed = socket.inet_pton(family, host)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
