"""
Workspaces that are linked to another replica: their calls go there, over one WebSocket between the two.

It carries JSON-RPC, as the link to a workspace does. A call that loses the way raises ``LinkLost`` like
one that loses its link, and is asked again by its id wherever the workspace is then; only a call that was
cancelled here is cancelled there.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar
from uuid import UUID

import aiohttp
import structlog
from aiohttp import WSMsgType, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentd.wire.jsonrpc import INTERNAL_ERROR, REFUSED
from agentd.wire.link import MAX_FRAME_BYTES, TOOLS_LIST, ToolListResult
from agentd.wire.peer import JsonRpcPeer, LinkLost, RpcError
from chatd.agents.directory import AgentConnection, Directory
from chatd.replicas.dialling import HEARTBEAT_S, dial
from chatd.replicas.membership import Membership
from chatd.store import replicas
from chatd.store.replicas import AgentLink
from chatd.store.store import Store

__all__ = ["RemoteAgents", "serve_calls"]

CALL = "agent/call"
# Calls between two replicas at once: as many as all chats of one may make.
MAX_CALLS = 4_096
# Bytes: a frame of the link, and what names the workspace.
MAX_CALL_BYTES = MAX_FRAME_BYTES + 4_096
# Seconds that an answer may take beyond the workspace's own limit, for the way between replicas.
SLACK_S = 5.0
# Connections to workspaces elsewhere that are remembered, with their tools.
MAX_REMEMBERED = 1_024

ResultT = TypeVar("ResultT", bound=BaseModel)
log = structlog.get_logger("chatd.links")


class _Object(BaseModel):
    """Any JSON object, handed on as it is."""

    model_config = ConfigDict(extra="allow")


class CallParams(BaseModel):
    """One call of the link's protocol, for a workspace that is linked to whoever gets this."""

    agent_id: UUID
    connection_id: UUID
    method: str = Field(max_length=200)
    params: dict[str, Any]
    timeout_s: float = Field(gt=0)


# -- the side that is linked -----------------------------------------------------


async def serve_calls(request: web.Request, directory: Directory) -> web.WebSocketResponse:
    """Make another replica's calls to workspaces that are linked here, until either side ends."""
    websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_CALL_BYTES, compress=False)
    await websocket.prepare(request)

    async def send(text: str) -> None:
        if websocket.closed:
            raise LinkLost("the way between replicas went down")
        await websocket.send_str(text)

    async def call(params: dict[str, Any]) -> _Object:
        wish = CallParams.model_validate(params)
        return await _call_here(directory, wish, peer)

    peer = JsonRpcPeer(send, {CALL: call}, max_handlers=MAX_CALLS, max_calls=MAX_CALLS)
    try:
        await peer.run(_frames(websocket))
    finally:
        await websocket.close()
    return websocket


async def _call_here(directory: Directory, wish: CallParams, asker: JsonRpcPeer) -> _Object:
    connection = directory.linked_here(wish.agent_id)
    if connection is None or connection.connection_id != wish.connection_id:
        raise RpcError(REFUSED, "the workspace is not linked here", code="agent_gone")
    if wish.method == TOOLS_LIST:
        # They are remembered here for as long as they are true.
        tools = ToolListResult(tools=await directory.list_tools(wish.agent_id))
        return _Object.model_validate(tools.model_dump(mode="json", by_alias=True))
    calling = asyncio.ensure_future(
        connection.peer.call(wish.method, _Object(**wish.params), _Object, timeout_s=wish.timeout_s)
    )
    try:
        return await asyncio.shield(calling)
    except LinkLost as exc:
        raise RpcError(REFUSED, "the workspace's link went down", code="agent_gone") from exc
    except TimeoutError as exc:
        raise RpcError(REFUSED, f"no answer within {wish.timeout_s:g} s", code="timeout") from exc
    except asyncio.CancelledError:
        if asker.is_closed:
            # Nobody cancelled it: the way went down, and the call will be asked for again by its id.
            directory.leave_running(calling)
        else:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
        raise


async def _frames(
    websocket: web.WebSocketResponse | aiohttp.ClientWebSocketResponse,
) -> AsyncIterator[str | bytes]:
    async for message in websocket:
        if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
            yield message.data


# -- the side that asks ----------------------------------------------------------


