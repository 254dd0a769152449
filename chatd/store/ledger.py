"""Which boot of a workspace daemon was given which call; written before the call is sent."""

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema
from chatd.store.inserts import insert_new

__all__ = ["claim_call"]


def claim_call(
    connection: sa.Connection, chat_id: UUID, call_key: str, *, boot_id: str, now: datetime
) -> str:
    """
    The boot that owns the call: *boot_id* if it is new, else the one it was first given to.

    Transaction: joined; committed before the call leaves.
    """
    table = schema.tool_calls
    values = {"chat_id": chat_id, "call_key": call_key, "boot_id": boot_id, "started_at": now}
    if insert_new(connection, table, values):
        return boot_id
    mine = (table.c.chat_id == chat_id) & (table.c.call_key == call_key)
    known: str = connection.execute(sa.select(table.c.boot_id).where(mine)).scalar_one()
    return known
