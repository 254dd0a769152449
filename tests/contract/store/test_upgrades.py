"""Rows of every schema that there was are read by today's code."""

import uuid
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from chatd import store
from chatd.store import queries
from chatd.store.database import Database
from chatd.store.engines import make_engines, sqlite_url
from tests.contract.store.bench import START

SCRIPTS = Path(store.__file__).parent / "migrations"
USER, MODEL = UUID(int=1), UUID(int=2)
CONTENT = [{"type": "text", "text": "kept"}]
# What columns hold that have no default; others by their type.
VALUES: dict[str, Any] = {
    "status": "waiting", "role": "user", "visibility": "both", "content": CONTENT, "content_version": 1,
    "owner_id": USER, "user_id": USER, "created_by": USER, "last_model_config_id": MODEL, "name": "me",
    "provider": "openai", "model": "m", "display_name": "M", "labels": {}, "mcp_server_ids": [],
}  # fmt: skip


def revisions() -> list[str]:
    """Every revision, the first one first."""
    scripts = ScriptDirectory(str(SCRIPTS))
    return [script.revision for script in reversed(list(scripts.walk_revisions()))]


def value_of(column: sa.Column[Any]) -> Any:
    """Something for a column that must have something."""
    if column.name in VALUES:
        return VALUES[column.name]
    kind = column.type
    if isinstance(kind, sa.DateTime):
        return START
    if isinstance(kind, sa.Boolean):
        return False
    return 1 if isinstance(kind, sa.Integer | sa.Numeric) else "x"


def insert(connection: sa.Connection, table: sa.Table, **values: Any) -> None:
    """A row with what its schema wants."""
    wanted = {
        column.name: value_of(column)
        for column in table.columns
        if not column.nullable and column.server_default is None and not _counts(column)
    }
    given = wanted | {name: value for name, value in values.items() if name in table.columns}
    if connection.dialect.name == "sqlite":
        # Reflected columns know neither ids nor times there.
        given = {name: value.hex if isinstance(value, UUID) else value for name, value in given.items()}
    connection.execute(table.insert().values(given))


def _counts(column: sa.Column[Any]) -> bool:
    """Whether the database numbers its rows itself."""
    return column.primary_key and isinstance(column.type, sa.Integer)


def chat_of_today(connection: sa.Connection, revision: str) -> UUID:
    """A chat with a message, and one that waits, as a chatd of that revision wrote them."""
    metadata = sa.MetaData()
    metadata.reflect(connection)
    tables, chat_id = metadata.tables, uuid.uuid4()
    if not connection.execute(sa.select(tables["users"])).first():
        insert(connection, tables["users"], id=USER)
        insert(connection, tables["chat_model_configs"], id=MODEL)
    busy = {"status": "running", "title": revision}
    insert(connection, tables["chats"], id=chat_id, **busy)
    insert(connection, tables["chat_messages"], chat_id=chat_id)
    insert(connection, tables["chat_queued_messages"], chat_id=chat_id)
    return chat_id


@pytest.fixture
def empty_url(database_url: str, tmp_path: Path) -> str:
    """A database with nothing in it."""
    if database_url.startswith("sqlite"):
        return sqlite_url(tmp_path / "empty.sqlite3")
    engine = make_engines(database_url).write
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    engine.dispose()
    return database_url


async def test_rows_of_every_schema_outlive_the_upgrades(empty_url: str) -> None:
    """Issue: an upgrade test from every released schema; each revision is taken for one."""
    database = Database(empty_url)
    made: dict[UUID, str] = {}
    try:
        for revision in revisions():
            await database.migrate_to(revision)
            made[await database.write(chat_of_today, revision)] = revision
        chats = await database.read(queries.list_chats, owner_id=USER)
        histories = [await database.read(queries.prompt_messages, chat.id) for chat in chats]
        queues = [await database.read(queries.list_queued, chat.id) for chat in chats]
    finally:
        await database.close()

    assert {chat.id: chat.title for chat in chats} == made
    for rows in (*histories, *queues):
        assert [part.text for row in rows for part in row.content] == ["kept"]  # type: ignore[union-attr]
