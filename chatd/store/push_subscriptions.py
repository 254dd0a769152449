"""Browsers that want to be told, by user; and the key that this control plane signs pushes with."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from py_vapid import Vapid02  # type: ignore[import-untyped]

from chatd.sealing import Sealer
from chatd.store import schema

__all__ = ["PushSubscription", "forget", "read_key", "save", "subscriptions_of"]

# Browsers of one user; the oldest goes when another comes.
MAX_SUBSCRIPTIONS = 20
KEY_NAME = "vapid"
_TABLE = schema.push_subscriptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSubscription:
    """Where a browser is reached, and the keys that only it can read by; url-safe base64."""

    id: UUID
    endpoint: str
    p256dh: str
    auth: str


def save(
    connection: sa.Connection, user_id: UUID, *, endpoint: str, p256dh: str, auth: str, now: datetime
) -> None:
    """Keep a subscription; a browser belongs to whoever used it last."""
    connection.execute(_TABLE.delete().where(_TABLE.c.endpoint == endpoint))
    mine = sa.select(_TABLE.c.id).where(_TABLE.c.user_id == user_id)
    kept = list(connection.execute(mine.order_by(_TABLE.c.created_at.desc(), _TABLE.c.id)).scalars())
    connection.execute(_TABLE.delete().where(_TABLE.c.id.in_(kept[MAX_SUBSCRIPTIONS - 1 :])))
    connection.execute(
        _TABLE.insert().values(
            id=uuid.uuid4(), user_id=user_id, endpoint=endpoint, p256dh=p256dh, auth=auth, created_at=now
        )
    )


def forget(connection: sa.Connection, endpoint: str, *, user_id: UUID | None = None) -> bool:
    """Drop a subscription, with *user_id* only that user's; whether there was one."""
    statement = _TABLE.delete().where(_TABLE.c.endpoint == endpoint)
    if user_id is not None:
        statement = statement.where(_TABLE.c.user_id == user_id)
    return connection.execute(statement).rowcount > 0


def subscriptions_of(connection: sa.Connection, user_id: UUID) -> list[PushSubscription]:
    """The user's browsers."""
    rows = connection.execute(sa.select(_TABLE).where(_TABLE.c.user_id == user_id).order_by(_TABLE.c.id))
    return [
        PushSubscription(id=row.id, endpoint=row.endpoint, p256dh=row.p256dh, auth=row.auth) for row in rows
    ]


def read_key(connection: sa.Connection, sealer: Sealer, *, now: datetime) -> Vapid02:
    """
    The key, made at first use and sealed.

    Raises:
        SealBroken: it was sealed with another key.
    """
    table = schema.secrets
    stored = connection.execute(sa.select(table.c.value).where(table.c.name == KEY_NAME)).scalar_one_or_none()
    if stored is not None:
        return Vapid02.from_pem(sealer.open(stored).encode())
    key = Vapid02()
    key.generate_keys()
    sealed = sealer.seal(key.private_pem().decode())
    connection.execute(table.insert().values(name=KEY_NAME, value=sealed, created_at=now))
    return key
