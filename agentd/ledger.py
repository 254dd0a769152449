"""
Which calls were begun, and what they answered, on disk: survives the daemon.

A call's intent is on the disk before anything is done for it, its answer with the operating system before it
is told. So after a crash each call is known to be one of: never begun (it may run), begun without an answer
(nobody knows; it must not run again), answered (the answer is told again). SQLite in a thread of its own.
Intents are synced; an answer is not waited for, since all that a power cut could make of it is an "unknown".

Invariant: a call id is begun at most once, by whichever boot.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from agentd.errors import DataDirUnusable, LedgerFailed
from agentd.wire.content import ToolResult
from computer.shielding import finish

__all__ = ["Answered", "Begun", "DiskLedger", "Ledger", "MayRun", "MemoryLedger", "Unknown"]

T = TypeVar("T")

# Bytes of answers that are kept for repeats, and the number of them; the oldest are dropped first. A repeat
# of a call whose answer was dropped is told that nobody knows.
MAX_ANSWER_BYTES = 64 * 2**20
MAX_ANSWERS = 256
# Calls whose ids are kept: a repeat comes within minutes, this many last for weeks.
MAX_CALLS = 100_000
# Calls between two looks for what may go.
TRIM_EVERY = 64

SCHEMA = """
CREATE TABLE IF NOT EXISTS boots (boot_id TEXT PRIMARY KEY, started_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    call_id TEXT NOT NULL UNIQUE,
    boot_id TEXT NOT NULL,
    begun_at REAL NOT NULL,
    answered_at REAL,
    answer TEXT
);
"""


@dataclass(frozen=True, slots=True)
class MayRun:
    """The call is new; that it begins is on disk now."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The call has run; this is what it answered."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class Unknown:
    """The call was begun, or may have been; what it did is not known."""


Begun = MayRun | Answered | Unknown


class Ledger(Protocol):
    """Remembers calls; see the module."""

    async def begin(self, call_id: str, boot_id: str | None) -> Begun:
        """
        Claim a call: remembered when this returns ``MayRun``.

        Args:
            call_id: names the intention.
            boot_id: the boot that is thought to have been given it first; None: no other.

        Raises:
            LedgerFailed: it can't be written down, so it must not run.

        Cancellation:
            the claim is either made or not; a repeat then learns ``Unknown``.
        """

    async def answered(self, call_id: str) -> ToolResult | None:
        """
        What a call answered, for those that are begun without this ledger; None: nothing, as far as is known.

        Raises:
            LedgerFailed: it can't be read.
        """

    async def answer(self, call_id: str, result: ToolResult) -> None:
        """
        Keep what a call answered: when this returns it outlives the daemon, if not a power cut.

        Raises:
            LedgerFailed: it can't be written down; a repeat is told that nobody knows.
        """


class MemoryLedger:
    """Knows of no other boot than this one, whose runs the caller remembers."""

    def __init__(self, boot_id: str) -> None:
        self._boot_id = boot_id

    async def begin(self, call_id: str, boot_id: str | None) -> Begun:  # noqa: ARG002 -- the protocol's
        """Anything of another boot may have been begun there."""
        return MayRun() if boot_id in {None, self._boot_id} else Unknown()

    async def answered(self, call_id: str) -> ToolResult | None:
        """Nothing outlives a boot."""

    async def answer(self, call_id: str, result: ToolResult) -> None:
        """Nothing outlives this boot."""


