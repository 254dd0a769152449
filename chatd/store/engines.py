"""
SQLAlchemy engines for the two databases there are: SQLite and PostgreSQL.

Every transaction begins as its kind wants: a SQLite writer with ``BEGIN IMMEDIATE``
(so that one that reads first can still write), a reader on one consistent snapshot.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

__all__ = ["WATCHFUL", "Engines", "check_url", "make_engines", "sqlite_url"]

# Threads that read. Reads are short; a few keep one slow list from delaying a stream.
SQLITE_READERS, POSTGRES_READERS = 2, 4
# Threads that write. SQLite has one writer anyway; PostgreSQL's rows are locked one by one.
SQLITE_WRITERS, POSTGRES_WRITERS = 1, 8
# Milliseconds SQLite waits for another process's lock (a backup, a shell) before it gives up.
BUSY_TIMEOUT_MS = 10_000
# What PostgreSQL is told at connecting: nothing waits for ever. Seconds and milliseconds.
CONNECT_TIMEOUT_S = 10
LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS = 10_000, 60_000
# A server that is gone without a word is noticed within half a minute; else threads would wait for a quarter
# of an hour. Seconds, but for the timeout in milliseconds.
WATCHFUL = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}

POSTGRES_SCHEMES = frozenset({"postgres", "postgresql", "postgresql+psycopg"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """A pool that writes and a pool that reads, with the number of connections of each."""

    write: sa.Engine
    read: sa.Engine
    writers: int
    readers: int


def sqlite_url(path: Path) -> str:
    """SQLAlchemy's URL of a SQLite file."""
    return f"sqlite:///{path}"


def check_url(url: str) -> sa.URL:
    """
    The URL as SQLAlchemy wants it: PostgreSQL is spoken by psycopg.

    Raises:
        ValueError: it is none, or of another database; the text shows no password.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        msg = "this is no database URL; write postgresql://user@host/name"
        raise ValueError(msg) from None
    if parsed.drivername in POSTGRES_SCHEMES:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername == "sqlite":
        return parsed
    msg = f"unsupported database {parsed.render_as_string()}: there are SQLite and postgresql://"
    raise ValueError(msg)


def make_engines(url: str) -> Engines:
    """
    Both engines of the database at *url*; nothing is connected yet.

    Raises:
        ValueError: a database that we don't know.
    """
    parsed = check_url(url)
    if parsed.drivername == "sqlite":
        return Engines(
            write=_sqlite(parsed, SQLITE_WRITERS, begin="BEGIN IMMEDIATE"),
            read=_sqlite(parsed, SQLITE_READERS, begin="BEGIN"),
            writers=SQLITE_WRITERS,
            readers=SQLITE_READERS,
        )
    return Engines(
        write=_postgres(parsed, POSTGRES_WRITERS, isolation_level="READ COMMITTED"),
        read=_postgres(parsed, POSTGRES_READERS, isolation_level="REPEATABLE READ"),
        writers=POSTGRES_WRITERS,
        readers=POSTGRES_READERS,
    )


def _sqlite(url: sa.URL, size: int, *, begin: str) -> sa.Engine:
    engine = sa.create_engine(
        url,
        poolclass=sa.QueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def _on_connect(dbapi: Any, _: Any) -> None:  # noqa: ANN401 -- DBAPI objects
        # sqlite3 must not open transactions by itself: ours begin as *begin* says.
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


def _postgres(url: sa.URL, size: int, *, isolation_level: Any) -> sa.Engine:  # noqa: ANN401 -- SQLAlchemy's names
    settings = {
        "TimeZone": "UTC",
        "lock_timeout": LOCK_TIMEOUT_MS,
        "statement_timeout": STATEMENT_TIMEOUT_MS,
        "idle_in_transaction_session_timeout": STATEMENT_TIMEOUT_MS,
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return sa.create_engine(
        url,
        poolclass=sa.QueuePool,
        pool_size=size,
        max_overflow=0,
        # A server that was restarted is noticed before a transaction is lost to it.
        pool_pre_ping=True,
        isolation_level=isolation_level,
        connect_args={
            **WATCHFUL,
            "application_name": "chatd",
            "options": options,
        },
    )