class _Way:
    """The WebSocket to one other replica, dialled when it is needed."""

    def __init__(self, membership: Membership, replica_id: UUID) -> None:
        self._membership = membership
        self._replica_id = replica_id
        self._peer: JsonRpcPeer | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def peer(self, session: aiohttp.ClientSession) -> JsonRpcPeer:
        """
        Its live end.

        Raises:
            LinkLost: that replica can't be reached.
        """
        async with self._lock:
            if self._peer is None or self._peer.is_closed:
                try:
                    async with asyncio.timeout(10):
                        websocket = await dial(
                            session, self._membership, self._replica_id, "/calls", max_bytes=MAX_CALL_BYTES
                        )
                except (aiohttp.ClientError, OSError, TimeoutError) as exc:
                    raise LinkLost(f"the replica that has the workspace can't be reached: {exc}") from exc
                self._peer = JsonRpcPeer(_sender(websocket), {}, max_handlers=0, max_calls=MAX_CALLS)
                name = f"calls to {self._replica_id}"
                running = _run(self._peer, websocket)
                self._task = asyncio.get_running_loop().create_task(running, name=name)
            return self._peer

    def leave(self) -> None:
        """Calls that end from now on were not stopped by a wish."""
        if self._peer is not None:
            self._peer.leave()

    async def close(self) -> None:
        """Hang up; calls under way fail as lost."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _run(peer: JsonRpcPeer, websocket: aiohttp.ClientWebSocketResponse) -> None:
    async with websocket:
        await peer.run(_frames(websocket))


def _sender(websocket: aiohttp.ClientWebSocketResponse) -> Any:  # noqa: ANN401 -- as the peer wants it
    async def send(text: str) -> None:
        if websocket.closed:
            raise LinkLost("the way between replicas went down")
        await websocket.send_str(text)

    return send


class _Forwarded:
    """Calls one workspace by way of the replica that it is linked to."""

    def __init__(self, agents: "RemoteAgents", link: AgentLink) -> None:
        self._agents = agents
        self._link = link

    async def call(
        self, method: str, params: BaseModel, result: type[ResultT], *, timeout_s: float
    ) -> ResultT:
        """As ``JsonRpcPeer.call``."""
        link = self._link
        wish = CallParams(
            agent_id=link.agent_id,
            connection_id=link.connection_id,
            method=method,
            params=params.model_dump(mode="json", by_alias=True),
            timeout_s=timeout_s,
        )
        peer = await self._agents.peer(link.replica_id)
        try:
            answer = await peer.call(CALL, wish, _Object, timeout_s=timeout_s + SLACK_S)
        except RpcError as exc:
            if exc.code == "agent_gone":
                raise LinkLost(exc.message) from exc
            if exc.code == "timeout":
                raise TimeoutError from exc
            raise
        try:
            return result.model_validate(answer.model_dump())
        except ValidationError as exc:
            raise RpcError(INTERNAL_ERROR, f"{method}: unreadable result", code="bad_result") from exc


class RemoteAgents:
    """Finds workspaces that other replicas are linked to; tells of those that are linked here."""

    def __init__(self, store: Store, membership: Membership) -> None:
        self._store = store
        self._membership = membership
        self._ways: dict[UUID, _Way] = {}
        self._session: aiohttp.ClientSession | None = None
        self._known: dict[UUID, AgentConnection] = {}

    async def find(self, agent_id: UUID) -> AgentConnection | None:
        """The workspace's connection by way of another replica; None when there is none that lives."""
        link = await self._store.read(replicas.find_link, agent_id)
        if link is None or link.replica_id not in self._membership.addresses:
            self._known.pop(agent_id, None)
            return None
        known = self._known.get(agent_id)
        if known is None or known.connection_id != link.connection_id:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            known = self._known[agent_id] = AgentConnection(
                agent_id=agent_id,
                connection_id=link.connection_id,
                boot_id=link.boot_id,
                name=link.name,
                peer=_Forwarded(self, link),
                streams_url=link.streams_url,
                pushes_context=link.pushes_context,
                is_here=False,
            )
        return known

    async def linked(self, agent_ids: list[UUID]) -> set[UUID]:
        """Those of *agent_ids* that are linked to some replica."""
        return await self._store.read(replicas.linked_agents, agent_ids)

    def note(self, connection: AgentConnection) -> None:
        """A workspace linked to us just now."""
        connection.connected_at = self._store.now()

    async def record(self, connection: AgentConnection) -> None:
        """A workspace linked to us."""
        await self._store.write(replicas.record_link, self._row(connection))

    async def forget(self, connection: AgentConnection) -> None:
        """Its link ended."""
        await self._store.write(replicas.forget_link, connection.connection_id)

    async def reconcile(self, connections: list[AgentConnection]) -> None:
        """Have rows for all *connections*, which are ours, and none for others of ours."""
        recorded = await self._store.read(replicas.links_of, self._membership.replica_id)
        alive = {connection.connection_id for connection in connections}
        for connection_id in set(recorded.values()) - alive:
            await self._store.write(replicas.forget_link, connection_id)
        for connection in connections:
            if recorded.get(connection.agent_id) != connection.connection_id:
                await self._store.write(replicas.record_link, self._row(connection))

    def _row(self, connection: AgentConnection) -> AgentLink:
        return AgentLink(
            agent_id=connection.agent_id,
            replica_id=self._membership.replica_id,
            connection_id=connection.connection_id,
            boot_id=connection.boot_id,
            name=connection.name,
            streams_url=connection.streams_url,
            pushes_context=connection.pushes_context,
            connected_at=connection.connected_at or self._store.now(),
        )

    @property
    def session(self) -> aiohttp.ClientSession:
        """For everything that is dialled at other replicas."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, connect=5))
        return self._session

    async def peer(self, replica_id: UUID) -> JsonRpcPeer:
        """The way to a replica; raises LinkLost."""
        for gone in [one for one in self._ways if one not in self._membership.addresses]:
            await self._ways.pop(gone).close()
        way = self._ways.setdefault(replica_id, _Way(self._membership, replica_id))
        return await way.peer(self.session)

    def leave(self) -> None:
        """We go away: calls that are cancelled from now on were not stopped by a wish."""
        for way in self._ways.values():
            way.leave()

    async def close(self) -> None:
        """Hang up everywhere."""
        for way in self._ways.values():
            await way.close()
        if self._session is not None:
            await self._session.close()
