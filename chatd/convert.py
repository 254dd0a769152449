"""Messages of content version 0, rewritten as parts; what would change is shown before anything does."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from chatd.datadir import DataDir
from chatd.settings import ChatdSettings
from chatd.store import schema
from chatd.store.database import Database, sqlite_url
from chatd.store.legacy import is_envelope, read_legacy
from chatd.store.rows import CONTENT_VERSION, dump_parts

__all__ = ["Conversion", "convert_messages"]

# Rows read at once.
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One old row: what it is, and the parts that it becomes."""

    id: int
    chat_id: str
    role: str
    shape: str
    before: Any
    after: list[dict[str, Any]]


async def convert_messages(settings: ChatdSettings, *, apply: bool) -> list[Conversion]:
    """
    Find old rows; with *apply* rewrite them, all in one transaction.

    Raises:
        DataDirBusy, DatabaseBusy: a chatd runs on them.
    """
    data_dir = await asyncio.to_thread(DataDir, settings.data_dir)
    database = Database(settings.database or sqlite_url(settings.database_path))
    try:
        await database.take()
        await database.migrate()
        return await database.write(_convert, apply=apply)
    finally:
        await database.close()
        data_dir.release()


def _convert(connection: sa.Connection, *, apply: bool) -> list[Conversion]:
    table = schema.messages
    found = list(_old_rows(connection))
    for row in found if apply else ():
        values = {"content": row.after, "content_version": CONTENT_VERSION}
        connection.execute(table.update().where(table.c.id == row.id).values(values))
    return found


def _old_rows(connection: sa.Connection) -> Iterator[Conversion]:
    table = schema.messages
    last = 0
    while True:
        statement = sa.select(table).where(table.c.content_version == 0, table.c.id > last)
        rows = connection.execute(statement.order_by(table.c.id).limit(BATCH)).mappings().all()
        for row in rows:
            content = row["content"]
            yield Conversion(
                id=row["id"],
                chat_id=str(row["chat_id"]),
                role=row["role"],
                shape=_shape(content),
                before=content,
                after=dump_parts(read_legacy(content, row["role"])),
            )
        if len(rows) < BATCH:
            return
        last = rows[-1]["id"]


def _shape(content: object) -> str:
    if isinstance(content, str):
        return "text"
    return "envelopes" if is_envelope(content) else "parts"
