"""
One configured server through its life: started, listed, called, lost, started again.

A server that dies fails the calls that wait for it at once and is started again after a pause that
grows; meanwhile its tools stay listed and calls say why they fail. Nobody else notices.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_bridge.config import ServerConfig
from mcp_bridge.errors import (
    BridgeError,
    ServerExited,
    ServerNotReady,
    ServerSilent,
    SessionForgotten,
    StartFailed,
    ToolNotFound,
)
from mcp_bridge.hosting.connection import Connection, Place, Progress
from mcp_bridge.hosting.log import ServerLog
from mcp_bridge.listing import Listing, OfferedTool
from mcp_bridge.redaction import Redactor
from mcp_bridge.wire import CallOutcome, ServerState, ServerStatus

__all__ = ["HostedServer"]

# Seconds before the second start, doubled each time up to the longest; a life that lasted resets it.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
LASTING_S = 60.0
# Seconds for a session that the server forgot to be made anew, for the call that found out.
RENEW_S = 10.0
# Seconds for other calls of that session to find out as well.
FORGOTTEN_S = 1.0
# Seconds to let several changes of a list become one.
CHANGE_PAUSE_S = 0.05

_numbers = itertools.count(1)


class HostedServer:
    """
    A server and its sessions, one after another.

    Args:
        on_change: called when its tools or its state changed.
    """

    def __init__(self, config: ServerConfig, place: Place, on_change: Callable[[], None]) -> None:
        self.config = config
        self._place = replace(place, mark=f"{place.mark}/{next(_numbers)}")
        self._redact = Redactor(config, place.environment)
        self.log = ServerLog(self._redact)
        self._on_change = on_change
        self._connection: Connection | None = None
        self._listing = Listing()
        self._state: ServerState = "connecting"
        self._since = datetime.now(UTC)
        self._retry_at: datetime | None = None
        self._last_error: str | None = None
        self._starts = 0
        self._handshake_only = False
        self._forgotten: Connection | None = None
        self._first = asyncio.Event()
        self._changed_state = asyncio.Event()
        self._relist = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin its life; ``wait_first`` tells how the first start went."""
        self._task = asyncio.get_running_loop().create_task(
            self._live(), name=f"mcp server {self.config.name}"
        )

    async def wait_first(self) -> bool:
        """Wait for the first start to succeed or fail; whether it succeeded."""
        await self._first.wait()
        return self._state == "ready"

    async def close(self) -> None:
        """End it and everything it started. Cancellation: the ending goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.shield(asyncio.wait({self._task}))
        self._become("closed")
        self._first.set()

    def tools(self) -> tuple[OfferedTool, ...]:
        """What it offers, also while it is away."""
        return self._listing.tools

    def note(self, problem: str) -> None:
        """Remember a problem for people, with its secrets taken out."""
        self._last_error = self._redact(problem)
        self.log.add("bridge", problem)

    def status(self) -> ServerStatus:
        """How it is."""
        connection = self._connection
        return ServerStatus(
            name=self.config.name,
            transport=self.config.transport,
            state=self._state,
            source=self.config.source,
            tools=len(self._listing.tools),
            rejected=self._listing.rejected,
            protocol_version=connection.protocol_version if connection else None,
            server_version=connection.server_version if connection else None,
            pid=connection.pid if connection else None,
            starts=self._starts,
            since=self._since,
            retry_at=self._retry_at,
            last_error=self._last_error,
            warnings=tuple(f"{name} is not set, so it is empty in env" for name in self.config.unset),
        )

    async def call(
        self,
        offered: OfferedTool,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        on_progress: Progress | None = None,
    ) -> CallOutcome:
        """
        Call one of its tools.

        Raises:
            BridgeError: it could not be done; the text holds no secret.

        Cancellation: the server is told to stop.
        """
        restored = offered.schema.restore(arguments)
        timeout_s = timeout_s or self.config.call_timeout_s
        connection = self._ready_connection()
        try:
            try:
                return await connection.call(
                    offered.tool.tool, restored, timeout_s=timeout_s, on_progress=on_progress
                )
            except SessionForgotten:
                # Nothing ran, so the call may be made again in a new session.
                renewed = await self._renewed(connection)
                return await renewed.call(
                    offered.tool.tool, restored, timeout_s=timeout_s, on_progress=on_progress
                )
        except BridgeError as exc:
            raise self._clean(exc) from None

    def _clean(self, exc: BridgeError) -> BridgeError:
        return type(exc)(self._redact(f"{self.config.name}: {exc}"))

    def _ready_connection(self) -> Connection:
        if self._connection is not None and not self._connection.ended.is_set():
            return self._connection
        if self._state in {"closed", "disabled"}:
            raise ServerNotReady(f"{self.config.name} was removed from the configuration")
        why = f": {self._last_error}" if self._last_error else ""
        raise ServerNotReady(f"{self.config.name} is not running{why}; it is started again by itself")

    async def _renewed(self, old: Connection) -> Connection:
        self._forgotten = old
        # Other calls learn the same in a moment, and may be made again as well; a closed connection
        # would leave open whether they ran.
        await old.wait_idle(FORGOTTEN_S)
        await old.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(RENEW_S):
                while self._connection is None or self._connection is old:
                    self._changed_state.clear()
                    await self._changed_state.wait()
        return self._ready_connection()

    async def _live(self) -> None:
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                began = asyncio.get_running_loop().time()
                is_forgotten = await self._one_session()
                if asyncio.get_running_loop().time() - began > LASTING_S:
                    pause_s = FIRST_PAUSE_S
                if not is_forgotten:
                    await self._pause(pause_s)
                    pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
                self._become("connecting")
        finally:
            if self._connection is not None:
                await self._connection.close()

    async def _one_session(self) -> bool:
        """From start to end; True when it ended because the server forgot it: a new one is made at once."""
        self._starts += 1
        try:
            connection = await self._opened()
        except BridgeError as exc:
            self.note(str(exc))
            self._become("failed")
            self._first.set()
            return False
        self._last_error = None
        self._connection = connection
        self._become("ready")
        self._first.set()
        try:
            await self._until_ended(connection)
        finally:
            self._connection = None
            await connection.close()
        if connection is self._forgotten:
            return True
        self.note(f"the connection was lost: {connection.why or 'closed'}")
        return False

    async def _opened(self) -> Connection:
        try:
            connection = await self._connect()
        except StartFailed:
            if self.config.transport != "stdio" or self._handshake_only:
                raise
            # Some older servers end when the first message is not their handshake.
            self.log.add("bridge", "trying the older handshake at once")
            self._handshake_only = True
            try:
                connection = await self._connect()
            except BridgeError:
                self._handshake_only = False
                raise
        try:
            self._listing = await connection.list_tools()
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _connect(self) -> Connection:
        return await Connection.open(
            self.config, self._place, self.log, self._relist.set, handshake_only=self._handshake_only
        )

    async def _until_ended(self, connection: Connection) -> None:
        """Until its end; the list of tools is read again whenever the server says that it changed."""
        ended = asyncio.ensure_future(connection.ended.wait())
        try:
            while not ended.done():
                changed = asyncio.ensure_future(self._relist.wait())
                try:
                    await asyncio.wait({ended, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if not ended.done():
                    await asyncio.sleep(CHANGE_PAUSE_S)
                    self._relist.clear()
                    await self._list_again(connection)
        finally:
            ended.cancel()

    async def _list_again(self, connection: Connection) -> None:
        try:
            self._listing = await connection.list_tools()
        except (ServerExited, ServerSilent, BridgeError) as exc:
            self.log.add("bridge", f"the changed list of tools could not be read: {exc}")
            return
        self._on_change()

    async def _pause(self, pause_s: float) -> None:
        pause_s *= random.uniform(0.8, 1.2)  # noqa: S311 -- jitter, not a secret
        self._retry_at = datetime.now(UTC) + timedelta(seconds=pause_s)
        if self._state != "failed":
            self._become("waiting")
        await asyncio.sleep(pause_s)
        self._retry_at = None

    def _become(self, state: ServerState) -> None:
        if state != self._state:
            self._state = state
            self._since = datetime.now(UTC)
        self._changed_state.set()
        self._on_change()

    def find(self, name: str) -> OfferedTool:
        """
        The tool that is offered as *name*.

        Raises:
            ToolNotFound: there is none.
        """
        for offered in self._listing.tools:
            if name in {offered.tool.name, offered.tool.tool}:
                return offered
        raise ToolNotFound(f"{self.config.name} has no tool {name[:100]!r}")
