"""Whether somebody who lives owns a chat: its replica is not gone, and its runner beat within the lease."""

from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema

__all__ = ["is_owned", "owned"]


def owned(now: datetime, lease: timedelta) -> sa.ColumnElement[bool]:
    """A condition on ``chats``."""
    chats, beats, replicas = schema.chats, schema.heartbeats, schema.replicas
    beats_on = (
        sa.select(beats.c.chat_id)
        .where(
            beats.c.chat_id == chats.c.id,
            beats.c.runner_id == chats.c.runner_id,
            beats.c.heartbeat_at > now - lease,
        )
        .exists()
    )
    is_gone = (
        sa.select(replicas.c.id)
        .where(replicas.c.id == chats.c.worker_id, replicas.c.gone_at.is_not(None))
        .exists()
    )
    has_owner = chats.c.worker_id.is_not(None) & chats.c.runner_id.is_not(None)
    return sa.and_(has_owner, beats_on, ~is_gone)


def is_owned(connection: sa.Connection, chat_id: UUID, *, now: datetime, lease: timedelta) -> bool:
    """
    Whether a chat is owned, at this moment.

    Transaction: joined; ask under the chat's lock.
    """
    statement = sa.select(schema.chats.c.id).where(schema.chats.c.id == chat_id, owned(now, lease))
    return connection.execute(statement).first() is not None
