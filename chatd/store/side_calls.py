"""Model calls beside the turns' own (titles, summaries, advice): what each used and cost, for its chat."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema
from chatd.wire import Usage

__all__ = ["BookedCall", "Purpose", "book"]

Purpose = Literal["title", "summary", "advice", "notification", "repair"]
COUNTS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "reasoning_tokens",
    "cache_creation_tokens",
    "cache_read_tokens",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedCall:
    """One call that was answered; *cost_micros* is None when its model has no price."""

    chat_id: UUID
    purpose: Purpose
    provider: str
    model: str
    usage: Usage
    cost_micros: int | None


def book(connection: sa.Connection, call: BookedCall, *, now: datetime) -> None:
    """
    Keep *call*; one of a chat that was deleted meanwhile is forgotten with it.

    Transaction: joined.
    """
    chats, table = schema.chats, schema.side_calls
    usage = call.usage.model_dump()
    values = {
        "chat_id": call.chat_id,
        "purpose": call.purpose,
        "provider": call.provider,
        "model": call.model,
        "cost_micros": call.cost_micros,
        "created_at": now,
        **{name: usage[name] or None for name in COUNTS},
    }
    row = sa.select(*(sa.literal(value, table.c[name].type) for name, value in values.items()))
    there = row.where(sa.exists().where(chats.c.id == call.chat_id))
    connection.execute(table.insert().from_select(list(values), there))
