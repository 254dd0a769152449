"""MCP servers: those of the deployment, made and changed here, and what one chat has of both kinds."""

import asyncio
import json
import uuid
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit
from uuid import UUID

import sqlalchemy as sa
import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agentd.wire.link import Empty
from agentd.wire.mcp import MCP_SERVERS, McpServers
from chatd.audit import AuditAction, AuditEntry
from chatd.errors import AgentUnavailable, BadRequest, ChatdError, NotFound
from chatd.mcp_host import McpHost, check_server
from chatd.mcp_wire import Availability, ChatMcp, ChatMcpServer, McpHealth, McpServer, McpServerList, Slug
from chatd.outbound import OutboundRefused
from chatd.routes.auditing import entry_of, write_audited
from chatd.routes.chats import answer, chat_of_caller
from chatd.routes.context import require_admin, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import mcp_servers, queries
from chatd.wire import Chat
from chatd.worker.offered import offered_tools
from mcp_bridge.config import MAX_CALL_TIMEOUT_S
from mcp_bridge.errors import ConfigUnusable
from mcp_bridge.wire import ServerStatus

__all__ = ["routes"]

# Seconds for a workspace to tell of its servers.
QUESTION_S = 10.0
# Seconds to find out all that a chat may call.
LISTING_S = 3.0
PATH = "/api/experimental/mcp-servers"
ToolNames = Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=1_000)]
HeaderName = Annotated[str, Field(max_length=200)]
HeaderValue = Annotated[str, Field(max_length=16_000)]
Headers = Annotated[dict[HeaderName, HeaderValue], Field(max_length=50)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]

routes = web.RouteTableDef()
log = structlog.get_logger("chatd.mcp")


class McpServerPatch(BaseModel):
    """Changes of a server; what is absent stays."""

    model_config = ConfigDict(extra="forbid")

    slug: Slug | None = None
    display_name: Name | None = None
    description: str | None = Field(default=None, max_length=2_000)
    transport: Annotated[str | None, Field(pattern="^(http|sse)$")] = None
    url: str | None = Field(default=None, max_length=2_000)
    headers: Headers | None = Field(
        default=None, description="Sent to the server's own origin only; kept sealed, never told again."
    )
    tool_allow_list: ToolNames | None = Field(default=None, description="Empty: all of its tools.")
    tool_deny_list: ToolNames | None = None
    availability: Availability | None = None
    enabled: bool | None = None
    allow_in_plan_mode: bool | None = None
    call_timeout_s: float | None = Field(default=None, gt=0, le=MAX_CALL_TIMEOUT_S)


class NewMcpServer(McpServerPatch):
    """A server for all chats of the deployment."""

    slug: Slug
    url: str = Field(max_length=2_000)


@routes.get(PATH)
@describe(answer=McpServerList)
async def list_servers(request: web.Request) -> web.Response:
    """The deployment's MCP servers and how this replica is connected to them."""
    return answer(McpServerList(servers=await services(request).mcp.servers()))


@routes.post(PATH)
@describe(
    body=NewMcpServer,
    answer=McpServer,
    status=201,
    errors={403: "only administrators add servers", 429: "there are too many"},
)
async def create(request: web.Request) -> web.Response:
    """Add a server; it is connected to at once, *health* of a later answer tells how that went."""
    require_admin(request)
    wish = await read_body(request, NewMcpServer)
    host, store = services(request).mcp, services(request).store
    defaults = McpServer(
        id=uuid.uuid4(),
        slug=wish.slug,
        display_name=wish.display_name or wish.slug,
        url=wish.url,
        created_at=store.now(),
        updated_at=store.now(),
    )
    server = _changed(defaults, wish)
    _check(server, wish.headers)
    _check_place(host, server.url)
    values = _values(host, server, wish.headers or {})
    entry = entry_of(request, AuditAction.MCP_ADDED, target=server.slug, url=_place_of(server.url))
    made = await write_audited(request, entry, mcp_servers.insert_server, server.id, values, now=store.now())
    host.change()
    log.info("MCP server added", action="mcp_add", server=made.slug)
    return answer(made, status=201)


@routes.get(PATH + "/{server_id}")
@describe(answer=McpServer)
async def get_one(request: web.Request) -> web.Response:
    """One server."""
    server_id = _server_id(request)
    for server in await services(request).mcp.servers():
        if server.id == server_id:
            return answer(server)
    raise NotFound("no such MCP server")


@routes.patch(PATH + "/{server_id}")
@describe(body=McpServerPatch, answer=McpServer)
async def change(request: web.Request) -> web.Response:
    """Change a server; chats have the change with their next model call."""
    require_admin(request)
    server_id = _server_id(request)
    wish = await read_body(request, McpServerPatch)
    host, store = services(request).mcp, services(request).store

    def apply(connection: sa.Connection, now: datetime) -> McpServer:
        server = _changed(mcp_servers.get_server(connection, server_id), wish)
        _check(server, wish.headers)
        _check_place(host, server.url)
        return mcp_servers.update_server(connection, server_id, _values(host, server, wish.headers), now=now)

    fields = ", ".join(sorted(wish.model_fields_set))

    def entry(done: McpServer) -> AuditEntry:
        return entry_of(
            request, AuditAction.MCP_CHANGED, target=done.slug, url=_place_of(done.url), fields=fields
        )

    changed = await write_audited(request, entry, apply, store.now())
    host.change()
    log.info("MCP server changed", action="mcp_change", server=changed.slug)
    return answer(changed)


