"""Databases for tests: which kinds there are, and how one is made ready."""

import asyncio
from collections.abc import Callable

from chatd.store.database import Database

__all__ = ["KINDS", "NewDatabase", "migrate"]

KINDS = ("sqlite", "postgresql")
# Makes an empty, migrated database and returns its URL.
NewDatabase = Callable[[], str]


def migrate(url: str) -> None:
    """Migrate a database and let go of it."""

    async def run() -> None:
        database = Database(url)
        await database.migrate()
        await database.close()

    asyncio.run(run())
