"""Users, tokens, sessions and audit entries as the API shows them."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel

from chatd.scopes import Role, Scope

__all__ = ["AuditLine", "NewToken", "Session", "Token", "User"]


class User(BaseModel):
    """A user; *last_seen_at* is when one of their tokens was used, within a minute."""

    id: UUID
    name: str
    role: Role
    disabled_at: datetime | None = None
    last_seen_at: datetime | None = None
    created_at: datetime


class Token(BaseModel):
    """
    A token without its secret.

    *scopes*: absent: all that its user may. *workspace*: of an agent token, the only one it opens.
    """

    id: UUID
    kind: Literal["api", "agent", "session", "login"]
    name: str | None = None
    scopes: list[Scope] | None = None
    workspace: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None


class NewToken(Token):
    """A token that was just made, with its secret, which is told this once."""

    token: str


class Session(BaseModel):
    """A browser that is logged in; *current*: the one that asks."""

    id: UUID
    browser: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    current: bool = False


class AuditLine(BaseModel):
    """Who did what to what, from where."""

    id: int
    at: datetime
    action: str
    actor: str
    actor_id: UUID | None = None
    target: str | None = None
    remote: str | None = None
    details: dict[str, str]


class ReplicaLine(BaseModel):
    """A chatd that shares the database; *silent_s*: since its last beat, by the database's clock."""

    id: UUID
    address: str
    version: str
    started_at: datetime
    beat_at: datetime
    silent_s: float
    links: int
    gone_at: datetime | None = None
