"""
The daemon's end of the link: dial the control plane, say hello, serve its calls.

Reconnects with jittered back-off for as long as the daemon lives. Runs survive a
dropped connection: the control plane asks again by call id.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from agentd.calls import CallTable
from agentd.context import push_context
from agentd.errors import AgentError
from agentd.lease import Party
from agentd.streams import CLOSE_TIMEOUT_S, DialledStreams, FetchedStreams, websocket_url
from agentd.tools.answering import answer_call
from agentd.tools.registry import Registry
from agentd.viewers import Viewers
from agentd.wire.content import ToolResult
from agentd.wire.control import ControlParams, ControlState
from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import (
    DESKTOP_CONTROL,
    DESKTOP_STATUS,
    HELLO,
    MAX_FRAME_BYTES,
    MAX_PROGRESS_CHARACTERS,
    PING,
    PROTOCOL_VERSION,
    STREAMS_OPEN,
    TOOLS_CALL,
    TOOLS_CHANGED,
    TOOLS_LIST,
    TOOLS_PROGRESS,
    DesktopStatusParams,
    Empty,
    HelloParams,
    HelloResult,
    StreamOpenParams,
    ToolCallParams,
    ToolListResult,
    ToolProgress,
)
from agentd.wire.peer import Handler, JsonRpcPeer, LinkLost, RpcError
from computer.errors import ComputerError
from computer.wire import DesktopStatus
from context_push.manager import ContextManager

__all__ = ["Link"]

# Seconds between pings of an idle connection, and until silence counts as death.
PING_INTERVAL_S = 20
PING_TIMEOUT_S = 20
# Seconds, drawn evenly, before dialling again after a connection ended: spreads a fleet out.
RECONNECT_PAUSE_S = (0.2, 1.0)
# Seconds before dialling again when nobody answered: at first, and at most, drawn from their upper half.
RETRY_PAUSE_S = (0.5, 15.0)
# Seconds for the handshake's hello.
HELLO_TIMEOUT_S = 10

log = structlog.get_logger("agentd.link")


class Pauses:
    """How long one daemon waits before it dials again: drawn, so that a fleet does not come back as one."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next = RETRY_PAUSE_S[0]

    def after_connection(self) -> float:
        """Seconds after a connection that had stood."""
        self._next = RETRY_PAUSE_S[0]
        return self._rng.uniform(*RECONNECT_PAUSE_S)

    def after_failure(self) -> float:
        """Seconds after nobody answered; twice as many from one time to the next, up to a bound."""
        pause, self._next = self._next, min(2 * self._next, RETRY_PAUSE_S[1])
        return pause * self._rng.uniform(0.5, 1)


