"""
A database and the threads that talk to it.

Statements run synchronously inside closures, on threads of our own: one that writes
to SQLite, a few to PostgreSQL, and some that read. A closure is one transaction.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from chatd.errors import Refused
from chatd.store import migrating
from chatd.store.engines import WATCHFUL, make_engines, sqlite_url
from chatd.store.migrating import Phase, Versions

__all__ = ["Database", "DatabaseBusy", "sqlite_url"]

# Key of PostgreSQL's advisory lock of whoever uses the database, beside others or alone: "chatd" in ASCII.
OWNER_KEY = 0x6368617464

T = TypeVar("T")
P = ParamSpec("P")


class DatabaseBusy(Refused):
    """It is used by a chatd, or by somebody who wants it alone."""

    code = "database_busy"


class Database:
    """
    One database, opened; migrate it before use.

    Raises:
        ValueError: a database that we don't know.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        engines = make_engines(url)
        self._write_engine, self._read_engine = engines.write, engines.read
        self._writer = ThreadPoolExecutor(engines.writers, thread_name_prefix="db-write")
        self._readers = ThreadPoolExecutor(engines.readers, thread_name_prefix="db-read")
        self._ownership: sa.Connection | None = None

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of ours rather than a server."""
        return self._write_engine.dialect.name == "sqlite"

    def __str__(self) -> str:
        if self.is_sqlite:
            return str(self._write_engine.url.database)
        return self._write_engine.url.set(drivername="postgresql").render_as_string()

    async def write(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        Run *run(connection, …)* in one transaction on a writing thread.

        Transaction: opened here; committed when *run* returns, rolled back when it raises.
        Cancellation: the transaction still ends, one way or the other, before the
        cancellation goes on: nobody is left guessing.
        """

        def work() -> T:
            with self._write_engine.begin() as connection:
                return run(connection, *args, **kwargs)

        return await _finish(self._writer, work)

    async def read(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run *run(connection, …)* on a consistent snapshot."""

        def work() -> T:
            with self._read_engine.begin() as connection:
                return run(connection, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def take(self, *, alone: bool = True) -> None:
        """
        Use the database until ``close``: beside other chatds, or *alone*.

        A SQLite file is owned with its data directory; on PostgreSQL it is a lock that
        dies with our connection.

        Raises:
            DatabaseBusy: chatds use it, or somebody has it alone.
        """
        if not self.is_sqlite:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._take, alone)

    def _take(self, alone: bool) -> None:
        connection = self._read_engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        self._ownership = connection
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        lock = sa.func.pg_try_advisory_lock if alone else sa.func.pg_try_advisory_lock_shared
        if not connection.execute(sa.select(lock(OWNER_KEY))).scalar_one():
            whose = "chatd runs" if alone else "somebody works alone"
            raise DatabaseBusy(f"{whose} on {self}; wait for its end, or choose another database")

    async def migrate(self, phase: Phase = "all") -> list[str]:
        """
        Run the pending migrations of *phase*; the versions that were reached.

        Raises:
            SchemaUnfit: ``post`` was asked for before ``pre``.
        """
        loop = asyncio.get_running_loop()
        return list(await loop.run_in_executor(self._writer, migrating.migrate, self._write_engine, phase))

    async def migrate_to(self, revision: str) -> None:
        """Run all pending migrations up to *revision*; rows stay."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, migrating.migrate_to, self._write_engine, revision)

    async def versions(self) -> Versions:
        """What the schema is like, beside what this code knows."""
        return await self.read(migrating.read_versions)

    def connect_options(self) -> dict[str, Any]:
        """For psycopg's ``connect``: a connection of one's own to the same PostgreSQL."""
        _, options = self._read_engine.dialect.create_connect_args(self._read_engine.url)
        return {
            **{name: value for name, value in options.items() if name != "context"},
            **WATCHFUL,
            "application_name": "chatd hints",
        }

    async def close(self) -> None:
        """Wait for the transactions under way, then close every connection."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.shutdown)
        await loop.run_in_executor(None, self._readers.shutdown)
        if self._ownership is not None:
            self._ownership.close()
            self._ownership = None
        self._write_engine.dispose()
        self._read_engine.dispose()


async def _finish(executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """Wait for *work* even when cancelled meanwhile; the cancellation is re-raised after it."""
    future = asyncio.get_running_loop().run_in_executor(executor, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait({future})
        if not future.cancelled():
            future.exception()
        raise
