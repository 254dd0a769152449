"""
One MCP session with one server, owned by one task from its start to its end.

Whoever calls does it from a task of its own; closing is asked of the owner. So no cancel scope is
ever left in another task than it was entered in.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpcore2
import mcp_types as types
from mcp.client import ClientSession
from mcp.client._probe import negotiate_auto
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import listen
from mcp.shared.dispatcher import ProgressFnT as Progress
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_bridge.config import ServerConfig
from mcp_bridge.content import outcome_of
from mcp_bridge.errors import (
    BridgeError,
    InputRequired,
    ProtocolBroken,
    ServerExited,
    ServerSilent,
    SessionForgotten,
    StartFailed,
)
from mcp_bridge.hosting.dispatcher import RAW, TolerantDispatcher
from mcp_bridge.hosting.log import ServerLog
from mcp_bridge.hosting.process import ServerProcess
from mcp_bridge.hosting.stdio import StdioReader, StdioWriter
from mcp_bridge.hosting.web import Streams, open_web
from mcp_bridge.listing import MAX_TOOLS, Listing, read_tools
from mcp_bridge.wire import CallOutcome

__all__ = ["CONNECT_TIMEOUT_S", "Connection", "Place", "Progress"]

# Seconds to start a server, agree on a protocol and list its tools; `npx` may have to fetch it first.
CONNECT_TIMEOUT_S = 30.0
LIST_TIMEOUT_S = 30.0
# Pages of one listing; a cursor that repeats ends it as well.
MAX_PAGES = 200
# Seconds a call may take in all, however much progress it tells.
MAX_CALL_S = 4 * 3600.0
# Seconds that a failed call waits to learn how its server ended.
END_S = 0.3
# Seconds before listening again for changes after the stream was lost.
RELISTEN_S = 1.0
# The SDK's sentence for a status that is an error and has no error of MCP in its body.
UNTOLD_STATUS = "Server returned an error response"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where servers run."""

    environment: Mapping[str, str] = field(repr=False)
    cwd: str | None
    mark: str
    client_name: str
    client_version: str
    # What connects to servers over HTTP; none: anything may be connected to.
    network: httpcore2.AsyncNetworkBackend | None = None


