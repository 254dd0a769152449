"""Users: made, listed, given a role, disabled; never deleted: chats and their cost are theirs."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import BadRequest, LastAdmin, NotFound
from chatd.scopes import Role
from chatd.store import schema
from chatd.store.inserts import insert_new

__all__ = [
    "MAX_NAME",
    "check_name",
    "create_user",
    "disable_user",
    "enable_user",
    "ensure_operator",
    "find_user",
    "list_users",
    "set_role",
]

# Characters of a user's name.
MAX_NAME = 100
_USERS, _TOKENS = schema.users, schema.api_tokens
_TOLD = (_USERS.c.id, _USERS.c.name, _USERS.c.role, _USERS.c.disabled_at, _USERS.c.created_at)


def check_name(name: str) -> str:
    """
    A user's name as it may be.

    Raises:
        BadRequest: empty, too long, with spaces round it, or with what can't be shown or stand in a path.
    """
    if not 1 <= len(name) <= MAX_NAME or name != name.strip() or not name.isprintable() or "/" in name:
        raise BadRequest(f"name: 1 to {MAX_NAME} characters that can be shown, without a slash")
    return name


def list_users(connection: sa.Connection) -> Sequence[sa.RowMapping]:
    """Every user, by name, with when one of their tokens was used last."""
    used = sa.select(sa.func.max(_TOKENS.c.used_at)).where(_TOKENS.c.user_id == _USERS.c.id).scalar_subquery()
    statement = sa.select(*_TOLD, sa.type_coerce(used, _TOKENS.c.used_at.type).label("last_seen_at"))
    return connection.execute(statement.order_by(_USERS.c.name)).mappings().all()


def find_user(connection: sa.Connection, name: str) -> sa.RowMapping:
    """
    The user called *name*.

    Raises:
        NotFound: there is none.
    """
    row = connection.execute(sa.select(*_TOLD).where(_USERS.c.name == name)).mappings().one_or_none()
    if row is None:
        raise NotFound("no such user")
    return row


def create_user(connection: sa.Connection, name: str, role: Role, *, now: datetime) -> sa.RowMapping:
    """
    A new user, who has no token yet.

    Raises:
        BadRequest: the name can't be used, or somebody has it.
    """
    values = {"id": uuid.uuid4(), "name": check_name(name), "role": role.value, "created_at": now}
    if not insert_new(connection, _USERS, values):
        raise BadRequest(f"name: there is a user {name!r} already")
    return find_user(connection, name)


def set_role(connection: sa.Connection, name: str, role: Role) -> sa.RowMapping:
    """
    Give a user another role; it counts with their next request.

    Raises:
        NotFound: there is no such user.
        LastAdmin: nobody else could administer the deployment any more.
    """
    user_id = _locked(connection, name)
    if role is not Role.ADMIN:
        _keep_an_admin(connection, user_id)
    connection.execute(_USERS.update().where(_USERS.c.id == user_id).values(role=role.value))
    return find_user(connection, name)


def disable_user(connection: sa.Connection, name: str, *, now: datetime) -> sa.RowMapping:
    """
    Shut a user out: every token of theirs ends, for good, also those of their workspaces.

    Raises:
        NotFound: there is no such user.
        LastAdmin: nobody else could administer the deployment any more.
    """
    user_id = _locked(connection, name)
    _keep_an_admin(connection, user_id)
    still = _USERS.c.disabled_at.is_(None)
    connection.execute(_USERS.update().where(_USERS.c.id == user_id, still).values(disabled_at=now))
    live = (_TOKENS.c.user_id == user_id) & _TOKENS.c.revoked_at.is_(None)
    connection.execute(_TOKENS.update().where(live).values(revoked_at=now))
    return find_user(connection, name)


def enable_user(connection: sa.Connection, name: str) -> sa.RowMapping:
    """
    Let a user in again; they need new tokens.

    Raises:
        NotFound: there is no such user.
    """
    user_id = _locked(connection, name)
    connection.execute(_USERS.update().where(_USERS.c.id == user_id).values(disabled_at=None))
    return find_user(connection, name)


def ensure_operator(connection: sa.Connection, name: str, *, now: datetime) -> UUID:
    """
    The user of whoever runs the process, made and let in as needed.

    An administrator when just made, or when there is no other: whoever can start the process could
    write that into the database anyway, and a deployment without one could not be mended.
    """
    values = {"id": uuid.uuid4(), "name": name, "role": Role.ADMIN.value, "created_at": now}
    insert_new(connection, _USERS, values)
    user_id = _locked(connection, name)
    wanted: dict[str, object] = {"disabled_at": None}
    if not _other_admins(connection, user_id):
        wanted["role"] = Role.ADMIN.value
    connection.execute(_USERS.update().where(_USERS.c.id == user_id).values(wanted))
    return user_id


def _locked(connection: sa.Connection, name: str) -> UUID:
    """The user's id; all administrators are locked with it, so that two never take away each other's role."""
    admins = sa.select(_USERS.c.id).where((_USERS.c.role == Role.ADMIN.value) | (_USERS.c.name == name))
    connection.execute(admins.order_by(_USERS.c.id).with_for_update()).all()
    user_id: UUID = find_user(connection, name)["id"]
    return user_id


def _keep_an_admin(connection: sa.Connection, user_id: UUID) -> None:
    role = connection.execute(sa.select(_USERS.c.role).where(_USERS.c.id == user_id)).scalar_one()
    if role == Role.ADMIN.value and not _other_admins(connection, user_id):
        raise LastAdmin("the last administrator stays one; make another first")


def _other_admins(connection: sa.Connection, user_id: UUID) -> bool:
    others = sa.select(_USERS.c.id).where(
        _USERS.c.role == Role.ADMIN.value, _USERS.c.disabled_at.is_(None), _USERS.c.id != user_id
    )
    return connection.execute(others.limit(1)).first() is not None
