"""Chats that nobody used for long."""

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema

__all__ = ["delete_archived", "idle_roots"]

# Families deleted in one transaction: others wait to write meanwhile.
DELETE_BATCH = 100


def idle_roots(
    connection: sa.Connection, *, before: datetime, limit: int, only: UUID | None = None
) -> list[UUID]:
    """
    Unpinned, unarchived roots at rest whose newest family message is older than *before*, oldest first.

    With *only* that chat or none: to judge again under its lock.
    """
    chats, messages = schema.chats, schema.messages
    member = chats.alias("member")
    family = sa.or_(member.c.id == chats.c.id, member.c.root_chat_id == chats.c.id)
    is_recent = (
        sa.select(messages.c.id)
        .join(member, member.c.id == messages.c.chat_id)
        .where(family, messages.c.created_at >= before)
        .exists()
    )
    is_busy = sa.select(member.c.id).where(family, member.c.status.not_in(("waiting", "error"))).exists()
    statement = (
        sa.select(chats.c.id)
        .where(
            chats.c.parent_chat_id.is_(None),
            chats.c.archived.is_(False),
            chats.c.pin_order == 0,
            chats.c.updated_at < before,
            ~is_recent,
            ~is_busy,
        )
        .order_by(chats.c.updated_at, chats.c.id)
        .limit(limit)
    )
    if only is not None:
        statement = statement.where(chats.c.id == only)
    return list(connection.execute(statement).scalars())


def delete_archived(connection: sa.Connection, *, before: datetime) -> int:
    """
    Delete families that were archived before *before*, with all that is theirs; how many roots, at most 100.

    Transaction: joined. Each root is locked, and judged again under the lock by the database.
    """
    chats = schema.chats
    old = (chats.c.parent_chat_id.is_(None), chats.c.archived.is_(True), chats.c.updated_at < before)
    oldest = sa.select(chats.c.id).where(*old).order_by(chats.c.updated_at, chats.c.id).limit(DELETE_BATCH)
    roots = list(connection.execute(oldest.with_for_update()).scalars())
    below = chats.c.root_chat_id.in_(roots)
    connection.execute(chats.delete().where(sa.or_(chats.c.id.in_(roots), below)))
    return len(roots)
