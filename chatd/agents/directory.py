"""
Connected agents: their calls and their streams.

A call that loses its link is asked again by its id after the reconnect: the same
boot of the daemon attaches to the run, another boot answers "unknown". Nothing is
ever silently run twice.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from aiohttp import web

from agentd.wire.content import ToolDefinition, ToolResult
from agentd.wire.link import (
    DESKTOP_STATUS,
    STREAMS_OPEN,
    TOOLS_CALL,
    TOOLS_LIST,
    Empty,
    StreamOpenParams,
    ToolCallParams,
    ToolListResult,
)
from agentd.wire.peer import JsonRpcPeer, LinkLost, RpcError
from chatd.errors import AgentUnavailable
from computer.wire import DesktopStatus

T = TypeVar("T")

__all__ = ["AgentConnection", "Directory", "IncomingStream"]

# Seconds a call waits for an agent that is away: restarts and network changes take a few.
RECONNECT_GRACE_S = 30.0
# Seconds for a question that needs no work.
QUESTION_TIMEOUT_S = 10.0
# Seconds until a desktop's stream must have been dialled back.
STREAM_TIMEOUT_S = 30.0
# Seconds that an answer may take beyond the tool's own limit, for the way.
CALL_SLACK_S = 10.0


@dataclass(slots=True, kw_only=True)
class AgentConnection:
    """One live link."""

    agent_id: UUID
    boot_id: str
    name: str
    peer: JsonRpcPeer
    tools: tuple[ToolDefinition, ...] | None = None


@dataclass(slots=True, kw_only=True)
class IncomingStream:
    """A WebSocket that an agent dialled for a stream we asked for; *done* ends its handler."""

    websocket: web.WebSocketResponse
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Directory:
    """Agents by id."""

    def __init__(self) -> None:
        self._connections: dict[UUID, AgentConnection] = {}
        self._changed = asyncio.Event()
        self._streams: dict[str, tuple[UUID, asyncio.Future[IncomingStream]]] = {}

    def connect(self, connection: AgentConnection) -> None:
        """An agent said hello; a newer connection replaces an older one."""
        self._connections[connection.agent_id] = connection
        self._changed.set()
        self._changed = asyncio.Event()

    def disconnect(self, connection: AgentConnection) -> None:
        """Its link ended."""
        if self._connections.get(connection.agent_id) is connection:
            del self._connections[connection.agent_id]

    def get(self, agent_id: UUID) -> AgentConnection:
        """
        The live link of *agent_id*.

        Raises:
            AgentUnavailable: it is not connected.
        """
        connection = self._connections.get(agent_id)
        if connection is None:
            raise AgentUnavailable("the workspace is not connected")
        return connection

    async def wait_connected(self, agent_id: UUID, *, grace_s: float = RECONNECT_GRACE_S) -> AgentConnection:
        """
        The live link of *agent_id*, waiting up to *grace_s* for it.

        Raises:
            AgentUnavailable: it did not come.
        """
        try:
            async with asyncio.timeout(grace_s):
                while agent_id not in self._connections:
                    await self._changed.wait()
        except TimeoutError:
            raise AgentUnavailable(f"the workspace did not connect within {grace_s:g} s") from None
        return self._connections[agent_id]

    async def list_tools(self, agent_id: UUID) -> tuple[ToolDefinition, ...]:
        """The workspace's tools; asked once per connection."""
        connection = await self.wait_connected(agent_id)
        if connection.tools is None:
            answer = await self._ask(
                connection.peer.call(TOOLS_LIST, Empty(), ToolListResult, timeout_s=QUESTION_TIMEOUT_S)
            )
            connection.tools = answer.tools
        return connection.tools

    async def desktop_status(self, agent_id: UUID) -> DesktopStatus:
        """How the agent's desktop is."""
        peer = self.get(agent_id).peer
        return await self._ask(
            peer.call(DESKTOP_STATUS, Empty(), DesktopStatus, timeout_s=QUESTION_TIMEOUT_S)
        )

    async def _ask(self, question: Awaitable[T]) -> T:
        try:
            return await question
        except (LinkLost, TimeoutError, RpcError) as exc:
            raise AgentUnavailable(f"the workspace did not answer: {exc}") from exc

    async def call_tool(
        self, agent_id: UUID, call: ToolCallParams, *, claim: Callable[[str], Awaitable[str]]
    ) -> ToolResult:
        """
        Run a tool of the workspace; *claim(boot_id)* records which boot got the call.

        Raises:
            AgentUnavailable: not connected, or the call was refused.

        Cancellation: the daemon is told to stop the run.
        """
        while True:
            connection = await self.wait_connected(agent_id)
            owner = await claim(connection.boot_id)
            params = call.model_copy(update={"boot_id": owner})
            try:
                return await connection.peer.call(
                    TOOLS_CALL, params, ToolResult, timeout_s=call.timeout_s + CALL_SLACK_S
                )
            except LinkLost:
                self.disconnect(connection)
            except RpcError as exc:
                raise AgentUnavailable(f"{call.name}: {exc.message}") from exc
            except TimeoutError:
                raise AgentUnavailable(f"{call.name}: no answer within {call.timeout_s:g} s") from None

    async def open_stream(self, agent_id: UUID, desktop: str = "main") -> IncomingStream:
        """
        Ask the agent for a desktop stream and wait until it has dialled back.

        Raises:
            AgentUnavailable: not connected, refused, or nothing came in time.
        """
        peer = self.get(agent_id).peer
        stream_id = secrets.token_urlsafe(24)
        arrival: asyncio.Future[IncomingStream] = asyncio.get_running_loop().create_future()
        self._streams[stream_id] = (agent_id, arrival)
        try:
            async with asyncio.timeout(STREAM_TIMEOUT_S):
                params = StreamOpenParams(stream_id=stream_id, desktop=desktop)
                await self._ask(peer.call(STREAMS_OPEN, params, Empty, timeout_s=STREAM_TIMEOUT_S))
                return await arrival
        except TimeoutError:
            raise AgentUnavailable("the desktop's stream did not come in time") from None
        finally:
            del self._streams[stream_id]

    def expects(self, agent_id: UUID, stream_id: str) -> bool:
        """Whether *stream_id* was asked of *agent_id* and has not come yet."""
        owner, arrival = self._streams.get(stream_id, (None, None))
        return owner == agent_id and arrival is not None and not arrival.done()

    def deliver(self, stream_id: str, stream: IncomingStream) -> bool:
        """An agent dialled back; whether anybody still waits for it."""
        _, arrival = self._streams.get(stream_id, (None, None))
        if arrival is None or arrival.done():
            return False
        arrival.set_result(stream)
        return True
