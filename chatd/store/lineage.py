"""Who started which chat."""

from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import NotFound
from chatd.store import schema
from chatd.store.queries import read_row
from chatd.store.rows import chat_from_row
from chatd.wire import Chat

__all__ = ["ChildPage", "agent_at_desktop", "list_children", "read_descendant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPage:
    """Some of the chats that a chat started, and how many there are."""

    chats: list[Chat]
    total: int


def read_descendant(connection: sa.Connection, chat_id: UUID, *, of: UUID) -> sa.RowMapping:
    """
    The row of a chat below *of*: one query for each generation between them.

    Raises:
        NotFound: it is not there, is *of* itself, or has another ancestor, or a row's ancestors go in a ring.
    """
    row = read_row(connection, chat_id)
    seen, parent_id = {chat_id}, row["parent_chat_id"]
    while chat_id != of and parent_id is not None and parent_id not in seen:
        if parent_id == of:
            return row
        seen.add(parent_id)
        parent_id = read_row(connection, parent_id)["parent_chat_id"]
    raise NotFound("no such agent")


def list_children(connection: sa.Connection, parent_id: UUID, *, limit: int, offset: int) -> ChildPage:
    """The chats that *parent_id* started, without archived ones, the most recently used first."""
    table = schema.chats
    mine = (table.c.parent_chat_id == parent_id) & table.c.archived.is_(False)
    newest_first = (table.c.updated_at.desc(), table.c.id.desc())
    page = sa.select(table).where(mine).order_by(*newest_first).limit(limit).offset(offset)
    total = sa.select(sa.func.count()).select_from(table).where(mine)
    return ChildPage(
        chats=[chat_from_row(row) for row in connection.execute(page).mappings()],
        total=connection.execute(total).scalar_one(),
    )


def agent_at_desktop(connection: sa.Connection, chat_id: UUID) -> UUID:
    """
    Whose desktop is shown for a chat, where each agent has its own.

    Of the chat's agents at the desktop it is the newest that works, else the one that worked last; where
    there is none, as for a sub-agent, the chat itself.
    """
    table = schema.chats
    works = sa.case((table.c.status.in_(("running", "interrupting")), 0), else_=1)
    statement = (
        sa.select(table.c.id)
        .where(table.c.parent_chat_id == chat_id, table.c.mode == "computer_use")
        .order_by(works, sa.case((works == 0, table.c.created_at), else_=table.c.updated_at).desc())
        .limit(1)
    )
    found: UUID | None = connection.execute(statement).scalar_one_or_none()
    return found or chat_id
