"""Two peers joined in memory."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from agentd.wire.peer import Handler, JsonRpcPeer

# Seconds; nothing here waits for longer than a few turns of the loop.
LIMIT_S = 10


class Word(BaseModel):
    """What the test's methods take and give."""

    text: str = ""


async def echo(params: dict[str, Any]) -> Word:
    """Give back what came."""
    return Word.model_validate(params)


@dataclass
class Gate:
    """A handler that tells when it began and ends when it may."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    ended: list[str] = field(default_factory=list)
    runs: int = 0

    async def __call__(self, params: dict[str, Any]) -> Word:
        """Wait at the gate."""
        self.runs += 1
        self.started.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        return Word(text="through")


class Line:
    """One direction: frames in order, until it is cut."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._frames: asyncio.Queue[str | None] = asyncio.Queue()
        self.is_cut = False

    async def send(self, text: str) -> None:
        """What a peer sends with."""
        if self.is_cut:
            raise ConnectionResetError
        self.sent.append(text)
        self._frames.put_nowait(text)

    def cut(self) -> None:
        """End it."""
        self.is_cut = True
        self._frames.put_nowait(None)

    async def frames(self) -> AsyncIterator[str | bytes]:
        """What the other peer reads."""
        while (frame := await self._frames.get()) is not None:
            yield frame


@dataclass
class Pair:
    """A caller and a server, both running."""

    caller: JsonRpcPeer
    server: JsonRpcPeer
    to_server: Line
    to_caller: Line
    runs: list[asyncio.Task[None]] = field(default_factory=list)

    async def cut(self) -> None:
        """Drop the connection and wait until both ends know."""
        self.to_server.cut()
        self.to_caller.cut()
        await asyncio.gather(*self.runs)


@asynccontextmanager
async def joined(handlers: Mapping[str, Handler]) -> AsyncIterator[Pair]:
    """A caller joined to a server with *handlers*; cut at the end."""
    to_server, to_caller = Line(), Line()
    caller = JsonRpcPeer(to_server.send, {"echo": echo})
    server = JsonRpcPeer(to_caller.send, handlers)
    pair = Pair(caller, server, to_server, to_caller)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        pair.runs = [
            group.create_task(caller.run(to_caller.frames())),
            group.create_task(server.run(to_server.frames())),
        ]
        yield pair
        await pair.cut()
