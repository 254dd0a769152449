"""
Many VNC viewers in one process, with noVNC's settings: Tight, fences, continuous updates.

Usage: ``viewers.py COUNT SECONDS TARGET [TOKEN]``; a target is ``unix:PATH``, a ``ws://`` address, or
``local:SOCKET:/path``, a WebSocket over a Unix socket. Prints one line of JSON: updates and bytes of each
viewer in that time, and round trips of a fence in milliseconds, measured by the first viewer.
"""

# ruff: noqa: T201 -- a program that prints, and waits for figures
import asyncio
import json
import struct
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp

from computer.session.sockets import connect_unix

ENCODINGS = (1, 7, 0, -26, -254, -224, -308, -312, -313)
FENCE, END_OF_UPDATES, UPDATE, CUT_TEXT = 248, 150, 0, 3
LAST_RECTANGLE, COPY, TIGHT, RAW, SIZE = -224, 1, 7, 0, -308
# Seconds until every viewer must have seen the screen.
FIRST_PICTURE_S = 60
# Payload of our own fences; the server's have another.
OURS = b"bench"


class Wire(Protocol):
    """A connection."""

    async def send(self, data: bytes) -> None:
        """Send bytes."""

    async def receive(self) -> bytes:
        """The next bytes; b"" at the end."""


@dataclass
class Viewer:
    """One viewer; skips pixels, answers fences."""

    out: bytearray = field(default_factory=bytearray)
    updates: int = 0
    received: int = 0
    round_trips: list[float] = field(default_factory=list)
    sent_at: float = 0.0
    is_live: bool = False

    def parse(self) -> Generator[int, bytes, None]:
        """Yield how many bytes are needed next."""
        yield 12
        self.out += b"RFB 003.008\n"
        yield (yield 1)[0]
        self.out += b"\x01"
        yield 4
        self.out += b"\x01"
        head = yield 24
        yield struct.unpack(">I", head[20:])[0]
        size = struct.unpack(">HH", head[:4])
        self.out += struct.pack(f">BxH{len(ENCODINGS)}i", 2, len(ENCODINGS), *ENCODINGS)
        self.out += struct.pack(">BBHHHH", 3, 0, 0, 0, *size)
        while True:
            kind = (yield 1)[0]
            if kind == UPDATE:
                yield from self._update()
                if not self.is_live:
                    self.out += struct.pack(">BBHHHH", 3, 1, 0, 0, *size)
            elif kind == END_OF_UPDATES:
                if not self.is_live:
                    self.out += struct.pack(">BBHHHH", 150, 1, 0, 0, *size)
                self.is_live = True
            elif kind == FENCE:
                yield from self._fence()
            elif kind == CUT_TEXT:
                yield abs(struct.unpack(">xxxi", (yield 7))[0])

    def ask(self) -> None:
        """Send a fence of ours."""
        self.sent_at = time.perf_counter()
        self.out += struct.pack(">BxxxIB", FENCE, 1 << 31, len(OURS)) + OURS

    def _fence(self) -> Generator[int, bytes, None]:
        flags, length = struct.unpack(">xxxIB", (yield 8))
        payload = yield length
        if flags & 1 << 31:
            self.out += struct.pack(">BxxxIB", FENCE, flags & 7, length) + payload
        elif payload == OURS:
            self.round_trips.append((time.perf_counter() - self.sent_at) * 1e3)

    def _update(self) -> Generator[int, bytes, None]:
        (count,) = struct.unpack(">xH", (yield 3))
        for _ in range(count):
            _, _, width, height, encoding = struct.unpack(">HHHHi", (yield 12))
            if encoding == LAST_RECTANGLE:
                break
            if encoding == RAW:
                yield width * height * 4
            elif encoding == COPY:
                yield 4
            elif encoding == SIZE:
                yield 16 * (yield 4)[0]
            elif encoding == TIGHT:
                yield from _tight(width, height)
        self.updates += 1


