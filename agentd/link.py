"""
The daemon's end of the link: dial the control plane, say hello, serve its calls.

Reconnects with jittered back-off for as long as the daemon lives. Runs survive a
dropped connection: the control plane asks again by call id.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agentd.calls import CallTable
from agentd.desktops import Desktops
from agentd.errors import AgentError, OutcomeUnknown
from agentd.streams import CLOSE_TIMEOUT_S, serve_stream
from agentd.tools.registry import Registry
from agentd.wire.content import TextContent, ToolResult
from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import (
    DESKTOP_STATUS,
    HELLO,
    MAX_FRAME_BYTES,
    PING,
    PROTOCOL_VERSION,
    STREAMS_OPEN,
    TOOLS_CALL,
    TOOLS_LIST,
    Empty,
    HelloParams,
    HelloResult,
    StreamOpenParams,
    ToolCallParams,
    ToolListResult,
)
from agentd.wire.peer import Handler, JsonRpcPeer, LinkLost, RpcError
from computer.errors import ComputerError
from computer.wire import DesktopStatus

__all__ = ["Link", "websocket_url"]

# Seconds between pings of an idle connection, and until silence counts as death.
PING_INTERVAL_S = 20
PING_TIMEOUT_S = 20
# Seconds, drawn evenly, before dialling again after a connection ended: spreads a fleet out.
RECONNECT_PAUSE_S = (0.2, 1.0)
# Seconds for the handshake's hello.
HELLO_TIMEOUT_S = 10

log = structlog.get_logger("agentd.link")


def websocket_url(base_url: str, path: str) -> str:
    """``http(s)://host/prefix`` and ``/path`` as ``ws(s)://host/prefix/path``."""
    parts = urlsplit(base_url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + path, "", ""))


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
        desktops: Desktops,
    ) -> None:
        self._control_url = control_url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._hello = HelloParams(
            protocol_version=PROTOCOL_VERSION, name=name, version=version, boot_id=calls.boot_id
        )
        self._registry = registry
        self._calls = calls
        self._desktops = desktops
        self._streams: set[asyncio.Task[None]] = set()
        self.connected = asyncio.Event()

    async def run(self) -> None:
        """Stay connected until cancelled. A refused credential ends it with ``InvalidStatus``."""
        url = websocket_url(self._control_url, "/api/agent/link")
        connecting = connect(
            url,
            additional_headers=self._headers,
            max_size=MAX_FRAME_BYTES,
            ping_interval=PING_INTERVAL_S,
            ping_timeout=PING_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            compression=None,
            proxy=None,
            process_exception=_is_worth_retrying,
        )
        try:
            async for websocket in connecting:
                await self._serve(websocket)
                # connect() backs off after failures to connect only, not after a connection that ended.
                await asyncio.sleep(random.uniform(*RECONNECT_PAUSE_S))  # noqa: S311 -- jitter, not a secret
        finally:
            await self._close_streams()

    async def _serve(self, websocket: ClientConnection) -> None:
        peer: JsonRpcPeer

        async def send(text: str) -> None:
            try:
                await websocket.send(text)
            except ConnectionClosed as exc:
                raise LinkLost("the link went down") from exc

        def handlers() -> dict[str, Handler]:
            return self._handlers(lambda: peer.is_closed)

        peer = JsonRpcPeer(send, handlers())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._greet(peer, websocket))
                await peer.run(_frames(websocket))
        except* (LinkLost, RpcError, TimeoutError) as problems:
            log.warning("link lost", action="link_lost", reason=str(problems.exceptions[0]))
        finally:
            self.connected.clear()
            await websocket.close()

    async def _greet(self, peer: JsonRpcPeer, websocket: ClientConnection) -> None:
        try:
            result = await peer.call(HELLO, self._hello, HelloResult, timeout_s=HELLO_TIMEOUT_S)
        except BaseException:
            await websocket.close(1008, "hello failed")
            raise
        log.info("link up", action="link_up", agent_id=result.agent_id)
        self.connected.set()

    def _handlers(self, link_is_down: Callable[[], bool]) -> dict[str, Handler]:
        async def call_tool(params: dict[str, Any]) -> ToolResult:
            return await self._call_tool(ToolCallParams.model_validate(params), link_is_down)

        async def list_tools(_: dict[str, Any]) -> ToolListResult:
            return ToolListResult(tools=self._registry.definitions())

        async def ping(_: dict[str, Any]) -> Empty:
            return Empty()

        async def desktop_status(_: dict[str, Any]) -> DesktopStatus:
            return self._desktops.status()

        async def open_stream(params: dict[str, Any]) -> Empty:
            return await self._open_stream(StreamOpenParams.model_validate(params))

        return {
            TOOLS_CALL: _typed(call_tool),
            TOOLS_LIST: list_tools,
            PING: ping,
            DESKTOP_STATUS: _typed(desktop_status),
            STREAMS_OPEN: _typed(open_stream),
        }

    async def _call_tool(self, call: ToolCallParams, link_is_down: Callable[[], bool]) -> ToolResult:
        tool = self._registry.get(call.name)
        try:
            return await self._calls.run(call, lambda: tool.run(call.arguments))
        except OutcomeUnknown as exc:
            return ToolResult(
                content=(TextContent(text=str(exc)),), is_error=True, structured={"code": exc.code}
            )
        except TimeoutError:
            text = f"{call.name} did not end within {call.timeout_s:g} s and was stopped"
            return ToolResult(content=(TextContent(text=text),), is_error=True)
        except asyncio.CancelledError:
            if not link_is_down():
                await self._calls.cancel(call.call_id)
            raise

    async def _open_stream(self, params: StreamOpenParams) -> Empty:
        session = self._desktops.get(params.desktop)
        reader, writer = await session.connect_rfb()
        url = websocket_url(self._control_url, f"/api/agent/streams/{params.stream_id}")

        async def serve() -> None:
            with self._desktops.viewing(params.desktop):
                await serve_stream(url, self._headers, reader, writer)

        task = asyncio.get_running_loop().create_task(serve(), name=f"stream {params.stream_id}")
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)
        return Empty()

    async def _close_streams(self) -> None:
        for task in list(self._streams):
            task.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)


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
