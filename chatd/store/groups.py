"""Groups of users."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import BadRequest, NotFound
from chatd.store import schema
from chatd.store.inserts import insert_new

__all__ = ["delete_group", "list_groups", "save_group"]

_GROUPS, _MEMBERS = schema.user_groups, schema.user_group_members


def list_groups(connection: sa.Connection) -> list[tuple[UUID, str, list[str]]]:
    """Id, name and members' names of every group, by name."""
    users = schema.users
    joined = sa.outerjoin(
        _GROUPS,
        sa.join(_MEMBERS, users, users.c.id == _MEMBERS.c.user_id),
        _MEMBERS.c.group_id == _GROUPS.c.id,
    )
    statement = (
        sa.select(_GROUPS.c.id, _GROUPS.c.name, users.c.name.label("member"))
        .select_from(joined)
        .order_by(_GROUPS.c.name, users.c.name)
    )
    found: dict[tuple[UUID, str], list[str]] = {}
    for row in connection.execute(statement):
        members = found.setdefault((row.id, row.name), [])
        if row.member is not None:
            members.append(row.member)
    return [(group_id, name, members) for (group_id, name), members in found.items()]


def save_group(connection: sa.Connection, name: str, members: Sequence[str], *, now: datetime) -> None:
    """
    Make the group, or give it these members in place of those it has.

    Raises:
        BadRequest: there is no such user; nothing is changed.
    """
    users = schema.users
    found = connection.execute(sa.select(users.c.name, users.c.id).where(users.c.name.in_(members)))
    ids = {row.name: row.id for row in found}
    for member in members:
        if member not in ids:
            raise BadRequest(f"members: there is no user {member[:80]!r}")
    insert_new(connection, _GROUPS, {"id": uuid.uuid4(), "name": name, "created_at": now})
    group_id = _group_id(connection, name)
    connection.execute(_MEMBERS.delete().where(_MEMBERS.c.group_id == group_id))
    rows = [{"group_id": group_id, "user_id": user_id, "created_at": now} for user_id in ids.values()]
    if rows:
        connection.execute(_MEMBERS.insert(), rows)


def delete_group(connection: sa.Connection, name: str) -> None:
    """
    Delete the group, with its limit and what was shared with it.

    Raises:
        NotFound: there is none.
    """
    connection.execute(_GROUPS.delete().where(_GROUPS.c.id == _group_id(connection, name)))


def _group_id(connection: sa.Connection, name: str) -> UUID:
    """The group's id; its row is locked, so that two who change it wait for each other."""
    statement = sa.select(_GROUPS.c.id).where(_GROUPS.c.name == name).with_for_update()
    group_id: UUID | None = connection.execute(statement).scalar_one_or_none()
    if group_id is None:
        raise NotFound("no such group")
    return group_id
