"""A desktop stream between an agent and us, whoever dialled it."""

import asyncio
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

__all__ = ["STREAM_SILENCE_S", "IncomingStream"]

# Seconds without a sign of an agent on a stream; it pings every 20.
STREAM_SILENCE_S = 60.0


@dataclass(slots=True, kw_only=True)
class IncomingStream:
    """A WebSocket for a stream that we asked an agent for, whoever dialled it; ``end`` ends its handler."""

    websocket: web.WebSocketResponse | aiohttp.ClientWebSocketResponse
    done: asyncio.Event = field(default_factory=asyncio.Event)
    close_code: int = 1000
    reason: str = "the viewer left"

    def end(self, close_code: int | None = None, reason: str | None = None) -> None:
        """Nobody needs the stream any more; the first reason is told."""
        if not self.done.is_set():
            self.close_code = close_code or self.close_code
            self.reason = reason or self.reason
            self.done.set()
