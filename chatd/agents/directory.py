"""
Connected agents: their calls and their streams, whichever replica they are linked to.

A call that loses its link is asked again by its id after the reconnect: the same
boot of the daemon attaches to the run, another boot answers "unknown". Nothing is
ever silently run twice.
"""

import asyncio
import secrets
import uuid
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from pydantic import BaseModel

from agentd.wire.content import ToolDefinition, ToolResult
from agentd.wire.control import ControlParams, ControlState, ViewerGrant
from agentd.wire.link import (
    DESKTOP_CONTROL,
    DESKTOP_STATUS,
    STREAMS_OPEN,
    TOOLS_CALL,
    TOOLS_LIST,
    DesktopStatusParams,
    Empty,
    StreamOpenParams,
    ToolCallParams,
    ToolListResult,
    ToolProgress,
)
from agentd.wire.peer import JsonRpcPeer, LinkLost, RpcError
from chatd.agents.fetching import FetchedStreams
from chatd.agents.streams import IncomingStream
from chatd.errors import AgentUnavailable, ControlHeld, NotInControl
from chatd.outbound import Outbound
from computer.wire import DesktopStatus

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=BaseModel)

__all__ = ["AgentConnection", "Caller", "Directory", "Elsewhere"]

# Seconds a call waits for an agent that is away: restarts and network changes take a few.
RECONNECT_GRACE_S = 30.0
# Seconds for a question that needs no work.
QUESTION_TIMEOUT_S = 10.0
# Seconds for a change of control: what the agent does at that moment is ended first.
CONTROL_TIMEOUT_S = 20.0
# What the workspace refuses by a rule, by its stable word.
REFUSALS = {error.code: error for error in (ControlHeld, NotInControl)}
# Seconds until a desktop's stream must have been dialled back.
STREAM_TIMEOUT_S = 30.0
# Seconds that an answer may take beyond the tool's own limit, for the way.
CALL_SLACK_S = 10.0


# Seconds between looks whether an agent is linked to another replica, should a hint be lost.
LOOK_S = 1.0
# Seconds that the list of tools of an agent elsewhere is believed.
REMOTE_TOOLS_S = 2.0


class _Patience:
    """How long one tries again and again and gets nowhere; a try that lasted got somewhere."""

    def __init__(self) -> None:
        self._since = self._began = asyncio.get_running_loop().time()

    def begin(self) -> None:
        """Another try."""
        self._began = asyncio.get_running_loop().time()

    def is_over(self) -> bool:
        """The try failed: whether that was enough."""
        now = asyncio.get_running_loop().time()
        if now - self._began > QUESTION_TIMEOUT_S:
            self._since = now
        return now - self._since > 2 * RECONNECT_GRACE_S


class Caller(Protocol):
    """Calls an agent: ``JsonRpcPeer``, or by way of another replica."""

    async def call(self, method: str, params: BaseModel, result: type[ModelT], *, timeout_s: float) -> ModelT:
        """As ``JsonRpcPeer.call``."""


class Elsewhere(Protocol):
    """The other replicas: which agents are linked there, and what they are told of ours."""

    async def find(self, agent_id: UUID) -> "AgentConnection | None":
        """The agent's connection by way of another replica."""

    async def linked(self, agent_ids: list[UUID]) -> set[UUID]:
        """Those of *agent_ids* that are linked to some replica."""

    def leave(self) -> None:
        """As ``Directory.leave``."""


@dataclass(slots=True, kw_only=True)
class AgentConnection:
    """One live link; *is_here*: to this replica."""

    agent_id: UUID
    boot_id: str
    name: str
    peer: Caller
    connection_id: UUID = field(default_factory=uuid.uuid4)
    is_here: bool = True
    # By the clock that replicas share; absent where there is one only.
    connected_at: datetime | None = None
    pushes_context: bool = False
    streams_url: str | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    listing: int = 0
    # When a list that nobody tells us the end of is to be asked for again, by the loop's clock.
    tools_until: float = float("inf")

    def forget_tools(self) -> None:
        """They changed; a list that is on its way is of before."""
        self.tools = None
        self.listing += 1


