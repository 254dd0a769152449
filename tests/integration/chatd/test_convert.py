"""The converter of old messages: it shows first, and changes only what it is told to."""

import uuid
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from chatd.cli import app
from chatd.convert import convert_messages
from chatd.datadir import DataDir, DataDirBusy
from chatd.settings import ChatdSettings
from chatd.store import schema
from chatd.store.database import Database, sqlite_url
from chatd.wire import TextPart
from tests.contract.store.bench import Bench, answer

OLD = [{"type": "text", "data": {"text": "old words", "provider_metadata": {"a": {"b": 1}}}}]


async def old_chat(path: Path) -> uuid.UUID:
    """A chat whose first message is of version 0."""
    database = Database(sqlite_url(path / "chatd.sqlite3"))
    await database.migrate()
    bench = Bench(database)
    await bench.prepare()
    chat = await bench.create()
    await bench.commit(chat.id, answer("new"))
    table = schema.messages
    first = sa.select(sa.func.min(table.c.id)).scalar_subquery()
    change = table.update().where(table.c.id == first).values(content=OLD, content_version=0)
    await bench.execute(change)
    assert (await bench.messages(chat.id))[0].content == (
        TextPart(text="old words", provider_metadata={"a": {"b": 1}}),
    )
    await database.close()
    return chat.id


async def stored(path: Path) -> list[tuple[int, Any]]:
    """Version and content of every message."""
    database = Database(sqlite_url(path / "chatd.sqlite3"))
    table = schema.messages
    statement = sa.select(table.c.content_version, table.c.content).order_by(table.c.id)
    rows = await database.read(lambda c: [tuple(row) for row in c.execute(statement)])
    await database.close()
    return rows


async def test_it_shows_what_would_change_and_changes_it_only_when_told(tmp_path: Path) -> None:
    """Spec 4.2: forward only; the part and its metadata survive."""
    await old_chat(tmp_path)
    settings = ChatdSettings(data_dir=tmp_path)
    shown = await convert_messages(settings, apply=False)
    before = await stored(tmp_path)
    done = await convert_messages(settings, apply=True)
    after = await stored(tmp_path)

    assert shown == done
    assert [(row.shape, row.before, row.role) for row in shown] == [("envelopes", OLD, "user")]
    assert before[0] == (0, OLD)
    assert after[0] == (1, shown[0].after)
    assert after[1:] == before[1:]
    assert await convert_messages(settings, apply=True) == []


async def test_it_never_runs_beside_a_chatd(tmp_path: Path) -> None:
    """Ours: the data directory's lock."""
    held = DataDir(tmp_path)
    try:
        with pytest.raises(DataDirBusy):
            await convert_messages(ChatdSettings(data_dir=tmp_path), apply=True)
    finally:
        held.release()


def test_the_command_tells_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: rows on standard output, the count beside."""
    with pytest.raises(SystemExit) as ended:
        app(["convert-messages", "--data", str(tmp_path)])
    printed = capsys.readouterr()

    assert ended.value.code == 0
    assert (printed.out, "0 old messages" in printed.err) == ("", True)
