"""
The SQLite database as one file: copied while a chatd writes, checked, and put back.

A copy is of one moment, has no journal beside it, and is named only once it has been checked. What the
database keeps sealed opens only with the key beside it, which is not copied.
"""

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from alembic.config import Config
from alembic.script import ScriptDirectory

from chatd.datadir import DataDir
from chatd.errors import Refused, Unavailable
from chatd.settings import ChatdSettings

__all__ = ["Backup", "BackupBroken", "BackupFailed", "back_up", "restore"]

# Pages of a step: 4 MiB, between which the copy tells how far it is and can be cancelled.
STEP_PAGES = 1024
# Seconds to wait for a lock that another process holds.
BUSY_S = 10.0
COUNTED = {"users": "users", "chats": "chats", "messages": "chat_messages"}

Progress = Callable[[str, float], None]


class BackupBroken(Refused):
    """A file that is no whole database of ours."""

    code = "backup_broken"


class BackupFailed(Unavailable):
    """A copy that could not be made or put back; what was there before is there still."""

    code = "backup_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A checked copy. *rows* by table; *moved* is where a database that it replaced lies now."""

    file: str
    size_bytes: int
    sha256: str
    schema_version: str
    rows: dict[str, int]
    took_s: float
    moved: str | None = None


def back_up(settings: ChatdSettings, target: Path, *, force: bool = False, progress: Progress) -> Backup:
    """
    Copy the database to *target*; a chatd may run meanwhile, and is not held up.

    Args:
        settings: of the control plane.
        target: the file; it appears when it is whole.
        force: replace a file that is there.
        progress: hears what is done, and which part of it, 0 to 1.

    Raises:
        BackupFailed: there is no such database, no room, no permission, or a file already.
        BackupBroken: the copy is damaged, so the database is.
    """
    begun = time.monotonic()
    source = _sqlite_path(settings)
    if not source.is_file():
        raise BackupFailed(f"there is no {source}; name the data directory with --data")
    if target.exists() and not force:
        raise BackupFailed(f"{target} exists; choose another name, or --force to replace it")
    with _telling(target), _partial(target) as part:
        _copy(source, part, progress)
        found = _check(part, progress)
        digest = _settle(part, target)
    took = time.monotonic() - begun
    return Backup(file=str(target), size_bytes=target.stat().st_size, sha256=digest, took_s=took, **found)


def restore(settings: ChatdSettings, source: Path, *, force: bool = False, progress: Progress) -> Backup:
    """
    Make the copy *source* the database of a data directory that no chatd uses.

    Args:
        settings: of the control plane.
        source: what ``back_up`` made.
        force: replace a database that is there; it is moved aside, not deleted.
        progress: hears what is done, and which part of it, 0 to 1.

    Raises:
        BackupBroken: *source* is damaged, no database of ours, or of a newer version.
        BackupFailed: it can't be read or written, or there is a database already.
        DataDirBusy, DataDirUnusable: a chatd runs there, or nobody may write.
    """
    begun = time.monotonic()
    target = _sqlite_path(settings)
    if not source.is_file():
        raise BackupFailed(f"there is no {source}")
    data_dir = DataDir(settings.data_dir)
    try:
        if target.exists() and not force:
            raise BackupFailed(f"{target} exists; --force moves it aside and puts the copy in its place")
        with _telling(target), _partial(target) as part:
            _copy(source, part, progress)
            found = _check(part, progress)
            _give_to_owner(part, settings.data_dir)
            moved = _keep_old(target)
            digest = _settle(part, target)
    finally:
        data_dir.release()
    took = time.monotonic() - begun
    size = target.stat().st_size
    return Backup(file=str(target), size_bytes=size, sha256=digest, took_s=took, moved=moved, **found)


def _sqlite_path(settings: ChatdSettings) -> Path:
    if settings.database is not None:
        raise BackupFailed("this database is PostgreSQL; pg_dump and pg_restore copy it while chatd runs")
    return settings.database_path


@contextlib.contextmanager
def _telling(target: Path) -> Iterator[None]:
    """Say in words what the system or SQLite could not do."""
    try:
        yield
    except OSError as exc:
        raise BackupFailed(f"can't write {target}: {exc.strerror}") from exc
    except sqlite3.DatabaseError as exc:
        if exc.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise BackupBroken(f"this is no whole SQLite database: {exc}") from exc
        raise BackupFailed(f"can't write {target}: {exc}") from exc


@contextlib.contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """A private file beside *target*; gone afterwards, whatever happens."""
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield part
    finally:
        for leftover in (part, *_beside(part)):
            leftover.unlink(missing_ok=True)


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal")]


def _open(path: Path) -> sqlite3.Connection:
    """A database that is there: SQLite would make one that is not."""
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=rw", uri=True, timeout=BUSY_S, isolation_level=None
    )


def _copy(source: Path, part: Path, progress: Progress) -> None:
    def tell(_: int, left: int, total: int) -> None:
        progress("copy", 1 - left / total if total else 1.0)

    with (
        contextlib.closing(_open(source)) as reading,
        contextlib.closing(_open(part)) as writing,
    ):
        # On one snapshot: otherwise each commit of a chatd would have the copy begin again.
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master")
        reading.backup(writing, pages=STEP_PAGES, progress=tell)
        reading.execute("COMMIT")
        # One file, with nothing beside it.
        writing.execute("PRAGMA journal_mode=DELETE")


def _check(part: Path, progress: Progress) -> dict[str, Any]:
    progress("check", 0.0)
    with contextlib.closing(_open(part)) as connection:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
        if found != ["ok"]:
            raise BackupBroken(f"the database is damaged: {found[0]}")
        if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            raise BackupBroken("the database is damaged: rows point at rows that are not there")
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if not tables >= {"alembic_version", *COUNTED.values()}:
            raise BackupBroken("this is a SQLite database, but none of chatd's")
        version = str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
        if version not in _known_versions():
            raise BackupBroken(
                f"this database is of schema {version}, made by a newer chatd; install that one"
            )
        rows = {name: _count(connection, table) for name, table in COUNTED.items()}
    progress("check", 1.0)
    return {"schema_version": version, "rows": rows}


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 -- names of ours


def _known_versions() -> set[str]:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "store" / "migrations"))
    return {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}


def _give_to_owner(part: Path, directory: Path) -> None:
    """An administrator restores for chatd's own user: the file belongs to whom the directory belongs to."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.chown(part, owner.st_uid, owner.st_gid)


def _settle(part: Path, target: Path) -> str:
    """Have the file on the disk before it has its name; its SHA-256."""
    with part.open("rb+") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    part.replace(target)
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return digest


def _keep_old(target: Path) -> str | None:
    """
    Give the database that is there a second name, and take its journal away from the first one.

    Killed here, at whatever line: *target* is the old database, whole.
    """
    if not target.exists():
        return None
    # What is in the journal goes into the file, which then stands alone; a damaged one keeps its journal.
    with (
        contextlib.suppress(sqlite3.DatabaseError),
        contextlib.closing(sqlite3.connect(target)) as connection,
    ):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    number = 1
    while (aside := target.with_name(f"{target.name}.before-{number}")).exists():
        number += 1
    os.link(target, aside)
    for path in _beside(target):
        if path.exists():
            path.rename(aside.with_name(aside.name + path.name.removeprefix(target.name)))
    return str(aside)