def _tight(width: int, height: int) -> Generator[int, bytes, None]:
    control = (yield 1)[0] >> 4
    if control == 8:
        yield 3
        return
    plain = None
    if control != 9:
        filtering = (yield 1)[0] if control & 4 else 0
        plain = width * height * 3
        if filtering == 1:
            colours = (yield 1)[0] + 1
            yield 3 * colours
            plain = ((width + 7) // 8 if colours == 2 else width) * height
    if plain is not None and plain < 12:
        yield plain
        return
    length, shift = 0, 0
    while True:
        byte = (yield 1)[0]
        length |= (byte & (0x7F if shift < 14 else 0xFF)) << shift
        shift += 7
        if shift > 14 or not byte & 0x80:
            break
    yield length


async def run(viewer: Viewer, wire: Wire) -> None:
    """Watch until the connection ends."""
    buffer, parser = bytearray(), viewer.parse()
    needed = next(parser)
    while data := await wire.receive():
        viewer.received += len(data)
        buffer += data
        start = 0
        while len(buffer) - start >= needed:
            part = bytes(buffer[start : start + needed]) if needed < 4096 else b""
            start += needed
            needed = parser.send(part)
        del buffer[:start]
        if viewer.out:
            sending = bytes(viewer.out)
            viewer.out.clear()
            await wire.send(sending)


class SocketWire:
    """A Unix socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        self._writer.write(data)

    async def receive(self) -> bytes:
        """The next bytes."""
        return await self._reader.read(262_144)


class WebSocketWire:
    """A WebSocket."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._websocket = websocket

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        await self._websocket.send_bytes(data)

    async def receive(self) -> bytes:
        """The next bytes."""
        message = await self._websocket.receive()
        return message.data if message.type is aiohttp.WSMsgType.BINARY else b""


async def open_wire(target: str, session: aiohttp.ClientSession) -> Wire:
    """Connect to a target."""
    if target.startswith("unix:"):
        return SocketWire(*await connect_unix(Path(target[5:])))
    return WebSocketWire(await session.ws_connect(target, protocols=("binary",), max_msg_size=0))


async def measure(count: int, seconds: float, target: str, token: str) -> dict[str, object]:
    """Watch with *count* viewers; figures of *seconds* after all have come."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(limit=0)
    if target.startswith("local:"):
        _, path, target = target.split(":", 2)
        connector, target = aiohttp.UnixConnector(path, limit=0), f"ws://agentd{target}"
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        viewers = [Viewer() for _ in range(count)]
        wires = [await open_wire(target, session) for _ in viewers]
        tasks = [asyncio.create_task(run(*pair)) for pair in zip(viewers, wires, strict=True)]
        async with asyncio.timeout(FIRST_PICTURE_S):
            while not all(viewer.updates for viewer in viewers):
                for task in tasks:
                    if task.done():
                        task.result()
                        raise RuntimeError("a viewer's stream ended at once")
                await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        print("ready", flush=True)
        before = [(viewer.updates, viewer.received) for viewer in viewers]
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            viewers[0].ask()
            await wires[0].send(bytes(viewers[0].out))
            viewers[0].out.clear()
            await asyncio.sleep(0.1)
        after = [(viewer.updates, viewer.received) for viewer in viewers]
        print("done", flush=True)
        # Whoever measures still looks at the processes behind these connections.
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        return {
            "updates": [b[0] - a[0] for a, b in zip(before, after, strict=True)],
            "bytes": [b[1] - a[1] for a, b in zip(before, after, strict=True)],
            "round_trips": viewers[0].round_trips,
            "alive": sum(not task.done() for task in tasks),
        }


if __name__ == "__main__":
    arguments = sys.argv[1:]
    token = arguments[3] if len(arguments) > 3 else ""
    figures = asyncio.run(measure(int(arguments[0]), float(arguments[1]), arguments[2], token))
    print(json.dumps(figures))
