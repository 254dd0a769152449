"""
Replicas as rows: who lives, who is gone, and which of them each workspace is linked to.

Times here are the database's. Whether one is dead is no question of time: another watches its
count of beats by its own steady clock.
"""

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import Unauthorised
from chatd.store import schema
from chatd.store.inserts import upsert

__all__ = [
    "AgentLink",
    "Replica",
    "beat",
    "check_credential",
    "database_now",
    "find_link",
    "forget_gone",
    "forget_link",
    "linked_agents",
    "links_of",
    "list_known",
    "list_live",
    "mark_gone",
    "mark_silent",
    "record_link",
    "register",
]

# How long the row of a replica that is gone is kept: as long as a chat may name it.
KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A process that shares the database; *address* is where the others reach it, empty: not yet."""

    id: UUID
    address: str
    beats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLink:
    """Where a workspace is linked, and what it said of itself."""

    agent_id: UUID
    replica_id: UUID
    connection_id: UUID
    boot_id: str
    name: str
    streams_url: str | None
    pushes_context: bool
    connected_at: datetime


def database_now(connection: sa.Connection) -> datetime:
    """The database's clock, as it is at this moment."""
    is_postgres = connection.dialect.name == "postgresql"
    now = sa.func.clock_timestamp() if is_postgres else sa.func.now()
    found: datetime = connection.execute(
        sa.select(sa.type_coerce(now, schema.replicas.c.beat_at.type))
    ).scalar_one()
    return found


def register(connection: sa.Connection, replica_id: UUID, *, version: str, credential: str) -> None:
    """A process that begins; it is told of by ``beat`` once it can be reached."""
    now = database_now(connection)
    values = {
        "id": replica_id,
        "address": "",
        "version": version,
        "credential_hash": _hash(credential),
        "beats": 0,
        "started_at": now,
        "beat_at": now,
    }
    connection.execute(schema.replicas.insert().values(values))


def beat(connection: sa.Connection, replica_id: UUID, address: str) -> bool:
    """Show a sign of life; False when we were taken for dead."""
    table = schema.replicas
    mine = (table.c.id == replica_id) & table.c.gone_at.is_(None)
    values = {"beats": table.c.beats + 1, "beat_at": database_now(connection), "address": address}
    return connection.execute(table.update().where(mine).values(values)).rowcount == 1


def list_live(connection: sa.Connection) -> list[Replica]:
    """All that are not gone, ourselves included."""
    table = schema.replicas
    statement = sa.select(table.c.id, table.c.address, table.c.beats).where(table.c.gone_at.is_(None))
    return [Replica(**row) for row in connection.execute(statement.order_by(table.c.id)).mappings()]


def list_known(connection: sa.Connection, *, and_gone: bool) -> list[dict[str, Any]]:
    """What people are told of each, the newest first; *and_gone*: also of those that are gone."""
    table, links = schema.replicas, schema.agent_links
    linked = sa.select(sa.func.count()).where(links.c.replica_id == table.c.id).scalar_subquery()
    statement = sa.select(
        *(table.c[name] for name in ("id", "address", "version", "started_at", "beat_at", "gone_at")),
        linked.label("links"),
    ).order_by(table.c.started_at.desc(), table.c.id)
    if not and_gone:
        statement = statement.where(table.c.gone_at.is_(None))
    now = database_now(connection)
    return [
        {**row, "silent_s": max(0.0, (now - row["beat_at"]).total_seconds())}
        for row in connection.execute(statement).mappings()
    ]


def mark_gone(connection: sa.Connection, replica_id: UUID) -> None:
    """It left, or its successor in the same data directory is here: its chats and workspaces are free."""
    table = schema.replicas
    values = {"gone_at": database_now(connection)}
    connection.execute(table.update().where(table.c.id == replica_id).values(values))
    connection.execute(schema.agent_links.delete().where(schema.agent_links.c.replica_id == replica_id))


def mark_silent(connection: sa.Connection, replica: Replica) -> bool:
    """Take *replica* for dead, unless it beat since it was read; whether it was."""
    table = schema.replicas
    silent = (table.c.id == replica.id) & (table.c.beats == replica.beats) & table.c.gone_at.is_(None)
    held = sa.select(table.c.id).where(silent).with_for_update(skip_locked=True)
    if connection.execute(held).first() is None:
        return False
    mark_gone(connection, replica.id)
    return True


def forget_gone(connection: sa.Connection) -> int:
    """Delete rows of replicas that went long ago and own no chat any more."""
    table, chats = schema.replicas, schema.chats
    owns = sa.select(chats.c.id).where(chats.c.worker_id == table.c.id).exists()
    old = table.c.gone_at < database_now(connection) - KEPT
    return connection.execute(table.delete().where(old, ~owns)).rowcount


def check_credential(connection: sa.Connection, replica_id: UUID, credential: str) -> None:
    """
    See that a live replica of that id has this credential; compared in constant time.

    Raises:
        Unauthorised: unknown, gone, or another credential; which one is not told.
    """
    table = schema.replicas
    known = sa.select(table.c.credential_hash).where(table.c.id == replica_id, table.c.gone_at.is_(None))
    expected: bytes = connection.execute(known).scalar_one_or_none() or bytes(32)
    if not hmac.compare_digest(expected, _hash(credential)):
        raise Unauthorised("this credential is not valid")


def _hash(credential: str) -> bytes:
    return hashlib.sha256(credential.encode(errors="surrogatepass")).digest()


# -- links ---------------------------------------------------------------------


def record_link(connection: sa.Connection, link: AgentLink) -> None:
    """A workspace is linked to us: the newest link is the one, in whatever order they are recorded."""
    table = schema.agent_links
    values = {name: getattr(link, name) for name in AgentLink.__slots__}
    upsert(connection, table, values, key=["agent_id"], unless=table.c.connected_at > link.connected_at)


def forget_link(connection: sa.Connection, connection_id: UUID) -> None:
    """A link ended."""
    table = schema.agent_links
    connection.execute(table.delete().where(table.c.connection_id == connection_id))


def _is_live() -> sa.ColumnElement[bool]:
    links, replicas = schema.agent_links, schema.replicas
    live = (replicas.c.id == links.c.replica_id) & replicas.c.gone_at.is_(None) & (replicas.c.address != "")
    return sa.select(replicas.c.id).where(live).exists()


def find_link(connection: sa.Connection, agent_id: UUID) -> AgentLink | None:
    """Where the workspace is linked; None: nowhere that lives."""
    table = schema.agent_links
    row = (
        connection.execute(sa.select(table).where(table.c.agent_id == agent_id, _is_live()))
        .mappings()
        .first()
    )
    if row is None:
        return None
    return AgentLink(**row)


def linked_agents(connection: sa.Connection, agent_ids: Collection[UUID]) -> set[UUID]:
    """Those of *agent_ids* that are linked somewhere."""
    table = schema.agent_links
    statement = sa.select(table.c.agent_id).where(table.c.agent_id.in_(agent_ids), _is_live())
    return {row.agent_id for row in connection.execute(statement)}


def links_of(connection: sa.Connection, replica_id: UUID) -> dict[UUID, UUID]:
    """Connections that are recorded for a replica, by agent."""
    table = schema.agent_links
    mine = sa.select(table.c.agent_id, table.c.connection_id).where(table.c.replica_id == replica_id)
    return {row.agent_id: row.connection_id for row in connection.execute(mine)}
