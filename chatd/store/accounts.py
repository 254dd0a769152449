"""
Users, agents and tokens.

Tokens are random, 256 bits; only their SHA-256 is stored. A login token works
once; an agent token opens the link, nothing else. Listing and revoking them is
``chatd.store.tokens``, users are ``chatd.store.users``.
"""

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import BadRequest, Unauthorised
from chatd.scopes import Role, Scope
from chatd.store import schema
from chatd.store.inserts import insert_new

__all__ = [
    "Identity",
    "Login",
    "TokenKind",
    "TokenWish",
    "authenticate",
    "check_agent",
    "end_tokens",
    "ensure_agent",
    "ensure_user",
    "find_agent",
    "first_agent",
    "issue_token",
    "list_agents",
    "login",
    "revoke_tokens",
    "token_hash",
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
    """
    Who a token belongs to, and what it may.

    Attributes:
        scopes: None: all that the user may.
        used_at: when it was noted last that the token was used.
    """

    kind: TokenKind
    token_id: UUID
    user_id: UUID
    user_name: str
    role: Role = Role.MEMBER
    scopes: frozenset[Scope] | None = None
    agent_id: UUID | None = None
    expires_at: datetime | None = None
    used_at: datetime | None = None

    def has(self, scope: Scope) -> bool:
        """Whether the token is good for *scope*."""
        return self.scopes is None or scope in self.scopes


def ensure_user(connection: sa.Connection, name: str, *, now: datetime) -> UUID:
    """The user called *name*, made if there is none."""
    insert_new(connection, schema.users, {"id": uuid.uuid4(), "name": name, "created_at": now})
    known = sa.select(schema.users.c.id).where(schema.users.c.name == name)
    user_id: UUID = connection.execute(known).scalar_one()
    return user_id


def ensure_agent(connection: sa.Connection, owner_id: UUID, name: str, *, now: datetime) -> UUID:
    """The agent called *name* of *owner_id*, made if there is none."""
    table = schema.agents
    insert_new(connection, table, {"id": uuid.uuid4(), "owner_id": owner_id, "name": name, "created_at": now})
    known = sa.select(table.c.id).where(table.c.owner_id == owner_id, table.c.name == name)
    agent_id: UUID = connection.execute(known).scalar_one()
    return agent_id


def find_agent(connection: sa.Connection, owner_id: UUID, name: str) -> UUID | None:
    """The agent called *name* of *owner_id*; None when there is none."""
    table = schema.agents
    statement = sa.select(table.c.id).where(table.c.owner_id == owner_id, table.c.name == name)
    return connection.execute(statement).scalar_one_or_none()


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


def check_agent(connection: sa.Connection, owner_id: UUID, agent_id: UUID) -> None:
    """
    See that the agent is the owner's.

    Raises:
        BadRequest: it is not, or there is none.
    """
    table = schema.agents
    mine = sa.select(table.c.id).where(table.c.id == agent_id, table.c.owner_id == owner_id)
    if connection.execute(mine).first() is None:
        raise BadRequest(f"workspace_id: you have no workspace {agent_id}")


def list_agents(connection: sa.Connection, owner_id: UUID) -> Sequence[sa.RowMapping]:
    """The owner's agents, the oldest first."""
    table = schema.agents
    statement = sa.select(table).where(table.c.owner_id == owner_id)
    return connection.execute(statement.order_by(table.c.created_at, table.c.id)).mappings().all()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWish:
    """
    What a token shall be besides its kind and its user's.

    Attributes:
        lifetime: None: as long as its kind lives, see ``LIFETIMES``; ``timedelta.max``: until it is revoked.
        token_id: None: a random one. A second token of the same id is not made.
    """

    name: str | None = None
    scopes: tuple[Scope, ...] | None = None
    lifetime: timedelta | None = None
    agent_id: UUID | None = None
    token_id: UUID | None = None


def issue_token(
    connection: sa.Connection,
    kind: TokenKind,
    user_id: UUID,
    *,
    now: datetime,
    agent_id: UUID | None = None,
    wish: TokenWish | None = None,
) -> str:
    """A new token; this is the only time it is seen."""
    wish = wish or TokenWish(agent_id=agent_id)
    token = f"{kind}_{secrets.token_urlsafe(32)}"
    lifetime = LIFETIMES[kind] if wish.lifetime is None else wish.lifetime
    connection.execute(
        schema.api_tokens.insert().values(
            id=wish.token_id or uuid.uuid4(),
            kind=kind,
            hash=token_hash(token),
            user_id=user_id,
            agent_id=wish.agent_id,
            name=wish.name,
            scopes=None if wish.scopes is None else [scope.value for scope in wish.scopes],
            created_at=now,
            expires_at=None if lifetime in {None, timedelta.max} else now + lifetime,
        )
    )
    return token


def revoke_tokens(connection: sa.Connection, kind: TokenKind, user_id: UUID, *, now: datetime) -> None:
    """End every token of *kind* that *user_id* holds."""
    table = schema.api_tokens
    live = (table.c.kind == kind) & (table.c.user_id == user_id) & table.c.revoked_at.is_(None)
    connection.execute(table.update().where(live).values(revoked_at=now))


def end_tokens(connection: sa.Connection, hashes: Collection[bytes], *, now: datetime) -> None:
    """End the tokens of these hashes, as ``token_hash`` gives them."""
    table = schema.api_tokens
    live = table.c.hash.in_(hashes) & table.c.revoked_at.is_(None)
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
    digest = token_hash(token)
    statement = (
        sa.select(tokens, users.c.name.label("user_name"), users.c.role)
        .join(users, users.c.id == tokens.c.user_id)
        .where(tokens.c.hash == digest, tokens.c.revoked_at.is_(None), users.c.disabled_at.is_(None))
    )
    row = connection.execute(statement).mappings().one_or_none()
    # What an index found is compared anew, in constant time: how long the search took tells of a digest
    # that nobody can choose.
    is_same = row is not None and hmac.compare_digest(row["hash"], digest)
    is_expired = row is not None and row["expires_at"] is not None and row["expires_at"] <= now
    if row is None or not is_same or is_expired or row["kind"] not in kinds:
        raise Unauthorised("this token is not valid")
    scopes = row["scopes"]
    return Identity(
        kind=row["kind"],
        token_id=row["id"],
        user_id=row["user_id"],
        user_name=row["user_name"],
        role=Role(row["role"]),
        scopes=None if scopes is None else frozenset(Scope(name) for name in scopes),
        agent_id=row["agent_id"],
        expires_at=row["expires_at"],
        used_at=row["used_at"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A new session, and whose."""

    token: str
    user_id: UUID
    user_name: str


def login(connection: sa.Connection, token: str, *, now: datetime, browser: str | None = None) -> Login:
    """
    Trade a login token for a session's; it works once.

    Raises:
        Unauthorised: unknown, used or expired, or the user may not.
    """
    identity = authenticate(connection, token, frozenset({"login"}), now=now)
    table = schema.api_tokens
    spent = (
        table.update()
        .where(table.c.id == identity.token_id, table.c.used_at.is_(None))
        .values(used_at=now, revoked_at=now)
    )
    if connection.execute(spent).rowcount != 1:
        raise Unauthorised("this token is not valid")
    session = issue_token(connection, "session", identity.user_id, now=now, wish=TokenWish(name=browser))
    return Login(token=session, user_id=identity.user_id, user_name=identity.user_name)


def token_hash(token: str) -> bytes:
    """What is stored of a token."""
    # Headers and queries may bring text that is no UTF-8; it is not valid, but no failure either.
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
