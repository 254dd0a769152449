"""The deployment's MCP servers as rows."""

from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import BadRequest, NotFound, QueueFull
from chatd.mcp_wire import McpServer
from chatd.store import schema

__all__ = [
    "MAX_SERVERS",
    "check_chosen",
    "choose_servers",
    "delete_server",
    "get_server",
    "insert_server",
    "list_servers",
    "read_sealed",
    "update_server",
]

# Servers of a deployment; each is a connection of every replica.
MAX_SERVERS = 100
_TABLE = schema.mcp_servers
_TOLD = [column for column in _TABLE.c if column.name != "sealed_headers"]


def list_servers(connection: sa.Connection) -> list[McpServer]:
    """All of them, by slug."""
    rows = connection.execute(sa.select(*_TOLD).order_by(_TABLE.c.slug)).mappings()
    return [McpServer.model_validate(dict(row)) for row in rows]


def get_server(connection: sa.Connection, server_id: UUID) -> McpServer:
    """
    One of them.

    Raises:
        NotFound: there is none.
    """
    row = connection.execute(sa.select(*_TOLD).where(_TABLE.c.id == server_id)).mappings().one_or_none()
    if row is None:
        raise NotFound("no such MCP server")
    return McpServer.model_validate(dict(row))


def read_sealed(connection: sa.Connection) -> dict[UUID, bytes]:
    """Sealed headers of those that have any."""
    statement = sa.select(_TABLE.c.id, _TABLE.c.sealed_headers).where(_TABLE.c.sealed_headers.is_not(None))
    return {row.id: row.sealed_headers for row in connection.execute(statement)}


def insert_server(
    connection: sa.Connection, server_id: UUID, values: dict[str, Any], *, now: datetime
) -> McpServer:
    """
    A new server.

    Raises:
        BadRequest: its slug is taken.
        QueueFull: there are too many.
    """
    if connection.execute(sa.select(sa.func.count()).select_from(_TABLE)).scalar_one() >= MAX_SERVERS:
        raise QueueFull(f"there are {MAX_SERVERS} MCP servers already; delete one first")
    _check_slug(connection, values["slug"], server_id)
    connection.execute(_TABLE.insert().values(id=server_id, created_at=now, updated_at=now, **values))
    return get_server(connection, server_id)


def update_server(
    connection: sa.Connection, server_id: UUID, values: dict[str, Any], *, now: datetime
) -> McpServer:
    """
    Change what *values* holds.

    Raises:
        NotFound: there is none.
        BadRequest: another has the slug.
    """
    if "slug" in values:
        _check_slug(connection, values["slug"], server_id)
    statement = _TABLE.update().where(_TABLE.c.id == server_id).values(updated_at=now, **values)
    if connection.execute(statement).rowcount != 1:
        raise NotFound("no such MCP server")
    return get_server(connection, server_id)


def delete_server(connection: sa.Connection, server_id: UUID) -> None:
    """
    Take one away; chats that chose it go on without it.

    Raises:
        NotFound: there is none.
    """
    if connection.execute(_TABLE.delete().where(_TABLE.c.id == server_id)).rowcount != 1:
        raise NotFound("no such MCP server")


def check_chosen(connection: sa.Connection, chosen: list[UUID] | None) -> None:
    """
    See that every server a chat chooses exists.

    Raises:
        BadRequest: some do not; the text names them.
    """
    if not chosen:
        return
    known = set(connection.execute(sa.select(_TABLE.c.id).where(_TABLE.c.id.in_(chosen))).scalars())
    unknown = [str(server_id) for server_id in chosen if server_id not in known]
    if unknown:
        raise BadRequest(f"mcp_server_ids: there is no {', '.join(unknown)}")


def choose_servers(connection: sa.Connection, chat_id: UUID, chosen: list[UUID]) -> None:
    """
    Let a chat have *chosen*, and those that every chat has.

    Raises:
        BadRequest: one of them does not exist.
    """
    check_chosen(connection, chosen)
    table = schema.chats
    ids = [str(server_id) for server_id in chosen]
    connection.execute(table.update().where(table.c.id == chat_id).values(mcp_server_ids=ids))


def _check_slug(connection: sa.Connection, slug: str, server_id: UUID) -> None:
    taken = sa.select(_TABLE.c.id).where(_TABLE.c.slug == slug, _TABLE.c.id != server_id)
    if connection.execute(taken).first() is not None:
        raise BadRequest(f"slug: another MCP server is called {slug!r}")
