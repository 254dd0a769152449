"""
The process that holds processes: ``python -m agentd.processes.keeper DIRECTORY``.

Serves one Unix socket until it is told to close. Survives the daemon that started it, so that
the next one finds the commands; without any daemon it ends what it holds after a while.
"""

import asyncio
import fcntl
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel

from agentd.errors import AgentError
from agentd.processes.ledger import Ledger
from agentd.processes.messages import (
    CLOSE,
    LIST,
    MAX_FRAME_BYTES,
    OUTPUT,
    SIGNAL,
    START,
    ListParams,
    OutputParams,
    SignalParams,
    StartParams,
)
from agentd.processes.table import ProcessTable
from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import Empty
from agentd.wire.peer import Handler, JsonRpcPeer, LinkLost, RpcError

__all__ = ["LEDGER_NAME", "LOCK_NAME", "READY", "SOCKET_NAME", "frames", "main", "sender", "serve", "take"]

SOCKET_NAME = "keeper.sock"
LOCK_NAME = "keeper.lock"
LEDGER_NAME = "keeper.jsonl"
READY = b"ready\n"
# Seconds without a daemon until everything is ended: a daemon that is restarted is back in seconds.
ORPHAN_S = 600.0
# Seconds between looks at a directory that another keeper holds.
LOCK_PAUSE_S = 0.05


async def frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines of a connection until it ends, or sends one that is too long."""
    with suppress(ConnectionError, ValueError):
        while line := await reader.readline():
            yield line


def sender(writer: asyncio.StreamWriter) -> Callable[[str], Awaitable[None]]:
    """Write one frame as a line."""

    async def send(text: str) -> None:
        if writer.is_closing():
            raise LinkLost("the connection is closed")
        writer.write(text.encode() + b"\n")
        await writer.drain()

    return send


async def serve(directory: Path, on_ready: Callable[[], None]) -> None:
    """Keep processes for the daemons of *directory*, which is private, until closed or orphaned."""
    socket_path = directory / SOCKET_NAME
    lock = (directory / LOCK_NAME).open("wb")
    while not take(lock):
        if await _answers(socket_path):
            on_ready()
            return
        # The other keeper binds its socket at this moment, or ends what it holds and goes.
        await asyncio.sleep(LOCK_PAUSE_S)
    socket_path.unlink(missing_ok=True)
    keeper = _Keeper(ProcessTable(Ledger(directory / LEDGER_NAME)))
    server = await asyncio.start_unix_server(keeper.connected, str(socket_path), limit=MAX_FRAME_BYTES)
    socket_path.chmod(0o600)
    on_ready()
    try:
        await keeper.wait_over()
    finally:
        # Nobody may find the socket of a keeper that is closing.
        socket_path.unlink(missing_ok=True)
        server.close()
        await keeper.table.close()
        keeper.closed.set()
        await keeper.wait_answered()


def take(lock: IO[bytes]) -> bool:
    """Own the directory until this process ends; False while another keeper does."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _answers(socket_path: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(socket_path))
    except OSError:
        return False
    writer.close()
    return True


class _Keeper:
    def __init__(self, table: ProcessTable) -> None:
        self.table = table
        self.closed = asyncio.Event()
        self._over = asyncio.Event()
        self._clients = 0
        self._orphaned: asyncio.TimerHandle | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._count(0)

    async def wait_over(self) -> None:
        await self._over.wait()

    async def wait_answered(self) -> None:
        """Give the answer of ``keeper/close`` a moment to leave."""
        if self._connections:
            await asyncio.wait(self._connections, timeout=1)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- the server runs this in a task
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        self._count(1)
        try:
            await JsonRpcPeer(sender(writer), self._handlers()).run(frames(reader))
        finally:
            self._count(-1)
            writer.close()

    def _handlers(self) -> dict[str, Handler]:
        table = self.table

        async def start(params: dict[str, Any]) -> BaseModel:
            return await table.start(StartParams.model_validate(params))

        async def output(params: dict[str, Any]) -> BaseModel:
            return await table.output(OutputParams.model_validate(params))

        async def list_(params: dict[str, Any]) -> BaseModel:
            return table.list(ListParams.model_validate(params))

        async def signal_(params: dict[str, Any]) -> BaseModel:
            return table.signal(SignalParams.model_validate(params))

        async def close(_: dict[str, Any]) -> BaseModel:
            self._over.set()
            await self.closed.wait()
            return Empty()

        methods = {START: start, OUTPUT: output, LIST: list_, SIGNAL: signal_, CLOSE: close}
        return {name: _typed(handler) for name, handler in methods.items()}

    def _count(self, change: int) -> None:
        self._clients += change
        if self._orphaned is not None:
            self._orphaned.cancel()
            self._orphaned = None
        if self._clients == 0:
            self._orphaned = asyncio.get_running_loop().call_later(ORPHAN_S, self._over.set)


def _typed(handler: Callable[[dict[str, Any]], Awaitable[BaseModel]]) -> Handler:
    async def wrapped(params: dict[str, Any]) -> BaseModel:
        try:
            return await handler(params)
        except AgentError as exc:
            raise RpcError(REFUSED, str(exc), code=exc.code) from exc

    return wrapped


def main(directory: Path) -> None:
    """Leave whoever started this, then serve; the first line of stdout says when."""
    # The daemon may be killed and must not be the parent that this process is counted under.
    if os.fork():
        os._exit(0)
    asyncio.run(serve(directory, _tell_ready))


def _tell_ready() -> None:
    with suppress(OSError):
        os.write(1, READY)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