class Connection:
    """
    A session that is ready for calls, made by ``open``.

    ``ended`` is set when it is over; ``why`` says then why. *on_change* is called, in the owner's
    task, whenever the server says that its tools changed.
    """

    def __init__(
        self, config: ServerConfig, place: Place, log: ServerLog, on_change: Callable[[], None]
    ) -> None:
        self._config = config
        self._place = place
        self._log = log
        self._on_change = on_change
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._process: ServerProcess | None = None
        self._dispatcher: TolerantDispatcher
        self._session: ClientSession
        self._refusal = ""
        self._has_listed = False
        self._calls = 0
        self._idle = asyncio.Event()
        self.ended = asyncio.Event()
        self.why = ""

    @classmethod
    async def open(
        cls,
        config: ServerConfig,
        place: Place,
        log: ServerLog,
        on_change: Callable[[], None],
        *,
        handshake_only: bool = False,
    ) -> "Connection":
        """
        Start the server, or connect to it, and agree on a protocol.

        With *handshake_only* the newest protocol is not asked for: some older servers end when asked.

        Raises:
            BridgeError: it did not work; says why.

        Cancellation: whatever was started is ended before this returns.
        """
        self = cls(config, place, log, on_change)
        self._task = asyncio.get_running_loop().create_task(
            self._own(handshake_only=handshake_only), name=f"mcp {config.name}"
        )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await asyncio.shield(self._ready)
        except TimeoutError:
            await self.close()
            msg = f"no answer to the first message within {CONNECT_TIMEOUT_S:g} s"
            raise ServerSilent(msg) from None
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def pid(self) -> int | None:
        """The server's process, if it is one of ours."""
        return self._process.pid if self._process is not None else None

    @property
    def protocol_version(self) -> str | None:
        """What was agreed on."""
        return self._session.protocol_version

    @property
    def server_version(self) -> str | None:
        """The name and version that the server tells."""
        info = self._session.server_info
        return f"{info.name} {info.version}".strip()[:200] if info is not None else None

    async def wait_idle(self, limit_s: float) -> None:
        """Wait until no call waits for its answer, *limit_s* at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self._calls:
                    self._idle.clear()
                    await self._idle.wait()

    async def close(self) -> None:
        """
        End the session and whatever was started for it.

        Cancellation: the ending goes on.
        """
        self._closing.set()
        if self._task is None:
            return
        if not self._ready.done():
            self._task.cancel()
        await asyncio.shield(asyncio.wait({self._task}))
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()

    async def _own(self, *, handshake_only: bool) -> None:
        try:
            async with self._transport() as (reader, writer):
                self._dispatcher = TolerantDispatcher(reader, writer)
                info = types.Implementation(name=self._place.client_name, version=self._place.client_version)
                async with ClientSession(
                    dispatcher=self._dispatcher, client_info=info, message_handler=self._on_message
                ) as self._session:
                    await self._agree(handshake_only=handshake_only)
                    self._ready.set_result(None)
                    await self._serve()
        except asyncio.CancelledError:
            self._fail(ServerExited("its start was stopped"))
            raise
        except BaseException as exc:  # noqa: BLE001 -- whatever ends the session is its reason
            self._fail(self._reason(exc))
        else:
            self._fail(ServerExited(self._end()))
        finally:
            self._fail(ServerExited("its connection ended"))
            self.ended.set()

    def _fail(self, problem: BridgeError) -> None:
        self.why = self.why or str(problem)
        if not self._ready.done():
            self._ready.set_exception(problem)

    def _reason(self, exc: BaseException) -> BridgeError:
        """The first cause, as an error of ours; what the transport says counts more than what followed."""
        causes = list(_leaves(exc))
        exc = next((cause for cause in causes if isinstance(cause, BridgeError)), causes[0])
        if isinstance(exc, BridgeError):
            return exc
        if isinstance(exc, MCPError) and exc.code == types.CONNECTION_CLOSED:
            return StartFailed(self._end())
        return StartFailed(self._words(exc) if isinstance(exc, MCPError) else f"{exc}" or type(exc).__name__)

    def _note_refusal(self, text: str) -> None:
        self._refusal = text

    def _words(self, exc: MCPError) -> str:
        """What the server says, or its HTTP status, of which the SDK tells only that it was an error."""
        if exc.message == UNTOLD_STATUS and self._refusal:
            return self._refusal
        return exc.message or f"error {exc.code}"

    def _end(self) -> str:
        if self._process is None:
            return "its connection ended"
        words = self._log.last_words()
        end = self._process.describe_end()
        return f"{end}; its last words: {words}" if words else end

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Streams, None]:
        if self._config.transport != "stdio":
            async with open_web(self._config, self._place.network, self._note_refusal) as streams:
                yield streams
            return
        self._process = await ServerProcess.start(
            [self._config.command, *self._config.args],
            environment={**self._place.environment, **self._config.env},
            cwd=self._config.cwd or self._place.cwd,
            mark=self._place.mark,
            on_stderr=lambda line: self._log.add("stderr", line),
        )
        try:
            yield StdioReader(self._process, self._log), StdioWriter(self._process)
        finally:
            if self._process.ended.is_set():
                self.why = self.why or self._end()
            await self._process.stop()

    async def _agree(self, *, handshake_only: bool) -> None:
        if handshake_only:
            await self._session.initialize()
        else:
            await negotiate_auto(self._session)

    async def _serve(self) -> None:
        """Until closed or lost; listens for changes where the protocol wants a stream for them."""
        waits = [self._closing.wait(), self._dispatcher.ended.wait()]
        capabilities = self._session.server_capabilities
        tools = capabilities.tools if capabilities is not None else None
        is_modern = self._session.protocol_version in MODERN_PROTOCOL_VERSIONS
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_wait(wait)) for wait in waits]
            listening = (
                group.create_task(self._listen()) if is_modern and tools and tools.list_changed else None
            )
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in (*tasks, listening):
                if task is not None:
                    task.cancel()

    async def _listen(self) -> None:
        """What changed before a stream was granted is not told on it, so a list from before is read again."""
        while True:
            with suppress(MCPError, RuntimeError, TimeoutError):
                async with listen(self._session, tools_list_changed=True) as changes:
                    if self._has_listed:
                        self._on_change()
                    async for _ in changes:
                        self._on_change()
            await asyncio.sleep(RELISTEN_S)

    async def _on_message(self, message: IncomingMessage) -> None:
        is_modern = self._session.protocol_version in MODERN_PROTOCOL_VERSIONS
        if isinstance(message, types.ToolListChangedNotification) and not is_modern:
            self._on_change()
        elif isinstance(message, Exception):
            self._log.add("bridge", f"unreadable message: {message}")

    async def list_tools(self) -> Listing:
        """
        All tools, page by page.

        Raises:
            BridgeError: the server did not answer, or not with a list.
        """
        capabilities = self._session.server_capabilities
        if capabilities is not None and capabilities.tools is None:
            return Listing()
        self._dispatcher.entries, self._dispatcher.rejected = [], []
        self._has_listed = True
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                await self._read_pages()
        except TimeoutError:
            raise ServerSilent(f"no list of tools within {LIST_TIMEOUT_S:g} s") from None
        except (MCPError, ValueError, RuntimeError) as exc:
            raise self._translated(exc) from exc
        entries, rejected = self._dispatcher.entries, self._dispatcher.rejected
        return await asyncio.to_thread(read_tools, self._config.name, entries, rejected)

    async def _read_pages(self) -> None:
        cursor, seen = None, set[str]()
        for _ in range(MAX_PAGES):
            page = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            cursor = page.next_cursor
            if not cursor or cursor in seen or len(self._dispatcher.entries) > 2 * MAX_TOOLS:
                return
            seen.add(cursor)
        self._log.add("bridge", f"the list of tools has more than {MAX_PAGES} pages; the rest was left out")

    async def call(
        self, tool: str, arguments: dict[str, Any], *, timeout_s: float, on_progress: Progress | None = None
    ) -> CallOutcome:
        """
        Call a tool; every word of progress extends *timeout_s*.

        Raises:
            ServerExited: the connection ended meanwhile.
            SessionForgotten: the server does not know our session; nothing ran.
            ServerSilent: no answer and no progress within *timeout_s*; the server is told to stop.

        Cancellation: the server is told to stop.
        """
        loop = asyncio.get_running_loop()
        last = loop.time() + MAX_CALL_S
        self._calls += 1
        try:
            async with asyncio.timeout(timeout_s) as limit:

                async def progressed(progress: float, total: float | None, message: str | None) -> None:
                    if not limit.expired():
                        limit.reschedule(min(last, loop.time() + timeout_s))
                    if on_progress is not None:
                        await on_progress(progress, total, message)

                return await self._call(tool, arguments, progressed)
        except TimeoutError:
            raise ServerSilent(f"{tool}: no answer and no progress within {timeout_s:g} s") from None
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _call(self, tool: str, arguments: dict[str, Any], progressed: Progress) -> CallOutcome:
        for is_last in (False, True):
            try:
                result = await self._session.call_tool(
                    tool, arguments, progress_callback=progressed, allow_input_required=True
                )
            except MCPError as exc:
                if exc.code == types.HEADER_MISMATCH and not is_last:
                    # The tool's schema changed, and with it the headers that mirror its arguments.
                    await self.list_tools()
                    continue
                await self._see_end(exc)
                raise self._translated(exc) from exc
            except (ValueError, RuntimeError) as exc:
                raise self._translated(exc) from exc
            if isinstance(result, types.InputRequiredResult):
                raise InputRequired(_wish(result))
            return outcome_of((result.meta or {}).get(RAW, {}))
        raise AssertionError  # the second round returns or raises

    async def _see_end(self, exc: MCPError) -> None:
        """A server's pipes close a moment before it has ended: wait for that, to say how."""
        if exc.code == types.CONNECTION_CLOSED and self._process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._process.ended.wait()

    def _translated(self, exc: Exception) -> BridgeError:
        if not isinstance(exc, MCPError):
            return ProtocolBroken(f"the server's answer is not MCP: {exc}")
        if exc.code == types.CONNECTION_CLOSED or self._dispatcher.ended.is_set():
            return ServerExited(f"the server ended before it answered: {self.why or self._end()}")
        if exc.message == "Session terminated":
            return SessionForgotten("the server no longer knows this session")
        return ProtocolBroken(self._words(exc))


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for each in exc.exceptions:
            yield from _leaves(each)
    else:
        yield exc


async def _wait(event: Awaitable[Any]) -> None:
    await event


def _wish(result: types.InputRequiredResult) -> str:
    kinds = {request.method for request in (result.input_requests or {}).values()}
    words = {"elicitation/create": "a person's answer", "sampling/createMessage": "a model's answer"}
    wishes = ", ".join(sorted(words.get(kind, kind) for kind in kinds)) or "more input"
    return f"the tool asked for {wishes} before it goes on, which a chat's call can't give"
