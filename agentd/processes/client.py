"""The daemon's side of the keeper: find it or start it, ask it, close it."""

import asyncio
import select
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

import structlog
from pydantic import BaseModel

from agentd.errors import CommandRefused, NotFound, OutcomeUnknown, ShuttingDown, Unavailable
from agentd.processes.keeper import LOCK_NAME, READY, SOCKET_NAME, frames, sender, take
from agentd.processes.messages import CLOSE, MAX_FRAME_BYTES
from agentd.wire.link import Empty
from agentd.wire.peer import JsonRpcPeer, LinkLost, RpcError

__all__ = ["KeeperClient"]

# Seconds until a keeper that was started must serve; it imports Python modules first.
START_TIMEOUT_S = 20.0
# Seconds for an answer beyond what the question itself may wait.
ANSWER_S = 15.0
LOG_NAME = "keeper.log"
SILENT = "the keeper of processes does not answer; whether what was asked of it was done is not known"

ResultT = TypeVar("ResultT", bound=BaseModel)
_ERRORS = {error.code: error for error in (CommandRefused, NotFound, OutcomeUnknown)}
log = structlog.get_logger("agentd.processes")


class KeeperClient:
    """
    Speaks to the keeper of one runtime directory; connects on first need.

    Every question may be asked again: starting is by key, and all others only read or signal.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._environment = dict(environment)
        self._connecting = asyncio.Lock()
        self._peer: JsonRpcPeer | None = None
        self._reader: asyncio.Task[None] | None = None
        self._closed = False

    async def call(self, method: str, params: BaseModel, result: type[ResultT], wait_s: float = 0) -> ResultT:
        """
        Ask the keeper, starting it if none serves.

        Raises:
            CommandRefused, NotFound, OutcomeUnknown: what it answered.
            Unavailable: it can't be reached.
        """
        for _ in range(2):
            peer = await self._connected()
            try:
                return await peer.call(method, params, result, timeout_s=wait_s + ANSWER_S)
            except LinkLost:
                # It ended between two questions, or closed with an earlier daemon: a new one is asked.
                continue
            except RpcError as exc:
                raise _ERRORS.get(exc.code, CommandRefused)(exc.message) from exc
            except TimeoutError as exc:
                raise Unavailable(SILENT) from exc
        raise Unavailable(
            "the keeper of processes ended twice in a row; see keeper.log in the runtime directory"
        )

    async def close(self) -> None:
        """End the keeper and every process it holds; nothing is started for it."""
        async with self._connecting:
            self._closed = True
            with suppress(OSError, LinkLost, RpcError, TimeoutError):
                peer = self._peer if self._is_up() else await self._connect()
                if peer is not None:
                    await peer.call(CLOSE, Empty(), Empty, timeout_s=ANSWER_S)
            await self._drop()
        await asyncio.to_thread(_wait_gone, self._directory)

    async def detach(self) -> None:
        """Leave the keeper and what it holds to the next daemon."""
        async with self._connecting:
            self._closed = True
            await self._drop()

    async def _connected(self) -> JsonRpcPeer:
        async with self._connecting:
            if self._closed:
                raise ShuttingDown("the daemon is shutting down")
            if self._peer is not None and self._is_up():
                return self._peer
            await self._drop()
            try:
                return await self._connect()
            except (FileNotFoundError, ConnectionRefusedError):
                await self._start_keeper()
            try:
                return await self._connect()
            except OSError as exc:
                raise Unavailable(f"the keeper of processes can't be reached: {exc}") from exc

    def _is_up(self) -> bool:
        return self._peer is not None and not self._peer.is_closed

    async def _connect(self) -> JsonRpcPeer:
        path = str(self._directory / SOCKET_NAME)
        reader, writer = await asyncio.open_unix_connection(path, limit=MAX_FRAME_BYTES)
        peer = JsonRpcPeer(sender(writer), {})

        async def read() -> None:
            try:
                await peer.run(frames(reader))
            finally:
                writer.close()

        self._peer = peer
        self._reader = asyncio.get_running_loop().create_task(read(), name="keeper")
        return peer

    async def _start_keeper(self) -> None:
        if not await asyncio.to_thread(_start, self._directory, self._environment):
            raise Unavailable(f"the keeper of processes did not start; see {self._directory / LOG_NAME}")
        log.info("keeper started", action="keeper_started", directory=str(self._directory))

    async def _drop(self) -> None:
        reader, self._reader, self._peer = self._reader, None, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)


def _wait_gone(directory: Path) -> None:
    """Wait until no keeper holds *directory*, or it takes too long."""
    deadline = monotonic() + ANSWER_S
    with suppress(OSError), (directory / LOCK_NAME).open("rb") as lock:
        while monotonic() < deadline and not take(lock):
            sleep(0.01)


def _start(directory: Path, environment: Mapping[str, str]) -> bool:
    """Start a keeper, which leaves this process at once, and wait until it serves; False if it does not."""
    with (directory / LOG_NAME).open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603 -- our own module
            [sys.executable, "-m", "agentd.processes.keeper", str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
        )
    assert process.stdout is not None  # noqa: S101 -- it was asked for
    with process.stdout as stdout:
        readable, _, _ = select.select([stdout], [], [], START_TIMEOUT_S)
        is_ready = bool(readable) and stdout.readline() == READY
    if not is_ready:
        process.kill()
    process.wait()
    return is_ready
