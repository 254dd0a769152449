"""A TCP proxy of our own: cuts connections, swallows bytes, and points elsewhere."""

import asyncio
import contextlib
from pathlib import Path

__all__ = ["CutProxy"]


class CutProxy:
    """
    ``port`` leads to ``target``; ``cut`` ends every connection, ``hole`` lets nothing through.

    Args:
        target: a port of this machine, or the path of a Unix socket.
    """

    def __init__(self, target: int | Path) -> None:
        self.target = target
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._is_down = False

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self, *, down: bool = False) -> None:
        """End every connection at once; *down*: and every new one, until ``mend``."""
        self._is_down = down
        for task in tuple(self._tasks):
            task.cancel()

    def hole(self) -> None:
        """Swallow everything, as a network does that lost a route, until ``mend``."""
        self._open.clear()

    def mend(self) -> None:
        """All is well again; what was swallowed meanwhile is cut."""
        if not self._open.is_set():
            self.cut()
        self._is_down = False
        self._open.set()

    async def close(self) -> None:
        """Stop."""
        self.mend()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        other: asyncio.StreamWriter | None = None
        try:
            if self._is_down:
                return
            match self.target:
                case Path() as path:
                    there, other = await asyncio.open_unix_connection(path)
                case port:
                    there, other = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copy(reader, other))
                group.create_task(self._copy(there, writer))
        except* (OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            for side in (writer, other):
                if side is not None:
                    side.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()
