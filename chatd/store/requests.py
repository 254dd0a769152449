"""Answers of requests that carried an Idempotency-Key: a repetition gets the first one's answer."""

import hashlib
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import KeyReused
from chatd.store import schema
from chatd.store.inserts import insert_new

__all__ = ["delete_answers", "earlier_answer", "fingerprint", "save_answer"]

_TABLE = schema.requests


def fingerprint(*parts: str) -> bytes:
    """What a request asks for, in short."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()


def earlier_answer(
    connection: sa.Connection, owner_id: UUID, key: str, asked: bytes
) -> dict[str, Any] | None:
    """
    The answer that the same request got.

    Raises:
        KeyReused: the key was used for another request.
    """
    mine = (_TABLE.c.owner_id == owner_id) & (_TABLE.c.key == key)
    row = connection.execute(sa.select(_TABLE).where(mine)).mappings().one_or_none()
    if row is None:
        return None
    if row["fingerprint"] != asked:
        raise KeyReused("this Idempotency-Key was used for another request; take a new one")
    answer: dict[str, Any] = row["answer"]
    return answer


def save_answer(
    connection: sa.Connection,
    owner_id: UUID,
    key: str,
    *,
    asked: bytes,
    answer: dict[str, Any],
    now: datetime,
) -> None:
    """
    Keep an answer for repetitions.

    Raises:
        KeyReused: another request with this key came first.

    Transaction: joined, so that the answer is kept exactly when what it tells of is.
    """
    values = {"owner_id": owner_id, "key": key, "fingerprint": asked, "answer": answer, "created_at": now}
    if not insert_new(connection, _TABLE, values):
        raise KeyReused("another request with this Idempotency-Key is under way; ask again")


def delete_answers(connection: sa.Connection, *, before: datetime) -> int:
    """Forget answers from before *before*; how many."""
    return connection.execute(_TABLE.delete().where(_TABLE.c.created_at < before)).rowcount