@routes.delete(PATH + "/{server_id}")
@describe(status=204)
async def delete(request: web.Request) -> web.Response:
    """Take a server away from every chat."""
    require_admin(request)
    server_id, parts = _server_id(request), services(request)
    entry = entry_of(request, AuditAction.MCP_DELETED, target=str(server_id))
    await write_audited(request, entry, mcp_servers.delete_server, server_id)
    parts.mcp.change()
    log.info("MCP server deleted", action="mcp_delete", server_id=str(server_id))
    return web.Response(status=204)


@routes.get("/api/experimental/chats/{chat_id}/mcp")
@describe(answer=ChatMcp)
async def of_chat(request: web.Request) -> web.Response:
    """The MCP servers of a chat: its workspace's, and those of the deployment with whether it has them."""
    chat = await chat_of_caller(request)
    ours = [_of_deployment(server, chat) for server in await services(request).mcp.servers()]
    if chat.agent_id is None:
        left_out = await _left_out(request, chat)
        return answer(ChatMcp(workspace="none", servers=tuple(ours), left_out=left_out))
    directory = services(request).directory
    try:
        told = await directory.ask(chat.agent_id, MCP_SERVERS, Empty(), McpServers, timeout_s=QUESTION_S)
    except AgentUnavailable:
        return answer(ChatMcp(workspace="away", servers=tuple(ours)))
    theirs = [_of_workspace(status, told.tools.get(status.name, ())) for status in told.servers]
    left_out = await _left_out(request, chat)
    return answer(ChatMcp(workspace="connected", servers=(*theirs, *ours), left_out=left_out))


async def _left_out(request: web.Request, chat: Chat) -> tuple[str, ...]:
    """Names of the tools that find no room in a request; none where that is not known now."""
    parts = services(request)
    try:
        async with asyncio.timeout(LISTING_S):
            row = await parts.store.read(queries.read_row, chat.id)
            _, offered = await offered_tools(parts, row)
    except (ChatdError, TimeoutError):
        return ()
    return offered.left_out


def _of_workspace(status: ServerStatus, tools: tuple[str, ...]) -> ChatMcpServer:
    health = McpHealth(tools=tools, **status.model_dump(include=set(McpHealth.model_fields) - {"tools"}))
    return ChatMcpServer(
        name=status.name,
        origin="workspace",
        display_name=status.name,
        description=status.source,
        is_on=status.state != "disabled",
        health=health,
    )


def _of_deployment(server: McpServer, chat: Chat) -> ChatMcpServer:
    return ChatMcpServer(
        name=server.slug,
        origin="deployment",
        id=server.id,
        display_name=server.display_name,
        description=server.description,
        availability=server.availability,
        is_on=server.is_on(chat.mcp_server_ids),
        health=server.health or McpHealth(state="connecting"),
    )


def _check_place(host: McpHost, url: str) -> None:
    """
    See that an address that is written out may be connected to; names are looked up when they are.

    Raises:
        BadRequest: it may not.
    """
    name = urlsplit(url).hostname or ""
    with suppress(ValueError):
        ip_address(name)
        try:
            host.outbound.check(name, name)
        except OutboundRefused as exc:
            raise BadRequest(f"url: {exc}") from exc


def _place_of(url: str) -> str:
    """A URL without what may be a secret: its user and its query."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _server_id(request: web.Request) -> UUID:
    try:
        return UUID(request.match_info["server_id"])
    except ValueError:
        raise NotFound("no such MCP server") from None


def _changed(server: McpServer, wish: McpServerPatch) -> McpServer:
    given = wish.model_dump(exclude_none=True, exclude={"headers"})
    names = {} if wish.headers is None else {"header_names": sorted(wish.headers)}
    return McpServer.model_validate(server.model_dump() | given | names)


def _check(server: McpServer, headers: dict[str, str] | None) -> None:
    """
    See that the bridge could connect.

    Raises:
        BadRequest: it could not; the text says what to change.
    """
    try:
        check_server(server, headers)
    except ConfigUnusable as exc:
        raise BadRequest(str(exc)) from exc


def _values(host: McpHost, server: McpServer, headers: dict[str, str] | None) -> dict[str, Any]:
    """Column values; the headers, if they are given, sealed."""
    values = server.model_dump(mode="json", exclude={"id", "created_at", "updated_at", "health"})
    if headers is None:
        return values
    return values | {"sealed_headers": host.sealer.seal(json.dumps(headers)) if headers else None}
