"""Reads, each one a named statement with a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import NotFound
from chatd.state import RUNNABLE_STATUSES
from chatd.store import schema
from chatd.store.rows import chat_from_row, message_from_row, queued_from_row
from chatd.wire import Chat, Message, QueuedMessage

__all__ = [
    "MessagePage",
    "Snapshot",
    "get_chat",
    "get_file",
    "list_chats",
    "list_messages",
    "prompt_messages",
    "read_row",
    "runnable_chats",
    "snapshot_since",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """Messages by id, and whether more follow."""

    messages: list[Message]
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a stream needs, read in one transaction."""

    row: sa.RowMapping
    messages: list[Message]
    queued: list[QueuedMessage]


def read_row(connection: sa.Connection, chat_id: UUID) -> sa.RowMapping:
    """
    The chat's row.

    Raises:
        NotFound: there is none.
    """
    statement = sa.select(schema.chats).where(schema.chats.c.id == chat_id)
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise NotFound("no such chat")
    return row


def get_chat(connection: sa.Connection, chat_id: UUID, *, owner_id: UUID) -> Chat:
    """
    A chat of *owner_id* with its children.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    row = read_row(connection, chat_id)
    if row["owner_id"] != owner_id:
        raise NotFound("no such chat")
    table = schema.chats
    statement = (
        sa.select(table).where(table.c.parent_chat_id == chat_id).order_by(table.c.created_at, table.c.id)
    )
    children = tuple(chat_from_row(child) for child in connection.execute(statement).mappings())
    return chat_from_row(row, children=children)


def list_chats(connection: sa.Connection, *, owner_id: UUID, limit: int = 50) -> list[Chat]:
    """Root chats of *owner_id*, the most recently used first, each with its children."""
    table = schema.chats
    roots = (
        sa.select(table)
        .where(table.c.owner_id == owner_id, table.c.parent_chat_id.is_(None), table.c.archived.is_(False))
        .order_by(table.c.updated_at.desc(), table.c.id.desc())
        .limit(limit)
    )
    rows = connection.execute(roots).mappings().all()
    statement = (
        sa.select(table)
        .where(table.c.parent_chat_id.in_([row["id"] for row in rows]))
        .order_by(table.c.created_at, table.c.id)
    )
    children: dict[UUID, list[Chat]] = {}
    for child in connection.execute(statement).mappings():
        children.setdefault(child["parent_chat_id"], []).append(chat_from_row(child))
    return [chat_from_row(row, children=tuple(children.get(row["id"], ()))) for row in rows]


def list_messages(connection: sa.Connection, chat_id: UUID, *, after_id: int, limit: int) -> MessagePage:
    """Messages that people see, by ascending id after *after_id*."""
    rows = connection.execute(_visible(chat_id, ("user", "both"), after_id).limit(limit + 1)).mappings().all()
    return MessagePage(messages=[message_from_row(row) for row in rows[:limit]], has_more=len(rows) > limit)


def prompt_messages(connection: sa.Connection, chat_id: UUID) -> list[Message]:
    """Messages that the model sees, in order."""
    rows = connection.execute(_visible(chat_id, ("model", "both"), 0)).mappings()
    return [message_from_row(row) for row in rows]


def _visible(chat_id: UUID, visibilities: Sequence[str], after_id: int) -> sa.Select[tuple[object, ...]]:
    table = schema.messages
    return (
        sa.select(*table.c)
        .where(
            table.c.chat_id == chat_id,
            table.c.deleted.is_(False),
            table.c.visibility.in_(visibilities),
            table.c.id > after_id,
        )
        .order_by(table.c.id)
    )


def list_queued(connection: sa.Connection, chat_id: UUID) -> list[QueuedMessage]:
    """Waiting messages, head first."""
    table = schema.queued_messages
    statement = sa.select(table).where(table.c.chat_id == chat_id).order_by(table.c.id)
    return [queued_from_row(row) for row in connection.execute(statement).mappings()]


def snapshot_since(connection: sa.Connection, chat_id: UUID, history_version: int) -> Snapshot:
    """The row, the visible messages revised after *history_version*, and the queue."""
    table = schema.messages
    statement = _visible(chat_id, ("user", "both"), 0).where(table.c.revision > history_version)
    return Snapshot(
        row=read_row(connection, chat_id),
        messages=[message_from_row(row) for row in connection.execute(statement).mappings()],
        queued=list_queued(connection, chat_id),
    )


def runnable_chats(connection: sa.Connection, *, now: datetime, lease: timedelta, limit: int) -> list[UUID]:
    """Chats that want a runner and have none alive: interrupting first, then the oldest."""
    chats, beats = schema.chats, schema.heartbeats
    alive = (
        sa.select(beats.c.chat_id)
        .where(
            beats.c.chat_id == chats.c.id,
            beats.c.runner_id == chats.c.runner_id,
            beats.c.heartbeat_at > now - lease,
        )
        .exists()
    )
    statement = (
        sa.select(chats.c.id)
        .where(
            chats.c.archived.is_(False),
            chats.c.status.in_(RUNNABLE_STATUSES),
            sa.or_(chats.c.worker_id.is_(None), chats.c.runner_id.is_(None), ~alive),
        )
        .order_by(sa.case((chats.c.status == "interrupting", 0), else_=1), chats.c.updated_at, chats.c.id)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def get_file(connection: sa.Connection, file_id: UUID, *, owner_id: UUID) -> sa.RowMapping:
    """
    A stored file of *owner_id*.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    table = schema.files
    statement = sa.select(table).where(table.c.id == file_id, table.c.owner_id == owner_id)
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise NotFound("no such file")
    return row


def files_by_id(connection: sa.Connection, file_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """Bytes of the given files; unknown ids are left out."""
    table = schema.files
    statement = sa.select(table.c.id, table.c.bytes).where(table.c.id.in_(file_ids))
    return {row.id: row.bytes for row in connection.execute(statement)}


__all__ += ["files_by_id", "list_queued"]