class Link:
    """One daemon's connection to one control plane."""

    def __init__(
        self,
        *,
        control_url: str,
        token: str,
        name: str,
        version: str,
        registry: Registry,
        calls: CallTable,
        viewers: Viewers,
    ) -> None:
        # One, or several that are tried in turn: replicas of one control plane.
        self._control_urls = control_url.replace(",", " ").split()
        self._headers = {"Authorization": f"Bearer {token}"}
        self._hello = HelloParams(
            protocol_version=PROTOCOL_VERSION, name=name, version=version, boot_id=calls.boot_id
        )
        # Pushed over every connection; set before `run`. None: this workspace has no context to tell.
        self.context: ContextManager | None = None
        self._registry = registry
        self._calls = calls
        self._desktops = viewers.desktops
        self._control = viewers.control
        self._viewers = viewers
        self._streams = DialledStreams(viewers, control_url=self._control_urls[0], headers=self._headers)
        # Set before `run` where the control plane can reach us: the address, and what waits there.
        self.streams_url: str | None = None
        self.fetched = FetchedStreams()
        self.further: Mapping[str, Handler] = {}
        self._tools_changed = asyncio.Event()
        registry.on_change = self._tools_changed.set
        self.connected = asyncio.Event()

    async def run(self) -> None:
        """Stay connected until cancelled. A refused credential ends it with ``InvalidStatus``."""
        try:
            pauses = Pauses(random.Random())  # noqa: S311 -- jitter, not a secret
            while True:
                for control_url in self._control_urls:
                    websocket = await self._dial(control_url)
                    if websocket is None:
                        continue
                    self._streams.control_url = control_url
                    await self._serve(websocket)
                    await asyncio.sleep(pauses.after_connection())
                    break
                else:
                    await asyncio.sleep(pauses.after_failure())
        finally:
            self.fetched.close()
            await self._streams.close()

    async def _dial(self, control_url: str) -> ClientConnection | None:
        """A connection; None when there was none to be had this time."""
        try:
            return await connect(
                websocket_url(control_url, "/api/agent/link"),
                additional_headers=self._headers,
                max_size=MAX_FRAME_BYTES,
                ping_interval=PING_INTERVAL_S,
                ping_timeout=PING_TIMEOUT_S,
                close_timeout=CLOSE_TIMEOUT_S,
                compression=None,
                proxy=None,
            )
        except (OSError, TimeoutError, WebSocketException) as exc:
            failure = _is_worth_retrying(exc)
            if failure is not None:
                raise
            return None

    async def _serve(self, websocket: ClientConnection) -> None:
        peer: JsonRpcPeer

        async def send(text: str) -> None:
            try:
                await websocket.send(text)
            except ConnectionClosed as exc:
                raise LinkLost("the link went down") from exc

        peer = JsonRpcPeer(send, self._handlers(lambda: peer))
        try:
            async with asyncio.TaskGroup() as group:
                greeting = group.create_task(self._greet(peer, websocket))
                pushing = group.create_task(self._push_context(peer))
                try:
                    await peer.run(_frames(websocket))
                finally:
                    greeting.cancel()
                    pushing.cancel()
        except* (LinkLost, RpcError, TimeoutError) as problems:
            log.warning("link lost", action="link_lost", reason=str(problems.exceptions[0]))
        finally:
            self.connected.clear()
            await websocket.close()

    async def _greet(self, peer: JsonRpcPeer, websocket: ClientConnection) -> None:
        try:
            hello = self._hello.model_copy(
                update={"pushes_context": self.context is not None, "streams_url": self.streams_url}
            )
            result = await peer.call(HELLO, hello, HelloResult, timeout_s=HELLO_TIMEOUT_S)
        except BaseException:
            await websocket.close(1008, "hello failed")
            raise
        log.info("link up", action="link_up", agent_id=result.agent_id)
        self.connected.set()
        await self._tell_changes(peer)

    async def _tell_changes(self, peer: JsonRpcPeer) -> None:
        """Say that the list of tools changed, as often as it does; the other side then asks for it."""
        while not peer.is_closed:
            await self._tools_changed.wait()
            self._tools_changed.clear()
            try:
                await peer.call(TOOLS_CHANGED, Empty(), Empty, timeout_s=HELLO_TIMEOUT_S)
            except (RpcError, TimeoutError) as exc:
                # An older control plane: it reads the list once per connection.
                log.info("list change not taken", action="tools_changed_failed", reason=str(exc))

    async def _push_context(self, peer: JsonRpcPeer) -> None:
        if self.context is not None:
            await self.connected.wait()
            await push_context(self.context, peer)

    def _handlers(self, peer: Callable[[], JsonRpcPeer]) -> dict[str, Handler]:
        async def call_tool(params: dict[str, Any]) -> ToolResult:
            return await self._call_tool(ToolCallParams.model_validate(params), peer())

        async def list_tools(_: dict[str, Any]) -> ToolListResult:
            return ToolListResult(tools=self._registry.definitions())

        async def ping(_: dict[str, Any]) -> Empty:
            return Empty()

        async def desktop_status(params: dict[str, Any]) -> DesktopStatus:
            wish = DesktopStatusParams.model_validate(params)
            return self._control.describe(self._desktops.status_for(wish.chat_id, wish.agent_chat_id))

        async def set_control(params: dict[str, Any]) -> ControlState:
            return await self._set_control(ControlParams.model_validate(params))

        async def open_stream(params: dict[str, Any]) -> Empty:
            return await self._open_stream(StreamOpenParams.model_validate(params))

        return {
            TOOLS_CALL: _typed(call_tool),
            TOOLS_LIST: list_tools,
            PING: ping,
            DESKTOP_STATUS: _typed(desktop_status),
            DESKTOP_CONTROL: _typed(set_control),
            STREAMS_OPEN: _typed(open_stream),
            **{method: _typed(handler) for method, handler in self.further.items()},
        }

    async def _call_tool(self, call: ToolCallParams, peer: JsonRpcPeer) -> ToolResult:
        tool = self._registry.get(call.name)

        async def send(text: str) -> None:
            with suppress(LinkLost):
                note = ToolProgress(call_id=call.call_id, text=text[-MAX_PROGRESS_CHARACTERS:])
                await peer.notify(TOOLS_PROGRESS, note)

        telling = asyncio.create_task(self._calls.progress.forward(call.call_id, send), name="progress")
        try:
            return await answer_call(self._calls, tool, call)
        except asyncio.CancelledError:
            if not peer.is_closed:
                await self._calls.cancel(call.call_id)
            raise
        finally:
            telling.cancel()

    async def _open_stream(self, params: StreamOpenParams) -> Empty:
        name = params.desktop or self._desktops.name_for(params.chat_id, params.agent_chat_id)
        if params.desktop is None:
            self._desktops.ensure(name)
        take = self.fetched.expect if params.is_fetched else self._streams.dial
        take(params.stream_id, await self._viewers.admit(name, params.viewer))
        return Empty()

    async def _set_control(self, params: ControlParams) -> ControlState:
        name = self._desktops.name_for(params.chat_id, params.agent_chat_id)
        if params.wish == "take":
            return await self._control.take(name, Party(seat=params.seat, name=params.name))
        return await self._control.give_back(name, params.seat)


def _typed(
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
) -> Handler:
    """Answer the daemon's typed errors with their stable word."""

    async def wrapped(params: dict[str, Any]) -> Any:  # noqa: ANN401 -- a pydantic model of the handler's
        try:
            return await handler(params)
        except (AgentError, ComputerError) as exc:
            raise RpcError(REFUSED, str(exc), code=exc.code) from exc

    return wrapped


async def _frames(websocket: ClientConnection) -> Any:  # noqa: ANN401 -- async generator of str | bytes
    try:
        async for frame in websocket:
            yield frame
    except ConnectionClosed:
        return


def _is_worth_retrying(exc: Exception) -> Exception | None:
    """None: try again. A refused credential will not get better by asking again."""
    if isinstance(exc, InvalidStatus) and exc.response.status_code in {401, 403}:
        log.error("the control plane refused this agent's token", action="link_refused")
        return exc
    log.info("control plane unreachable", action="link_retry", reason=str(exc))
    return None
