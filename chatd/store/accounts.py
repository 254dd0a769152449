"""
Users, agents and tokens.

Tokens are random, 256 bits; only their SHA-256 is stored. A login token works
once; an agent token opens the link, nothing else.
"""

import hashlib
import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import Unauthorised
from chatd.store import schema

__all__ = [
    "Identity",
    "TokenKind",
    "authenticate",
    "ensure_agent",
    "ensure_user",
    "first_agent",
    "issue_token",
    "login",
    "revoke_tokens",
]

TokenKind = Literal["api", "session", "login", "agent"]
# How long a token lives. Login links travel through terminals and shell histories: minutes, not days.
LIFETIMES: dict[str, timedelta | None] = {
    "api": None,
    "agent": None,
    "session": timedelta(days=30),
    "login": timedelta(minutes=15),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a token belongs to."""

    kind: TokenKind
    user_id: UUID
    user_name: str
    agent_id: UUID | None = None


def ensure_user(connection: sa.Connection, name: str, *, now: datetime) -> UUID:
    """The user called *name*, made if there is none."""
    known = sa.select(schema.users.c.id).where(schema.users.c.name == name)
    user_id = connection.execute(known).scalar_one_or_none()
    if user_id is None:
        user_id = uuid.uuid4()
        connection.execute(schema.users.insert().values(id=user_id, name=name, created_at=now))
    return user_id


def ensure_agent(connection: sa.Connection, owner_id: UUID, name: str, *, now: datetime) -> UUID:
    """The agent called *name* of *owner_id*, made if there is none."""
    table = schema.agents
    known = sa.select(table.c.id).where(table.c.owner_id == owner_id, table.c.name == name)
    agent_id = connection.execute(known).scalar_one_or_none()
    if agent_id is None:
        agent_id = uuid.uuid4()
        connection.execute(table.insert().values(id=agent_id, owner_id=owner_id, name=name, created_at=now))
    return agent_id


def first_agent(connection: sa.Connection, owner_id: UUID) -> UUID | None:
    """The oldest agent of *owner_id*: the one a new chat gets."""
    table = schema.agents
    statement = (
        sa.select(table.c.id)
        .where(table.c.owner_id == owner_id)
        .order_by(table.c.created_at, table.c.id)
        .limit(1)
    )
    return connection.execute(statement).scalar_one_or_none()


def issue_token(
    connection: sa.Connection,
    kind: TokenKind,
    user_id: UUID,
    *,
    now: datetime,
    agent_id: UUID | None = None,
) -> str:
    """A new token; this is the only time it is seen."""
    token = f"{kind}_{secrets.token_urlsafe(32)}"
    lifetime = LIFETIMES[kind]
    connection.execute(
        schema.api_tokens.insert().values(
            id=uuid.uuid4(),
            kind=kind,
            hash=_hash(token),
            user_id=user_id,
            agent_id=agent_id,
            created_at=now,
            expires_at=None if lifetime is None else now + lifetime,
        )
    )
    return token


def revoke_tokens(connection: sa.Connection, kind: TokenKind, user_id: UUID, *, now: datetime) -> None:
    """End every token of *kind* that *user_id* holds."""
    table = schema.api_tokens
    live = (table.c.kind == kind) & (table.c.user_id == user_id) & table.c.revoked_at.is_(None)
    connection.execute(table.update().where(live).values(revoked_at=now))


def authenticate(
    connection: sa.Connection, token: str, kinds: frozenset[TokenKind], *, now: datetime
) -> Identity:
    """
    Who *token* belongs to.

    Raises:
        Unauthorised: unknown, of another kind, expired or revoked; which one is not told.
    """
    tokens, users = schema.api_tokens, schema.users
    statement = (
        sa.select(tokens, users.c.name.label("user_name"))
        .join(users, users.c.id == tokens.c.user_id)
        .where(tokens.c.hash == _hash(token), tokens.c.revoked_at.is_(None))
    )
    row = connection.execute(statement).mappings().one_or_none()
    is_expired = row is not None and row["expires_at"] is not None and row["expires_at"] <= now
    if row is None or is_expired or row["kind"] not in kinds:
        raise Unauthorised("this token is not valid")
    return Identity(
        kind=row["kind"], user_id=row["user_id"], user_name=row["user_name"], agent_id=row["agent_id"]
    )


def login(connection: sa.Connection, token: str, *, now: datetime) -> str:
    """
    Trade a login token for a session token; it works once.

    Raises:
        Unauthorised: unknown, used or expired.
    """
    identity = authenticate(connection, token, frozenset({"login"}), now=now)
    table = schema.api_tokens
    spent = (
        table.update()
        .where(table.c.hash == _hash(token), table.c.used_at.is_(None))
        .values(used_at=now, revoked_at=now)
    )
    if connection.execute(spent).rowcount != 1:
        raise Unauthorised("this token is not valid")
    return issue_token(connection, "session", identity.user_id, now=now)


def _hash(token: str) -> bytes:
    # Headers and queries may bring text that is no UTF-8; it is not valid, but no failure either.
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
