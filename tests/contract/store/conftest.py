"""A migrated database of every kind that the store runs on, and one chat's worth of helpers."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatd.store.database import Database, sqlite_url
from tests.contract.store.bench import Bench


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file that nobody writes to."""
    path = tmp_path_factory.mktemp("template") / "chatd.sqlite3"

    async def make() -> None:
        database = Database(sqlite_url(path))
        await database.migrate()
        await database.close()

    asyncio.run(make())
    return path


@pytest.fixture(params=["sqlite"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> str:
    """The URL of an empty, migrated database; another kind of server joins by its name in *params*."""
    assert request.param == "sqlite"
    path = tmp_path / "chatd.sqlite3"
    shutil.copy(sqlite_template, path)
    return sqlite_url(path)


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Bench]:
    """A store with a user and a model."""
    database = Database(database_url)
    bench = Bench(database)
    await bench.prepare()
    try:
        yield bench
    finally:
        await database.close()
