"""The question whether a database can be written, on both kinds."""

from pathlib import Path

import sqlalchemy as sa

from chatd.store.probing import prove_writable
from tests.contract.store.bench import Bench


def _written(connection: sa.Connection) -> int:
    """Bytes that were ever written to the journal."""
    if connection.dialect.name == "sqlite":
        path = str(connection.engine.url.database)
        return Path(f"{path}-wal").stat().st_size
    return int(connection.exec_driver_sql("SELECT pg_current_wal_insert_lsn() - '0/0'").scalar_one())


async def test_the_question_reaches_the_journal_and_changes_no_row(bench: Bench) -> None:
    """Ours: a transaction that only begins and ends is granted on a disk that takes nothing."""
    chat = await bench.create()
    before, row = await bench.store.read(_written), await bench.row(chat.id)
    await bench.store.write(prove_writable)

    assert await bench.store.read(_written) > before
    assert await bench.row(chat.id) == row
