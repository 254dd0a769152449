"""Tokens of users as rows: made within limits, listed without their secret, revoked, used when."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import Forbidden, NotFound, QueueFull
from chatd.store import schema
from chatd.store.accounts import Identity, TokenKind, TokenWish, issue_token, token_hash

__all__ = [
    "KEY_KINDS",
    "MAX_TOKENS",
    "USED_EVERY",
    "create_token",
    "delete_dead",
    "list_tokens",
    "revoke_any",
    "revoke_token",
    "touch",
    "within_own",
]

# Live tokens of one user: those of programs and workspaces.
MAX_TOKENS = 200
# How exactly it is known when a token was used last.
USED_EVERY = timedelta(minutes=1)
# Those that people make and see; sessions are listed apart.
KEY_KINDS: frozenset[TokenKind] = frozenset({"api", "agent"})
_TABLE = schema.api_tokens
_AGENTS = schema.agents


def create_token(
    connection: sa.Connection, kind: TokenKind, user_id: UUID, wish: TokenWish, *, now: datetime
) -> tuple[sa.RowMapping, str]:
    """
    A new token as ``list_tokens`` tells of it, and the token itself.

    Raises:
        QueueFull: the user has too many.
        Forbidden: the user is disabled.
    """
    users = schema.users
    # Locked, so that no token is made while its user is shut out.
    known = sa.select(users.c.disabled_at).where(users.c.id == user_id).with_for_update()
    if connection.execute(known).scalar_one() is not None:
        raise Forbidden("this user is disabled")
    if len(list_tokens(connection, user_id, KEY_KINDS, now=now)) >= MAX_TOKENS:
        raise QueueFull(f"there are {MAX_TOKENS} tokens already; revoke one first")
    token = issue_token(connection, kind, user_id, now=now, wish=wish)
    made = _told().where(_TABLE.c.hash == token_hash(token))
    return connection.execute(made).mappings().one(), token


def list_tokens(
    connection: sa.Connection,
    user_id: UUID,
    kinds: frozenset[TokenKind] | set[TokenKind],
    *,
    now: datetime,
) -> Sequence[sa.RowMapping]:
    """The user's tokens that are good, the newest first; without what they are hashed to."""
    live = (
        (_TABLE.c.user_id == user_id)
        & _TABLE.c.kind.in_(sorted(kinds))
        & _TABLE.c.revoked_at.is_(None)
        & (_TABLE.c.expires_at.is_(None) | (_TABLE.c.expires_at > now))
    )
    statement = _told().where(live).order_by(_TABLE.c.created_at.desc(), _TABLE.c.id)
    return connection.execute(statement).mappings().all()


def _told() -> sa.Select[Any]:
    columns = [column for column in _TABLE.c if column.name != "hash"]
    joined = sa.outerjoin(_TABLE, _AGENTS, _AGENTS.c.id == _TABLE.c.agent_id)
    return sa.select(*columns, _AGENTS.c.name.label("workspace")).select_from(joined)


def revoke_token(
    connection: sa.Connection,
    user_id: UUID,
    token_id: UUID,
    kinds: frozenset[TokenKind] | set[TokenKind],
    *,
    now: datetime,
) -> sa.RowMapping:
    """
    End a token of the user's for good; what it opened ends within seconds.

    Raises:
        NotFound: the user has no such token.
    """
    mine = (_TABLE.c.id == token_id) & (_TABLE.c.user_id == user_id) & _TABLE.c.kind.in_(sorted(kinds))
    ended = _TABLE.update().where(mine, _TABLE.c.revoked_at.is_(None)).values(revoked_at=now)
    row = connection.execute(ended.returning(_TABLE.c.kind, _TABLE.c.name)).mappings().one_or_none()
    if row is None:
        raise NotFound("no such token")
    return row


def revoke_any(
    connection: sa.Connection, token_id: UUID, kinds: frozenset[TokenKind], *, now: datetime
) -> sa.RowMapping:
    """
    End a token, whosever it is.

    Raises:
        NotFound: there is no such token.
    """
    owner = sa.select(_TABLE.c.user_id).where(_TABLE.c.id == token_id)
    user_id: UUID | None = connection.execute(owner).scalar_one_or_none()
    if user_id is None:
        raise NotFound("no such token")
    return revoke_token(connection, user_id, token_id, kinds, now=now)


def within_own(identity: Identity, wish: TokenWish, *, now: datetime) -> TokenWish:
    """
    The wish of somebody who asks with a token: what it makes is no stronger, and lives no longer.

    Raises:
        Forbidden: more was asked for than the token itself may.
    """
    if identity.scopes is None and identity.kind == "session":
        return wish
    if identity.scopes is not None and (wish.scopes is None or not identity.scopes.issuperset(wish.scopes)):
        raise Forbidden("a token makes no other that may more than itself; name its scopes, or fewer")
    if identity.expires_at is None:
        return wish
    left = identity.expires_at - now
    if wish.lifetime is None or wish.lifetime > left:
        return TokenWish(name=wish.name, scopes=wish.scopes, lifetime=left, agent_id=wish.agent_id)
    return wish


def touch(connection: sa.Connection, token_id: UUID, *, now: datetime) -> None:
    """The token was used; written once a minute."""
    stale = _TABLE.c.used_at.is_(None) | (_TABLE.c.used_at <= now - USED_EVERY)
    connection.execute(_TABLE.update().where(_TABLE.c.id == token_id, stale).values(used_at=now))


def delete_dead(connection: sa.Connection, *, before: datetime) -> int:
    """Forget tokens that ended before *before*."""
    ended = (_TABLE.c.revoked_at < before) | (_TABLE.c.expires_at < before)
    return connection.execute(_TABLE.delete().where(ended)).rowcount