class Directory:
    """
    Agents by id.

    Args:
        fetches_streams: dial those agents that give an address for their streams, within this policy.
        elsewhere: the other replicas.
        stream_prefix: what the ids of streams begin with, by which any replica knows whose they are.
    """

    def __init__(
        self,
        *,
        fetches_streams: Outbound | None = None,
        elsewhere: Elsewhere | None = None,
        stream_prefix: Callable[[], str] = lambda: "",
    ) -> None:
        self._fetched = None if fetches_streams is None else FetchedStreams(fetches_streams)
        self._elsewhere = elsewhere
        self._stream_prefix = stream_prefix
        self._connections: dict[UUID, AgentConnection] = {}
        self._changed = asyncio.Event()
        self._streams: dict[str, tuple[UUID, asyncio.Future[IncomingStream]]] = {}
        self._listeners: dict[tuple[UUID, str], Callable[[str], None]] = {}
        # Called with a connection that is up, or has ended, here.
        self.on_connect: Callable[[AgentConnection], None] = lambda _: None
        self.on_disconnect: Callable[[AgentConnection], None] = lambda _: None
        # Calls that nobody waits for at the moment.
        self._running: set[asyncio.Future[Any]] = set()

    def connect(self, connection: AgentConnection) -> None:
        """An agent said hello; a newer connection replaces an older one."""
        self._connections[connection.agent_id] = connection
        self.wake()
        self.on_connect(connection)

    def wake(self) -> None:
        """Some agent's link changed, here or elsewhere."""
        self._changed.set()
        self._changed = asyncio.Event()

    def disconnect(self, connection: AgentConnection) -> None:
        """Its link ended."""
        if self._connections.get(connection.agent_id) is connection:
            del self._connections[connection.agent_id]
            self.on_disconnect(connection)

    def linked_here(self, agent_id: UUID) -> AgentConnection | None:
        """The agent's link to this replica."""
        return self._connections.get(agent_id)

    @property
    def connections(self) -> list[AgentConnection]:
        """All links to this replica."""
        return list(self._connections.values())

    async def _find(self, agent_id: UUID) -> AgentConnection | None:
        connection = self._connections.get(agent_id)
        if connection is None and self._elsewhere is not None:
            return await self._elsewhere.find(agent_id)
        return connection

    async def get(self, agent_id: UUID) -> AgentConnection:
        """
        The live link of *agent_id*.

        Raises:
            AgentUnavailable: it is not connected.
        """
        connection = await self._find(agent_id)
        if connection is None:
            raise AgentUnavailable("the workspace is not connected")
        return connection

    async def are_connected(self, agent_ids: Collection[UUID]) -> set[UUID]:
        """Those of *agent_ids* that have a live link."""
        here = {agent_id for agent_id in agent_ids if agent_id in self._connections}
        others = [agent_id for agent_id in agent_ids if agent_id not in here]
        if not others or self._elsewhere is None:
            return here
        return here | await self._elsewhere.linked(others)

    @property
    def connected(self) -> int:
        """How many agents' links are up here."""
        return len(self._connections)

    async def pushes_context(self, agent_id: UUID) -> bool | None:
        """Whether the agent pushes its context; None when it is not connected."""
        connection = await self._find(agent_id)
        return None if connection is None else connection.pushes_context

    async def wait_connected(self, agent_id: UUID, *, grace_s: float = RECONNECT_GRACE_S) -> AgentConnection:
        """
        The live link of *agent_id*, waiting up to *grace_s* for it.

        Raises:
            AgentUnavailable: it did not come.
        """
        try:
            async with asyncio.timeout(grace_s):
                while True:
                    changed = self._changed
                    connection = await self._find(agent_id)
                    if connection is not None:
                        return connection
                    with suppress(TimeoutError):
                        async with asyncio.timeout(None if self._elsewhere is None else LOOK_S):
                            await changed.wait()
        except TimeoutError:
            raise AgentUnavailable(f"the workspace did not connect within {grace_s:g} s") from None

    def leave_running(self, call: "asyncio.Future[Any]") -> None:
        """Let a call go on that will be asked for again by its id."""
        self._running.add(call)
        call.add_done_callback(self._forget_call)

    def _forget_call(self, call: "asyncio.Future[Any]") -> None:
        self._running.discard(call)
        if not call.cancelled():
            call.exception()

    def leave(self) -> None:
        """We go away: what runs in workspaces goes on, for whoever asks for it next."""
        for connection in self._connections.values():
            if isinstance(connection.peer, JsonRpcPeer):
                connection.peer.leave()
        if self._elsewhere is not None:
            self._elsewhere.leave()

    async def list_tools(self, agent_id: UUID) -> tuple[ToolDefinition, ...]:
        """
        The workspace's tools; asked once, and again after they changed, or when the way to it was lost.

        Raises:
            AgentUnavailable: it did not connect in time, or does not answer.
        """
        patience = _Patience()
        while True:
            connection = await self.wait_connected(agent_id)
            patience.begin()
            try:
                return await self._tools_of(connection)
            except LinkLost as exc:
                await self._lost(connection, patience, exc)

    async def _tools_of(self, connection: AgentConnection) -> tuple[ToolDefinition, ...]:
        now = asyncio.get_running_loop().time()
        if connection.tools is not None and now <= connection.tools_until:
            return connection.tools
        asked = connection.listing
        try:
            answer = await connection.peer.call(
                TOOLS_LIST, Empty(), ToolListResult, timeout_s=QUESTION_TIMEOUT_S
            )
        except (RpcError, TimeoutError) as exc:
            raise AgentUnavailable(f"the workspace did not answer: {exc}") from exc
        if asked != connection.listing:
            return answer.tools
        connection.tools = answer.tools
        if not connection.is_here:
            connection.tools_until = now + REMOTE_TOOLS_S
        return answer.tools

    async def _lost(self, connection: AgentConnection, patience: "_Patience", exc: LinkLost) -> None:
        """The way was lost: wait a little, there will be another; raises AgentUnavailable after long."""
        self.disconnect(connection)
        if patience.is_over():
            raise AgentUnavailable(f"the workspace can't be reached: {exc}") from exc
        if not connection.is_here:
            # Its row may not know yet.
            await asyncio.sleep(LOOK_S / 4)

    async def desktop_status(
        self, agent_id: UUID, chat_id: UUID | None = None, *, agent_chat_id: UUID | None = None
    ) -> DesktopStatus:
        """
        How a desktop is: the one that the root chat *chat_id* works at.

        *agent_chat_id* says which of its agents is meant, where each has a desktop of its own.
        """
        peer = (await self.get(agent_id)).peer
        params = DesktopStatusParams(chat_id=_text(chat_id), agent_chat_id=_text(agent_chat_id))
        return await self._ask(peer.call(DESKTOP_STATUS, params, DesktopStatus, timeout_s=QUESTION_TIMEOUT_S))

    async def set_control(self, agent_id: UUID, params: ControlParams) -> ControlState:
        """
        Take control of a desktop of the agent's for a person, or give it back.

        Raises:
            ControlHeld, NotInControl: the lease says no.
            AgentUnavailable: not connected, or no answer.
        """
        peer = (await self.get(agent_id)).peer
        return await self._ask(peer.call(DESKTOP_CONTROL, params, ControlState, timeout_s=CONTROL_TIMEOUT_S))

    async def ask(
        self, agent_id: UUID, method: str, params: BaseModel, answer: type[ModelT], *, timeout_s: float
    ) -> ModelT:
        """
        Ask the agent one question of the link's protocol.

        Raises:
            AgentUnavailable: not connected, refused, or no answer in time.
        """
        peer = (await self.get(agent_id)).peer
        return await self._ask(peer.call(method, params, answer, timeout_s=timeout_s))

    async def _ask(self, question: Awaitable[T]) -> T:
        try:
            return await question
        except RpcError as exc:
            refusal = REFUSALS.get(exc.code)
            if refusal is not None:
                raise refusal(exc.message) from exc
            raise AgentUnavailable(f"the workspace did not answer: {exc}") from exc
        except (LinkLost, TimeoutError) as exc:
            raise AgentUnavailable(f"the workspace did not answer: {exc}") from exc

    def progressed(self, agent_id: UUID, told: ToolProgress) -> None:
        """A call of *agent_id*'s tells of itself."""
        listener = self._listeners.get((agent_id, told.call_id))
        if listener is not None:
            listener(told.text)

    async def call_tool(
        self,
        agent_id: UUID,
        call: ToolCallParams,
        *,
        claim: Callable[[str], Awaitable[str]],
        on_progress: Callable[[str], None] | None = None,
    ) -> ToolResult:
        """
        Run a tool of the workspace; *claim(boot_id)* records which boot got the call.

        *on_progress* hears what it tells of itself meanwhile, each in place of the one before.

        Raises:
            AgentUnavailable: not connected, or the call was refused.

        Cancellation: the daemon is told to stop the run.
        """
        key = (agent_id, call.call_id)
        if on_progress is not None:
            self._listeners[key] = on_progress
        try:
            return await self._call_until_answered(agent_id, call, claim)
        finally:
            self._listeners.pop(key, None)

    async def _call_until_answered(
        self, agent_id: UUID, call: ToolCallParams, claim: Callable[[str], Awaitable[str]]
    ) -> ToolResult:
        patience = _Patience()
        while True:
            connection = await self.wait_connected(agent_id)
            owner = await claim(connection.boot_id)
            params = call.model_copy(update={"boot_id": owner})
            patience.begin()
            try:
                return await connection.peer.call(
                    TOOLS_CALL, params, ToolResult, timeout_s=call.timeout_s + CALL_SLACK_S
                )
            except LinkLost as exc:
                await self._lost(connection, patience, exc)
            except RpcError as exc:
                raise AgentUnavailable(f"{call.name}: {exc.message}") from exc
            except TimeoutError:
                raise AgentUnavailable(f"{call.name}: no answer within {call.timeout_s:g} s") from None

    async def open_stream(
        self,
        agent_id: UUID,
        chat_id: UUID | None = None,
        *,
        agent_chat_id: UUID | None = None,
        viewer: ViewerGrant,
    ) -> IncomingStream:
        """
        Ask the agent for a stream of a desktop, named as for ``desktop_status``.

        It dials back, or is dialled where it can be.

        Raises:
            AgentUnavailable: not connected, refused, or nothing came in time.
            ControlHeld: the viewer wants control at once, and another person has it.
        """
        connection = await self.get(agent_id)
        stream_id = self._stream_prefix() + secrets.token_urlsafe(24)
        url = connection.streams_url if self._fetched is not None else None
        params = StreamOpenParams(
            stream_id=stream_id,
            chat_id=_text(chat_id),
            agent_chat_id=_text(agent_chat_id),
            viewer=viewer,
            is_fetched=url is not None,
        )
        asking = connection.peer.call(STREAMS_OPEN, params, Empty, timeout_s=STREAM_TIMEOUT_S)
        arrival: asyncio.Future[IncomingStream] = asyncio.get_running_loop().create_future()
        self._streams[stream_id] = (agent_id, arrival)
        try:
            async with asyncio.timeout(STREAM_TIMEOUT_S):
                await self._ask(asking)
                if url is not None and self._fetched is not None:
                    return await self._fetched.fetch(url, stream_id)
                return await arrival
        except TimeoutError:
            raise AgentUnavailable("the desktop's stream did not come in time") from None
        finally:
            del self._streams[stream_id]

    async def close(self) -> None:
        """End the streams that we dialled, and the calls that nobody waits for."""
        for call in tuple(self._running):
            call.cancel()
        if self._fetched is not None:
            await self._fetched.close()

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


def _text(chat_id: UUID | None) -> str | None:
    return None if chat_id is None else str(chat_id)
