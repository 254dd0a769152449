"""
All configured servers: started together, changed one by one, called by offered names.

A reload starts what is new, ends what is gone and leaves alone what is equal. A server whose
entry changed goes on serving until the new one has started; when that fails, the old one stays.
One reload runs at a time, whoever asked; it is never cancelled with its asker.

Invariant: an offered name means one tool of one server, the same until that tool goes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcp_bridge.config import ConfigFile, EntryProblem, ServerConfig
from mcp_bridge.errors import BridgeClosed, ServerNotFound, ToolNotFound
from mcp_bridge.hosting.connection import Place, Progress
from mcp_bridge.hosting.process import end_marked
from mcp_bridge.hosting.server import HostedServer
from mcp_bridge.listing import OfferedTool
from mcp_bridge.naming import split_name
from mcp_bridge.wire import BridgedTool, CallOutcome, LogLine, RejectedTool, ServerStatus

__all__ = ["MAX_OFFERED", "Bridge"]

# Tools that are offered in all. OpenAI takes 128 functions, and a request with more fails as a whole.
MAX_OFFERED = 100


class Bridge:
    """
    Hosts servers.

    Args:
        place: where they run; its mark names this bridge, also after a restart.
        on_change: called, in the event loop, after tools or states changed.
    """

    def __init__(self, place: Place, on_change: Callable[[], None] = lambda: None) -> None:
        self._place = place
        self._on_change = on_change
        self._servers: dict[str, HostedServer] = {}
        self._disabled: list[ServerConfig] = []
        self._problems: tuple[EntryProblem, ...] = ()
        self._wanted: ConfigFile | None = None
        self._reload: asyncio.Task[None] | None = None
        self._closed = False
        self.settled = asyncio.Event()
        """Set once the first configuration was tried: before, no tools means "unknown"; after, "none"."""

    async def sweep(self) -> int:
        """End what an earlier bridge of this mark left behind when it was killed; how many processes."""
        return await end_marked(f"{self._place.mark}/")

    async def apply(self, config: ConfigFile) -> None:
        """
        Make the servers those of *config*; returns when each was tried.

        Raises:
            BridgeClosed: the bridge was closed.

        Cancellation: the reload goes on.
        """
        if self._closed:
            raise BridgeClosed("the bridge is closed")
        self._wanted = config
        if self._reload is None or self._reload.done():
            self._reload = asyncio.get_running_loop().create_task(self._apply_wanted(), name="mcp reload")
        await asyncio.shield(self._reload)

    async def _apply_wanted(self) -> None:
        while (config := self._wanted) is not None:
            self._wanted = None
            await self._apply(config)
        self.settled.set()
        self._on_change()

    async def _apply(self, config: ConfigFile) -> None:
        self._problems = config.problems
        self._disabled = [server for server in config.servers if server.is_disabled]
        wanted = {server.name: server for server in config.servers if not server.is_disabled}
        gone = [self._servers.pop(name) for name in list(self._servers) if name not in wanted]
        kept = self._servers
        changed = [wanted[name] for name, server in kept.items() if wanted[name] != server.config]
        # In the order of the configuration, whatever was there before.
        self._servers = {name: kept.get(name) or self._begin(server) for name, server in wanted.items()}
        await asyncio.gather(
            *(server.close() for server in gone),
            *(server.wait_first() for name, server in self._servers.items() if name not in kept),
            *(self._replace(server) for server in changed),
        )

    def _begin(self, config: ServerConfig) -> HostedServer:
        server = HostedServer(config, self._place, self._on_change)
        server.start()
        return server

    async def _replace(self, config: ServerConfig) -> None:
        old = self._servers[config.name]
        candidate = HostedServer(config, self._place, self._on_change)
        candidate.start()
        try:
            is_good = await candidate.wait_first()
        except BaseException:
            await candidate.close()
            raise
        if is_good or old.status().state != "ready":
            self._servers[config.name] = candidate
            await old.close()
            return
        problem = candidate.status().last_error or "it did not start"
        await candidate.close()
        old.note(f"its changed configuration does not work, so the old one goes on: {problem}")

    async def close(self) -> None:
        """End every server and what they started. Cancellation: the ending goes on."""
        self._closed = True
        self._wanted = None
        if self._reload is not None and not self._reload.done():
            self._reload.cancel()
            await asyncio.shield(asyncio.wait({self._reload}))
        await asyncio.gather(*(server.close() for server in self._servers.values()))
        self._servers.clear()

    def tools(self) -> list[BridgedTool]:
        """Every tool that is offered, in the order of the configuration."""
        return [offered.tool for offered in self._offered()]

    def _offered(self) -> Iterable[OfferedTool]:
        seen: set[str] = set()
        for server in self._servers.values():
            for offered in server.tools():
                # Changed names differ by their hash; a clash of two servers is an attack: the first stays.
                if offered.tool.name not in seen and len(seen) < MAX_OFFERED:
                    seen.add(offered.tool.name)
                    yield offered

    def find(self, name: str) -> BridgedTool:
        """
        The tool that is offered as *name*, or is called so by its server (``server__tool``).

        Raises:
            ServerNotFound, ToolNotFound: there is none.
        """
        return self._find(name)[1].tool

    def _find(self, name: str) -> tuple[HostedServer, OfferedTool]:
        for offered in self._offered():
            if offered.tool.name == name:
                return self._servers[offered.tool.server], offered
        parts = split_name(name)
        if parts is None:
            raise ToolNotFound(f"{name[:100]!r} is no name of a tool; they are <server>__<tool>")
        server = self._servers.get(parts[0])
        if server is None:
            known = ", ".join(self._servers) or "none"
            raise ServerNotFound(f"no MCP server {parts[0][:100]!r}; there are: {known}")
        return server, server.find(parts[1])

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        on_progress: Progress | None = None,
    ) -> CallOutcome:
        """
        Call the tool *name*; *timeout_s* is extended by progress, and the entry's own by default.

        Raises:
            BridgeError: it could not be done; the text holds no secret.

        Cancellation: the server is told to stop.
        """
        server, offered = self._find(name)
        return await server.call(offered, arguments, timeout_s=timeout_s, on_progress=on_progress)

    def statuses(self) -> list[ServerStatus]:
        """Every server, those that can't run included."""
        offered = Counter(tool.server for tool in self.tools())
        running = [_told(server.status(), offered) for server in self._servers.values()]
        disabled = [
            ServerStatus(name=server.name, transport=server.transport, state="disabled", source=server.source)
            for server in self._disabled
        ]
        broken = [
            ServerStatus(
                name=problem.name or problem.source,
                state="failed",
                source=problem.source,
                last_error=problem.reason,
            )
            for problem in self._problems
        ]
        return [*running, *disabled, *broken]

    def logs(self, name: str, limit: int = 200) -> list[LogLine]:
        """
        The newest lines of a server's log.

        Raises:
            ServerNotFound: there is none.
        """
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(self._servers) or "none"
            raise ServerNotFound(f"no MCP server {name[:100]!r} runs; there are: {known}")
        return server.log.lines(limit)


def _told(status: ServerStatus, offered: Mapping[str, int]) -> ServerStatus:
    """*status*, which says so when there was no room for all of the server's tools."""
    more = status.tools - offered.get(status.name, 0)
    if more <= 0:
        return status
    note = RejectedTool(
        tool=f"{more:,} more",
        reason=f"chats take {MAX_OFFERED} MCP tools in all; drop servers that are not used",
    )
    return status.model_copy(update={"rejected": (*status.rejected, note)})
