"""The migrations give the schema that the code believes in."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from chatd.store.columns import UtcDateTime
from chatd.store.database import Database, DatabaseBusy, sqlite_url
from chatd.store.schema import metadata
from tests.contract.store.bench import START, Bench


async def test_the_migrated_schema_is_the_metadata(bench: Bench) -> None:
    """Ours: Alembic finds nothing to do, types, indices and defaults included."""

    def diff(connection: sa.Connection) -> list[object]:
        options = {"compare_type": True, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    assert await bench.store.read(diff) == []


async def test_migrating_again_changes_nothing(bench: Bench) -> None:
    """Ours: every start migrates; data stays."""
    chat = await bench.create("kept")
    await bench.database.migrate()

    assert await bench.texts(chat.id) == ["user:kept"]


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
async def test_sqlite_is_durable_and_strict(bench: Bench) -> None:
    """Ours: WAL with full sync, and foreign keys are enforced, for readers and the writer."""

    def pragmas(connection: sa.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names]

    assert await bench.store.read(pragmas) == ["wal", 2, 1]
    assert await bench.store.write(pragmas) == ["wal", 2, 1]


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
async def test_postgresql_is_isolated_and_never_waits_for_ever(bench: Bench) -> None:
    """Ours: readers see one snapshot; locks and statements have limits; times are UTC."""

    def show(connection: sa.Connection) -> list[object]:
        names = ("transaction_isolation", "lock_timeout", "statement_timeout", "TimeZone")
        return [connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names]

    assert await bench.store.read(show) == ["repeatable read", "10s", "1min", "UTC"]
    assert await bench.store.write(show) == ["read committed", "10s", "1min", "UTC"]


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
async def test_a_postgresql_database_has_one_owner(bench: Bench, database_url: str) -> None:
    """Ours: as a data directory has; its lock ends with the owner."""
    await bench.database.take()
    second = Database(database_url)
    try:
        with pytest.raises(DatabaseBusy):
            await second.take()
        await bench.database.close()
        third = Database(database_url)
        await third.take()
        await third.close()
    finally:
        await second.close()


@pytest.mark.parametrize("url", ["mysql://me:hunter2@localhost/x", "postgresql:hunter2", ""])
def test_only_known_databases_are_opened(url: str, tmp_path: Path) -> None:
    """Ours: a refusal never shows the password of the URL."""
    with pytest.raises(ValueError, match="database") as caught:
        Database(url)

    assert "hunter2" not in str(caught.value)
    assert sqlite_url(tmp_path / "x").endswith("/x")


def test_a_naive_time_is_refused() -> None:
    """Ours: every stored time is aware."""
    with pytest.raises(ValueError, match="aware"):
        UtcDateTime().process_bind_param(START.replace(tzinfo=None), None)
