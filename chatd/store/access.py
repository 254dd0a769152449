"""
Who besides its owner may read a chat: the readers of its root, which are those of all chats below it.

A reader is a user, or a member of a group.
"""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import BadRequest
from chatd.store import schema

__all__ = ["change_readers", "list_readers", "may_read", "readable_roots", "root_of"]


def root_of(connection: sa.Connection, chat_id: UUID) -> UUID:
    """The root of a chat's family."""
    chats = schema.chats
    root = sa.select(sa.func.coalesce(chats.c.root_chat_id, chats.c.id)).where(chats.c.id == chat_id)
    found: UUID = connection.execute(root).scalar_one()
    return found


def readable_roots(user_id: UUID) -> sa.CompoundSelect[UUID]:
    """Ids of the roots that were shared with the user, or with a group of theirs."""
    readers, groups, members = schema.chat_readers, schema.chat_reader_groups, schema.user_group_members
    mine = sa.select(readers.c.chat_id).where(readers.c.user_id == user_id)
    joined = sa.join(groups, members, groups.c.group_id == members.c.group_id)
    ours = sa.select(groups.c.chat_id).select_from(joined).where(members.c.user_id == user_id)
    return mine.union(ours)


def may_read(connection: sa.Connection, chat_id: UUID, user_id: UUID) -> bool:
    """Whether the chat was shared with the user."""
    chats = schema.chats
    root = sa.func.coalesce(chats.c.root_chat_id, chats.c.id)
    shared = sa.select(chats.c.id).where(chats.c.id == chat_id, root.in_(readable_roots(user_id)))
    return connection.execute(shared).first() is not None


def list_readers(connection: sa.Connection, chat_id: UUID) -> dict[str, list[tuple[UUID, str]]]:
    """Ids and names of whom the chat is shared with, by name: ``users`` and ``groups``."""
    root = root_of(connection, chat_id)
    found: dict[str, list[tuple[UUID, str]]] = {}
    for kind, (named, pairs, key) in _KINDS.items():
        statement = (
            sa.select(named.c.id, named.c.name)
            .join(pairs, pairs.c[key] == named.c.id)
            .where(pairs.c.chat_id == root)
            .order_by(named.c.name)
        )
        found[kind] = [(row.id, row.name) for row in connection.execute(statement)]
    return found


# Kinds of readers: the table that names them, the one that pairs them with chats, and its column.
_KINDS = {
    "users": (schema.users, schema.chat_readers, "user_id"),
    "groups": (schema.user_groups, schema.chat_reader_groups, "group_id"),
}


def change_readers(
    connection: sa.Connection,
    chat_id: UUID,
    wanted: Mapping[str, Mapping[str, str | None]],
    *,
    now: datetime,
) -> None:
    """
    Share with the users and groups named, or, where there is no role, do so no longer.

    Raises:
        BadRequest: there is nobody of that name, or it is the owner; nothing is changed.
    """
    chats = schema.chats
    root = root_of(connection, chat_id)
    owner = connection.execute(sa.select(chats.c.owner_id).where(chats.c.id == root)).scalar_one()
    for kind, roles in wanted.items():
        named, pairs, key = _KINDS[kind]
        found = connection.execute(sa.select(named.c.name, named.c.id).where(named.c.name.in_(list(roles))))
        ids = {row.name: row.id for row in found}
        for name, role in roles.items():
            if ids.get(name) in {None, owner}:
                raise BadRequest(f"{kind}: there is nobody called {name[:80]!r} to share with")
            mine = (pairs.c.chat_id == root) & (pairs.c[key] == ids[name])
            connection.execute(pairs.delete().where(mine))
            if role is not None:
                connection.execute(
                    pairs.insert().values({"chat_id": root, key: ids[name], "created_at": now})
                )
