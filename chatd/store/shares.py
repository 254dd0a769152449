"""
Links by which anybody may watch a chat's desktop.

The link is signed and holds the share's id and end, so that a forged or an old one is refused before
the database is asked; the row says whether it was revoked, and how often it was opened.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from itsdangerous import BadSignature, URLSafeSerializer

from chatd.errors import NotFound, QueueFull
from chatd.place_wire import DesktopShare
from chatd.sealing import Sealer
from chatd.store import schema
from chatd.store.sealed import known_key, make_key

__all__ = [
    "MAX_SHARES",
    "SharedDesktop",
    "create_share",
    "list_shares",
    "note_view",
    "open_share",
    "revoke_share",
]

# Links of one chat that live at the same time.
MAX_SHARES = 50
KEY_NAME = "desktop-shares"
ENDED = "this link has ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDesktop:
    """What a link shows."""

    share_id: UUID
    agent_id: UUID
    root_chat_id: UUID


def create_share(
    connection: sa.Connection,
    chat_id: UUID,
    user_id: UUID,
    *,
    lifetime: timedelta,
    sealer: Sealer,
    now: datetime,
) -> tuple[DesktopShare, str]:
    """
    A new link to the desktop of *chat_id*, and its token; the token is told this once.

    Raises:
        QueueFull: the chat has too many already.
    """
    if len(list_shares(connection, chat_id, now=now)) >= MAX_SHARES:
        raise QueueFull(f"this chat's desktop is shared by {MAX_SHARES} links already; revoke one first")
    share = DesktopShare(id=uuid.uuid4(), created_at=now, expires_at=now + lifetime)
    connection.execute(
        schema.desktop_shares.insert().values(
            id=share.id,
            chat_id=chat_id,
            created_by=user_id,
            created_at=now,
            expires_at=share.expires_at,
            views=0,
        )
    )
    token = _signer(make_key(connection, KEY_NAME, sealer, now=now)).dumps(
        [share.id.hex, int(share.expires_at.timestamp())]
    )
    return share, str(token)


def list_shares(connection: sa.Connection, chat_id: UUID, *, now: datetime) -> list[DesktopShare]:
    """The chat's links that can be opened, the oldest first."""
    table = schema.desktop_shares
    live = (table.c.chat_id == chat_id) & table.c.revoked_at.is_(None) & (table.c.expires_at > now)
    rows = connection.execute(sa.select(table).where(live).order_by(table.c.created_at, table.c.id))
    return [
        DesktopShare(
            id=row.id,
            created_at=row.created_at,
            expires_at=row.expires_at,
            views=row.views,
            last_viewed_at=row.last_viewed_at,
        )
        for row in rows
    ]


def revoke_share(connection: sa.Connection, chat_id: UUID, share_id: UUID, *, now: datetime) -> None:
    """
    End a link of the chat's; who watches by it is sent away at the next look.

    Raises:
        NotFound: the chat has no such link.
    """
    table = schema.desktop_shares
    mine = (table.c.id == share_id) & (table.c.chat_id == chat_id) & table.c.revoked_at.is_(None)
    if connection.execute(table.update().where(mine).values(revoked_at=now)).rowcount != 1:
        raise NotFound("this chat has no such link")


def open_share(connection: sa.Connection, token: str, *, sealer: Sealer, now: datetime) -> SharedDesktop:
    """
    What the link with *token* shows.

    Raises:
        NotFound: forged, expired or revoked, or its chat has no workspace; which one is not told.
    """
    share_id, ends_at = _read(connection, token, sealer)
    table, chats = schema.desktop_shares, schema.chats
    statement = (
        sa.select(chats.c.id, chats.c.root_chat_id, chats.c.agent_id)
        .join(table, table.c.chat_id == chats.c.id)
        .where(table.c.id == share_id, table.c.revoked_at.is_(None), table.c.expires_at > now)
    )
    row = connection.execute(statement).one_or_none()
    if row is None or row.agent_id is None or ends_at <= now:
        raise NotFound(ENDED)
    return SharedDesktop(share_id=share_id, agent_id=row.agent_id, root_chat_id=row.root_chat_id or row.id)


def note_view(connection: sa.Connection, share_id: UUID, *, now: datetime) -> None:
    """Somebody began to watch by this link."""
    table = schema.desktop_shares
    values: dict[str, Any] = {"views": table.c.views + 1, "last_viewed_at": now}
    connection.execute(table.update().where(table.c.id == share_id).values(values))


def _read(connection: sa.Connection, token: str, sealer: Sealer) -> tuple[UUID, datetime]:
    key = known_key(connection, KEY_NAME, sealer)
    if key is None:
        raise NotFound(ENDED)
    try:
        share_id, ends_at = _signer(key).loads(token)
    except (BadSignature, UnicodeError) as exc:
        raise NotFound(ENDED) from exc
    return UUID(share_id), datetime.fromtimestamp(ends_at, UTC)


def _signer(key: bytes) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt=KEY_NAME)
