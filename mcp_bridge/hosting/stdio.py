"""
MCP over a process's stdin and stdout, one JSON-RPC message a line.

What is no message (a banner, half a line, bytes that are no text) goes to the log, and the session
goes on. A message that is too long fails only the request that it answers.
"""

import asyncio

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification

from mcp_bridge.hosting.log import ServerLog
from mcp_bridge.hosting.process import ServerProcess
from mcp_bridge.lines import Overlong
from mcp_bridge.messages import MessageReader, MessageStream, parse_message, render_message

__all__ = ["StdioReader", "StdioWriter"]

# Characters of a line of noise that the log keeps.
NOISE_LENGTH = 500


class StdioReader(MessageReader):
    """Messages of the server; ends with its stdout."""

    def __init__(self, process: ServerProcess, log: ServerLog) -> None:
        self._process = process
        self._log = log

    async def receive(self) -> SessionMessage | Exception:
        """
        The next message.

        Raises:
            EndOfStream: the server closed its stdout, or ended.
        """
        while (line := await self._process.stdout.next()) is not None:
            message = self._failed(line) if isinstance(line, Overlong) else self._parsed(line)
            if message is not None:
                return message
        raise anyio.EndOfStream

    def _parsed(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            return parse_message(line)
        except ValueError:
            self._log.add("stdout", line[:NOISE_LENGTH].decode("utf-8", "replace"))
            return None

    def _failed(self, line: Overlong) -> SessionMessage | None:
        text = f"the server's message of {line.size:,} bytes was dropped: too long"
        self._log.add("bridge", text)
        request_id = line.request_id
        if request_id is None:
            # Nobody knows who waits for it: the connection must end, or a call would hang.
            raise anyio.EndOfStream
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=text)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


class StdioWriter(MessageStream):
    """Messages to the server."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._lock = asyncio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        """
        Write one message; waits while the server does not read, but not with a notification.

        Raises:
            BrokenResourceError: the server does not read any more.
        """
        stdin = self._process.stdin
        if stdin.is_closing() or self._process.ended.is_set():
            raise anyio.BrokenResourceError
        stdin.write(render_message(item).encode() + b"\n")
        if isinstance(item.message, JSONRPCNotification):
            return
        try:
            async with self._lock:
                await stdin.drain()
        except (ConnectionError, OSError) as exc:
            raise anyio.BrokenResourceError from exc
