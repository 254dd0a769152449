"""
The deployment's MCP servers, connected to once for all chats of this replica.

Rows say what there is. A change is hinted at through the hub, whichever replica made it, and seen at once;
one whose hint was lost at the next look.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa
import structlog

from agentd.wire.version import VERSION
from chatd.errors import ChatdError
from chatd.mcp_wire import McpHealth, McpServer
from chatd.outbound import Outbound
from chatd.sealing import SealBroken, Sealer
from chatd.store import mcp_servers
from chatd.store.store import Store
from chatd.stream.hub import Hub
from mcp_bridge.config import ConfigFile, EntryProblem, ServerConfig, parse_entry
from mcp_bridge.errors import BridgeClosed, BridgeError, ConfigUnusable
from mcp_bridge.wire import BridgedTool, CallOutcome

if TYPE_CHECKING:
    from mcp_bridge.bridge import Bridge

__all__ = ["McpHost", "check_server"]

# Seconds between looks at the rows.
LOOK_S = 10.0
# Seconds a turn waits for the first connections of a chatd that has just started.
SETTLE_S = 5.0
SOURCE = "deployment"
PUBLIC = Outbound()

log = structlog.get_logger("chatd.mcp")


def check_server(server: McpServer, headers: dict[str, str] | None) -> ServerConfig:
    """
    A row as the bridge takes it.

    Raises:
        ConfigUnusable: it can't be connected to; the text says what to change.
    """
    entry = {
        "type": server.transport,
        "url": server.url,
        "headers": headers or {},
        "timeout_s": server.call_timeout_s,
        "disabled": not server.enabled,
    }
    return parse_entry(server.slug, entry, source=SOURCE, environment={})


class McpHost:
    """Connections, kept as the rows say."""

    def __init__(self, store: Store, sealer: Sealer, hub: Hub, outbound: Outbound = PUBLIC) -> None:
        self._store = store
        self.outbound = outbound
        self.sealer = sealer
        self._rows: tuple[McpServer, ...] = ()
        self._sealed: dict[UUID, bytes] = {}
        self._changed = asyncio.Event()
        self._bridge: Bridge | None = None
        self._settled = asyncio.Event()
        self._is_fresh = False
        self._changes = 0
        self._hub = hub
        hub.on_hint("mcp_servers", self._look_again)

    async def run(self) -> None:
        """Keep them until cancelled, then end every connection."""
        try:
            while True:
                try:
                    await self._refresh()
                except (BridgeError, ChatdError, sa.exc.SQLAlchemyError):
                    # The next look tries again: a database that was away must not end the servers for good.
                    log.exception("MCP servers could not be read", action="mcp_failed")
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._changed.wait()
                self._changed.clear()
        finally:
            if self._bridge is not None:
                await self._bridge.close()

    def change(self) -> None:
        """We changed the rows: everybody looks at once."""
        self._hub.hint("mcp_servers")

    def _look_again(self) -> None:
        self._changes += 1
        self._is_fresh = False
        self._changed.set()

    async def servers(self) -> tuple[McpServer, ...]:
        """All servers with how they are here."""
        rows = await self._store.read(mcp_servers.list_servers)
        return tuple(row.model_copy(update={"health": self._health(row)}) for row in rows)

    async def offered(
        self, chosen: tuple[UUID, ...] | None, *, plan_mode: bool = False
    ) -> list[tuple[McpServer, BridgedTool]]:
        """Tools of the servers that a chat has, by server and in the server's order."""
        # What is kept is good until the next hint; until it is read again turns ask the database.
        rows = self._rows if self._is_fresh else await self._store.read(mcp_servers.list_servers)
        on = {row.slug: row for row in rows if row.is_on(chosen, plan_mode=plan_mode)}
        if not on:
            return []
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                await self._settled.wait()
        return [(on[tool.server], tool) for tool in self._tools() if _is_allowed(on, tool)]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallOutcome:
        """
        Call the tool that is offered as *name*.

        Raises:
            BridgeError: it could not be done; the text says why.
        """
        if self._bridge is None:
            raise BridgeClosed("the MCP servers are not connected yet")
        return await self._bridge.call(name, arguments)

    def _tools(self) -> list[BridgedTool]:
        return [] if self._bridge is None else self._bridge.tools()

    def _health(self, row: McpServer) -> McpHealth:
        statuses = {} if self._bridge is None else {one.name: one for one in self._bridge.statuses()}
        status = statuses.get(row.slug)
        if status is None:
            return McpHealth(state="connecting" if row.enabled else "disabled")
        return McpHealth(
            tools=tuple(tool.tool for tool in self._tools() if tool.server == row.slug),
            **status.model_dump(include=set(McpHealth.model_fields) - {"tools"}),
        )

    async def _refresh(self) -> None:
        changes = self._changes
        rows, sealed = await self._store.read(_read_all)
        is_new = (rows, sealed) != (self._rows, self._sealed)
        self._rows, self._sealed = rows, sealed
        # A change that came while we read is seen at the next look, and by turns in the database until then.
        self._is_fresh = changes == self._changes
        if is_new:
            if self._bridge is None:
                await asyncio.to_thread(import_module, "mcp_bridge.bridge")
                self._bridge = _make_bridge(self.outbound)
            await self._bridge.apply(self._configuration(rows, sealed))
        self._settled.set()

    def _configuration(self, rows: Sequence[McpServer], sealed: dict[UUID, bytes]) -> ConfigFile:
        servers: list[ServerConfig] = []
        problems: list[EntryProblem] = []
        for row in rows:
            try:
                box = sealed.get(row.id)
                servers.append(check_server(row, json.loads(self.sealer.open(box)) if box else None))
            except (ConfigUnusable, SealBroken) as exc:
                problems.append(EntryProblem(source=SOURCE, name=row.slug, reason=str(exc)))
        return ConfigFile(servers=tuple(servers), problems=tuple(problems))


def _make_bridge(outbound: Outbound) -> "Bridge":
    # The protocol's SDK is a quarter of a chatd's memory: loaded where there is a server to speak to.
    from chatd.guarded import GuardedNetwork  # noqa: PLC0415
    from mcp_bridge.bridge import Bridge  # noqa: PLC0415
    from mcp_bridge.hosting.connection import Place  # noqa: PLC0415

    return Bridge(
        Place(
            environment={},
            cwd=None,
            mark="chatd",
            client_name="chatd",
            client_version=VERSION,
            network=GuardedNetwork(outbound),
        )
    )


def _is_allowed(on: Mapping[str, McpServer], tool: BridgedTool) -> bool:
    return tool.server in on and on[tool.server].allows(tool.tool)


def _read_all(connection: sa.Connection) -> tuple[tuple[McpServer, ...], dict[UUID, bytes]]:
    return tuple(mcp_servers.list_servers(connection)), mcp_servers.read_sealed(connection)