class DiskLedger:
    """
    The calls of one daemon, of this boot and of earlier ones.

    Args:
        path: of the database; made by ``open`` when it is missing.
        boot_id: of this boot.
    """

    def __init__(self, path: Path, boot_id: str) -> None:
        self._path, self._boot_id = path, boot_id
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._writes = 0
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """
        Open the database; it is this process's alone until ``close`` or its end.

        Raises:
            DataDirUnusable: it can't be opened, or another daemon has it.
        """
        loop = asyncio.get_running_loop()
        try:
            self._connection = await loop.run_in_executor(self._thread, _open, self._path, self._boot_id)
        except (OSError, sqlite3.Error) as exc:
            reason = "another agentd uses it" if "locked" in str(exc) else str(exc)
            msg = f"{self._path} can't be used: {reason}; set AGENTD_DATA_DIR to a directory of its own"
            raise DataDirUnusable(msg) from exc

    async def begin(self, call_id: str, boot_id: str | None) -> Begun:
        """Claim a call; on disk when this returns ``MayRun``."""
        return await self._in_thread(lambda: self._begin(call_id, boot_id or self._boot_id))

    async def answered(self, call_id: str) -> ToolResult | None:
        """What a call answered."""
        return await self._in_thread(lambda: self._answered(call_id))

    async def answer(self, call_id: str, result: ToolResult) -> None:
        """Keep an answer; see the protocol."""
        await self._in_thread(lambda: self._answer(call_id, result.model_dump_json(by_alias=True)))

    async def close(self) -> None:
        """Close the database, once what is being written has been; harmless when repeated."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, connection.close)
        self._thread.shutdown(wait=False)

    def _begin(self, call_id: str, boot_id: str) -> Begun:
        with self._opened() as connection:
            known = connection.execute("SELECT answer FROM calls WHERE call_id = ?", (call_id,)).fetchone()
            if known is not None:
                return Unknown() if known[0] is None else Answered(ToolResult.model_validate_json(known[0]))
            # A boot whose calls are all here never began this one. Of any other boot nothing is known.
            boot = connection.execute("SELECT 1 FROM boots WHERE boot_id = ?", (boot_id,)).fetchone()
            if boot is None:
                return Unknown()
            connection.execute(
                "INSERT INTO calls (call_id, boot_id, begun_at) VALUES (?, ?, ?)",
                (call_id, self._boot_id, time.time()),
            )
        return MayRun()

    def _answered(self, call_id: str) -> ToolResult | None:
        found = self._opened().execute("SELECT answer FROM calls WHERE call_id = ?", (call_id,)).fetchone()
        return ToolResult.model_validate_json(found[0]) if found is not None and found[0] else None

    def _answer(self, call_id: str, answer: str) -> None:
        connection, now = self._opened(), time.time()
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            with connection:
                connection.execute(
                    "INSERT INTO calls (call_id, boot_id, begun_at, answered_at, answer) "
                    "VALUES (?1, ?2, ?3, ?3, ?4) ON CONFLICT (call_id) DO UPDATE "
                    "SET answer = excluded.answer, answered_at = excluded.answered_at",
                    (call_id, self._boot_id, now, answer),
                )
                self._writes += 1
                if self._writes % TRIM_EVERY == 0:
                    self._trim(connection)
        finally:
            connection.execute("PRAGMA synchronous = FULL")

    def _trim(self, connection: sqlite3.Connection) -> None:
        """Drop old answers, then old calls, and with them the boots that are not whole any more."""
        connection.execute(
            """
            UPDATE calls SET answer = NULL WHERE answer IS NOT NULL AND number NOT IN (
                SELECT number FROM (
                    SELECT number, SUM(LENGTH(answer)) OVER (ORDER BY number DESC) AS bytes
                    FROM calls WHERE answer IS NOT NULL ORDER BY number DESC LIMIT ?
                ) WHERE bytes <= ?
            )
            """,
            (MAX_ANSWERS, MAX_ANSWER_BYTES),
        )
        limit = "(SELECT MAX(number) - ? FROM calls)"
        connection.execute(
            f"DELETE FROM boots WHERE boot_id != ? AND boot_id IN (SELECT boot_id FROM calls WHERE number <= {limit})",  # noqa: S608, E501 -- constant
            (self._boot_id, MAX_CALLS),
        )
        connection.execute(f"DELETE FROM calls WHERE number <= {limit}", (MAX_CALLS,))  # noqa: S608 -- constant

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            msg = "the ledger of calls is closed"
            raise sqlite3.ProgrammingError(msg)
        return self._connection

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._connection is None:
            msg = "the ledger of calls is closed; nothing was done: the daemon is shutting down"
            raise LedgerFailed(msg)

        async def run() -> T:
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
            except sqlite3.Error as exc:
                msg = f"the ledger of calls can't be written ({exc}); nothing was done: free some disk space"
                raise LedgerFailed(msg) from exc

        # Never abandoned: what was begun on disk is known here, too.
        return await finish(run())


def _open(path: Path, boot_id: str) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    connection = sqlite3.connect(path, check_same_thread=False, timeout=1)
    try:
        # Held from the first write on, until this process ends, however it does.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)
        with connection:
            connection.execute("INSERT OR IGNORE INTO boots VALUES (?, ?)", (boot_id, time.time()))
    except BaseException:
        connection.close()
        raise
    return connection
