"""
A database and the threads that talk to it.

Statements run synchronously inside closures: one writer thread (SQLite has one
writer anyway) and a few readers beside it. A closure is one transaction.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

__all__ = ["Database", "sqlite_url"]

# Threads that read. Reads are short; two keep one slow list from delaying a stream.
READERS = 2
# Milliseconds SQLite waits for another process's lock (a backup, a shell) before it gives up.
BUSY_TIMEOUT_MS = 10_000

T = TypeVar("T")
P = ParamSpec("P")


def sqlite_url(path: Path) -> str:
    """SQLAlchemy's URL of a SQLite file."""
    return f"sqlite:///{path}"


class Database:
    """One database, opened; migrate it before use."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._write_engine = _engine(url, begin="BEGIN IMMEDIATE")
        self._read_engine = _engine(url, begin="BEGIN")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="db-write")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="db-read")

    async def write(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        Run *run(connection, …)* in one transaction on the writer thread.

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

    async def migrate(self) -> None:
        """Bring the schema to the newest version."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self._upgrade)

    def _upgrade(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with self._write_engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    async def close(self) -> None:
        """Wait for the transactions under way, then close every connection."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, self._write_engine.dispose)
        await loop.run_in_executor(self._readers, self._read_engine.dispose)
        self._writer.shutdown()
        self._readers.shutdown()


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


def _engine(url: str, *, begin: str) -> sa.Engine:
    if not url.startswith("sqlite:"):
        msg = f"unsupported database URL {sa.make_url(url).render_as_string()}: this version runs on SQLite"
        raise ValueError(msg)
    engine = sa.create_engine(
        url,
        poolclass=sa.QueuePool,
        pool_size=READERS,
        max_overflow=0,
        connect_args={"check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def _on_connect(dbapi: Any, _: Any) -> None:  # noqa: ANN401 -- DBAPI objects
        # sqlite3 must not open transactions by itself: ours begin IMMEDIATE, so that a
        # transaction that reads first can still write.
        dbapi.isolation_level = None
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            f"busy_timeout={BUSY_TIMEOUT_MS}",
        ):
            dbapi.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _on_begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
