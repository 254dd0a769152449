"""
What a chat carries beside its execution state: title, labels, pin, read cursor.

Written through ``Store.change``; none of it moves a version, and only labels move a
chat in the list.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import BadRequest
from chatd.store import schema

__all__ = ["is_read", "mark_read", "replace_title", "set_labels", "set_pin", "set_plan_mode", "set_title"]

_CHATS = schema.chats


def _set(connection: sa.Connection, chat_id: UUID, **values: Any) -> None:  # noqa: ANN401 -- column values
    connection.execute(_CHATS.update().where(_CHATS.c.id == chat_id).values(values))


def replace_title(connection: sa.Connection, chat_id: UUID, old: str, new: str) -> bool:
    """Rename the chat if it is still called *old*; whether it was."""
    table = schema.chats
    mine = (table.c.id == chat_id) & (table.c.title == old)
    return connection.execute(table.update().where(mine).values(title=new)).rowcount == 1


def set_title(connection: sa.Connection, chat_id: UUID, title: str) -> None:
    """Rename a chat."""
    _set(connection, chat_id, title=title)


def set_labels(connection: sa.Connection, chat_id: UUID, labels: dict[str, str], *, now: datetime) -> None:
    """Replace a chat's labels, all of them."""
    _set(connection, chat_id, labels=labels, updated_at=now)


def set_plan_mode(connection: sa.Connection, chat_id: UUID, plan_mode: str | None) -> None:
    """Have the chat's agent make a plan only, or do as it is told."""
    _set(connection, chat_id, plan_mode=plan_mode)


def mark_read(connection: sa.Connection, chat_id: UUID) -> None:
    """The owner has seen everything that is there now."""
    _set(connection, chat_id, last_read_message_id=_newest(chat_id))


def is_read(connection: sa.Connection, chat_id: UUID) -> bool:
    """Whether ``mark_read`` would change nothing, so that nobody has to wait for the one who may write."""
    mark = sa.select(_CHATS.c.last_read_message_id == _newest(chat_id)).where(_CHATS.c.id == chat_id)
    return bool(connection.execute(mark).scalar())


def _newest(chat_id: UUID) -> sa.ScalarSelect[int]:
    table = schema.messages
    newest = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0)).where(table.c.chat_id == chat_id)
    return newest.scalar_subquery()


def set_pin(connection: sa.Connection, chat_id: UUID, position: int) -> None:
    """
    Pin a chat, move its pin, or unpin it (*position* 0).

    A chat that was not pinned goes to the end, whatever the position; a pinned one moves
    there, within the pins there are. All of the owner's pins are numbered anew from 1.

    Raises:
        BadRequest: the chat is archived or no root.
    """
    chat = connection.execute(sa.select(_CHATS).where(_CHATS.c.id == chat_id)).mappings().one()
    if chat["archived"] or chat["parent_chat_id"] is not None:
        raise BadRequest("only a root chat that is not archived can be pinned")
    pins = _lock_pins(connection, chat["owner_id"], chat_id)
    was_pinned = pins.pop(chat_id) > 0
    order = sorted(pins, key=lambda other: (pins[other], str(other)))
    if position > 0:
        order.insert(position - 1 if was_pinned else len(order), chat_id)
    else:
        _set(connection, chat_id, pin_order=0)
    for number, pinned_id in enumerate(order, 1):
        _set(connection, pinned_id, pin_order=number)


def _lock_pins(connection: sa.Connection, owner_id: UUID, chat_id: UUID) -> dict[UUID, int]:
    """The owner's pinned chats and *chat_id*, locked in one order, with their positions."""
    statement = (
        sa.select(_CHATS.c.id, _CHATS.c.pin_order)
        .where(
            _CHATS.c.owner_id == owner_id,
            _CHATS.c.archived.is_(False),
            sa.or_(_CHATS.c.pin_order > 0, _CHATS.c.id == chat_id),
        )
        .order_by(_CHATS.c.id)
        .with_for_update(key_share=True)
    )
    return {row.id: row.pin_order for row in connection.execute(statement)}
