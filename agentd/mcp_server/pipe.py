"""MCP messages over a WebSocket of the local API, one a frame; ``agentd mcp serve`` joins it to its stdio."""

import anyio
from aiohttp import WSMsgType, web
from mcp.shared.message import SessionMessage

from mcp_bridge.messages import MessageReader, MessageStream, parse_message, render_message

__all__ = ["PipeReader", "PipeWriter"]


class _Pipe(MessageStream):
    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self._websocket = websocket

    async def aclose(self) -> None:
        """End the connection."""
        await self._websocket.close()


class PipeReader(_Pipe, MessageReader):
    """Messages of the client."""

    async def receive(self) -> SessionMessage | Exception:
        """
        The next message; what is none comes as an exception.

        Raises:
            EndOfStream: the client went away.
        """
        frame = await self._websocket.receive()
        if frame.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
            raise anyio.EndOfStream
        try:
            return parse_message(frame.data)
        except ValueError as exc:
            return exc


class PipeWriter(_Pipe):
    """Messages to the client."""

    async def send(self, item: SessionMessage, /) -> None:
        """
        Send one message.

        Raises:
            BrokenResourceError: the client went away.
        """
        try:
            await self._websocket.send_str(render_message(item))
        except (ConnectionError, RuntimeError) as exc:
            raise anyio.BrokenResourceError from exc
