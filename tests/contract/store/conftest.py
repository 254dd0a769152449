"""One chat's worth of helpers over a database of every kind that the store runs on."""

from collections.abc import AsyncIterator

import pytest

from chatd.store.database import Database
from tests.contract.store.bench import Bench


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
