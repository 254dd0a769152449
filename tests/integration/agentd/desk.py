"""A VNC server and a viewer that do only what a test tells them."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentd.relay import DesktopEnd, Ending, Relay, greet
from agentd.wire.control import ViewerGrant
from agentd.wishes import Wishes

# Seconds for anything that might hang. Generous: other tests share the machine.
LIMIT_S = 30
GREETING = b"RFB 003.008\n"
INIT = struct.pack(">HH16xI", 8, 4, 4) + b"desk"
HELLO = GREETING + b"\x01\x01"
# Version, security types, its result, ServerInit: what a viewer of 3.8 reads.
WELCOME = GREETING + b"\x01\x01" + bytes(4) + INIT


class Desk:
    """A server that greets, then sends what the test wants and remembers what it hears."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.ended = asyncio.Event()
        self.writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self._changed = asyncio.Condition()
        self.is_deaf = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        writer.write(GREETING)
        await reader.readexactly(12)
        writer.write(b"\x01\x01")
        await reader.readexactly(1)
        writer.write(bytes(4))
        await reader.readexactly(1)
        writer.write(INIT)
        self.writers.put_nowait(writer)
        while not self.is_deaf and (data := await reader.read(1 << 16)):
            async with self._changed:
                self.heard += data
                self._changed.notify_all()
        self.ended.set()
        writer.close()

    async def wait_heard(self, data: bytes) -> None:
        """Until exactly *data* has been heard (for longer, LIMIT_S)."""
        async with asyncio.timeout(LIMIT_S), self._changed:
            await self._changed.wait_for(lambda: len(self.heard) >= len(data))
        assert bytes(self.heard) == data


class Viewer:
    """The near end of a viewer's connection; clear *room* to take no bytes; *is_silent* answers no ping."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.room = asyncio.Event()
        self.room.set()
        self.pings = 0
        self.is_silent = False
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._changed = asyncio.Condition()

    def say(self, data: bytes) -> None:
        """Send bytes."""
        self._said.put_nowait(data)

    def leave(self) -> None:
        """Hang up."""
        self._said.put_nowait(None)

    async def send(self, data: bytes) -> None:
        """Take bytes when there is room."""
        await self.room.wait()
        async with self._changed:
            self.got += data
            self._changed.notify_all()

    async def receive(self) -> bytes | None:
        """What the test says next."""
        return await self._said.get()

    async def ping(self) -> None:
        """Give a sign of life."""
        async with self._changed:
            self.pings += 1
            self._changed.notify_all()
        if not self.is_silent:
            self.say(b"")

    async def wait_pings(self, count: int) -> None:
        """Until it was asked so often."""
        async with asyncio.timeout(LIMIT_S), self._changed:
            await self._changed.wait_for(lambda: self.pings >= count)

    async def wait_got(self, count: int) -> bytes:
        """The first *count* bytes."""
        async with asyncio.timeout(LIMIT_S), self._changed:
            await self._changed.wait_for(lambda: len(self.got) >= count)
        return bytes(self.got[:count])


@dataclass(slots=True, kw_only=True)
class Scene:
    """A viewer at a desk, and the relay between them."""

    desk: Desk
    viewer: Viewer
    relay: Relay
    running: asyncio.Task[Ending]
    pressed: list[str] = field(default_factory=list)

    async def enter(self) -> None:
        """Shake hands."""
        self.viewer.say(HELLO)
        await self.viewer.wait_got(len(WELCOME))

    async def end(self) -> Ending:
        """What the relay gives."""
        async with asyncio.timeout(LIMIT_S):
            return await self.running


@asynccontextmanager
async def open_desk(directory: Path) -> AsyncIterator[tuple[Desk, Path]]:
    """A desk that listens, and where."""
    desk, path = Desk(), directory / "desk.sock"
    server = await asyncio.start_unix_server(desk.serve, path)
    try:
        yield desk, path
    finally:
        server.close()
        for writer in [desk.writers.get_nowait() for _ in range(desk.writers.qsize())]:
            writer.close()


async def connect(path: Path) -> DesktopEnd:
    """A greeted connection to the desk."""
    return await greet(*await asyncio.open_unix_connection(path))


@asynccontextmanager
async def scene(directory: Path, grant: ViewerGrant) -> AsyncIterator[Scene]:
    """A viewer that has not said anything yet."""
    pressed: list[str] = []
    async with open_desk(directory) as (desk, path):
        viewer = Viewer()
        desktop = await connect(path)
        relay = Relay(
            wishes=Wishes(desktop.init),
            grant=grant,
            desktop=desktop,
            viewer=viewer,
            on_input=lambda: pressed.append("input"),
            on_press=lambda: pressed.append("press"),
        )
        running = asyncio.create_task(relay.run())
        try:
            yield Scene(desk=desk, viewer=viewer, relay=relay, running=running, pressed=pressed)
        finally:
            running.cancel()
            await asyncio.wait({running})
