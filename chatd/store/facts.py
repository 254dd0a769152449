"""What is stored about a chat's being stuck, read at once; ``chatd.state.why`` explains it."""

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.state import RUNNABLE_STATUSES
from chatd.state.why import BusyChild, Facts
from chatd.store import queries, schema
from chatd.store.rows import open_calls
from chatd.wire import Message

__all__ = ["read_facts"]


def read_facts(connection: sa.Connection, chat_id: UUID) -> Facts:
    """
    Everything that tells why the chat does not go on.

    Raises:
        NotFound: there is no such chat.
    """
    row = queries.read_row(connection, chat_id)
    messages = queries.prompt_messages(connection, chat_id)
    calls = tuple(open_calls(messages)) if row["status"] in RUNNABLE_STATUSES else ()
    beats = schema.heartbeats
    beat = sa.select(beats.c.heartbeat_at).where(
        beats.c.chat_id == chat_id, beats.c.runner_id == row["runner_id"]
    )
    return Facts(
        row={str(name): value for name, value in row.items()},
        queued=len(queries.list_queued(connection, chat_id)),
        last_at=messages[-1].created_at if messages else row["created_at"],
        heartbeat_at=connection.execute(beat).scalar_one_or_none(),
        open_calls=calls,
        handed_over=_handed_over(connection, chat_id, messages) if calls else {},
        children=_busy_children(connection, chat_id),
    )


def _handed_over(connection: sa.Connection, chat_id: UUID, messages: list[Message]) -> dict[str, datetime]:
    """When each call of the last answer was given to the workspace, by the vendor's id of it."""
    last = max(message.id for message in messages if message.role == "assistant")
    table, prefix = schema.tool_calls, f"{chat_id}/{last}/"
    mine = sa.select(table.c.call_key, table.c.started_at).where(
        table.c.chat_id == chat_id, table.c.call_key.startswith(prefix, autoescape=True)
    )
    return {row.call_key.removeprefix(prefix): row.started_at for row in connection.execute(mine)}


def _busy_children(connection: sa.Connection, chat_id: UUID) -> tuple[BusyChild, ...]:
    table = schema.chats
    busy = (
        sa.select(table.c.id, table.c.title, table.c.status)
        .where(table.c.parent_chat_id == chat_id, table.c.status.in_(RUNNABLE_STATUSES))
        .order_by(table.c.id)
    )
    return tuple(
        BusyChild(chat_id=row.id, title=row.title, status=row.status) for row in connection.execute(busy)
    )
