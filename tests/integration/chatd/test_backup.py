"""``chatd backup`` and ``restore``: whole copies of a database that is written to, and clear refusals."""

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from chatd.backup import back_up
from chatd.cli import app
from chatd.datadir import DataDir
from chatd.settings import ChatdSettings
from chatd.store.database import Database, sqlite_url
from tests.contract.store.test_crash import ROOT, check

NAME = "chatd.sqlite3"


@pytest.fixture
def data(tmp_path: Path, sqlite_template: Path) -> Path:
    """A data directory with a migrated database."""
    (tmp_path / "data").mkdir()
    shutil.copy(sqlite_template, tmp_path / "data" / NAME)
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CHATD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("chatd.cli._log_to_stderr", lambda: None)


@contextlib.asynccontextmanager
async def storm(path: Path) -> AsyncIterator[asyncio.StreamReader]:
    """A process that commits as fast as it can, telling each chat's snapshot; killed in the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.contract.store.victim", sqlite_url(path), "7"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.communicate()


def run(*arguments: str) -> int:
    """The exit code of ``chatd`` with these arguments."""
    with pytest.raises(SystemExit) as ended:
        app(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


async def test_a_copy_made_in_a_storm_of_writes_is_whole(data: Path, tmp_path: Path) -> None:
    """Ours: it holds every commit that was told before it began, and all invariants; the writer goes on."""
    heard: list[tuple[str, float]] = []
    told: dict[UUID, int] = {}
    async with storm(data / NAME) as lines, asyncio.timeout(45):
        for _ in range(30):
            chat_id, snapshot = (await lines.readline()).decode().split()
            told[UUID(chat_id)] = int(snapshot)
        settings = ChatdSettings(data_dir=data)
        done = await asyncio.to_thread(
            back_up, settings, tmp_path / "copy", progress=lambda *step: heard.append(step)
        )
        later = [await lines.readline() for _ in range(5)]
    database = Database(sqlite_url(tmp_path / "copy"))
    await database.read(check, told)
    await database.close()

    assert all(later)
    assert heard[-1] == ("check", 1.0)
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    assert (done.rows["chats"], done.size_bytes) == (3, (tmp_path / "copy").stat().st_size)


def test_a_restored_database_is_the_one_that_was_copied(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: what is there moves aside with its journal; another directory is made where there is none."""
    copy = str(tmp_path / "copy.sqlite3")
    codes = [run("backup", copy, "--data", str(data), "--json")]
    backup = json.loads(capsys.readouterr().out)
    with contextlib.closing(sqlite3.connect(data / NAME)) as connection:
        connection.execute("INSERT INTO deployment_settings VALUES ('later', '1', '2026-01-01')")
        connection.commit()
    codes.append(run("restore", copy, "--data", str(data)))
    refused = capsys.readouterr().err
    codes.append(run("restore", copy, "--data", str(data), "--force", "--json"))
    restored = json.loads(capsys.readouterr().out)
    codes.append(run("restore", copy, "--data", str(tmp_path / "new" / "place")))
    text = capsys.readouterr().out

    def settings(path: Path) -> int:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return int(connection.execute("SELECT count(*) FROM deployment_settings").fetchone()[0])

    assert codes == [0, 1, 0, 0]
    assert "exists; --force moves it aside" in refused
    assert (settings(data / NAME), settings(Path(restored["moved"]))) == (0, 1)
    assert restored["rows"] == backup["rows"]
    assert restored["schema_version"] == backup["schema_version"]
    assert text.startswith(str(tmp_path / "new" / "place" / NAME))
    assert sorted(path.name for path in data.iterdir()) == [NAME, f"{NAME}.before-1"]


def damage(path: Path) -> None:
    """Overwrite the middle of a database."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 8192)


def make_newer(path: Path) -> None:
    """A database of a chatd to come."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()


def make_strange(path: Path) -> None:
    """A database of something else."""
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.commit()


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (damage, "mage"),
        (make_newer, "schema 9999, made by a newer chatd"),
        (make_strange, "none of chatd's"),
        (lambda path: path.write_bytes(b"hello" * 1000), "no whole SQLite database"),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "whole SQLite database"),
        (lambda path: path.unlink(), "there is no"),
    ],
)
def test_what_is_no_whole_backup_replaces_nothing(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, harm: object, told: str
) -> None:
    """Ours: it is looked at before anything is touched; exit code 1."""
    copy = tmp_path / "copy"
    shutil.copy(data / NAME, copy)
    harm(copy)  # type: ignore[operator]
    before = (data / NAME).read_bytes()

    assert run("restore", str(copy), "--data", str(data), "--force") == 1
    assert told in capsys.readouterr().err
    assert (data / NAME).read_bytes() == before
    assert [path.name for path in data.iterdir()] == [NAME]


def test_refusals_say_what_to_do(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: no database, a file that is there, a directory that is not, a running chatd, PostgreSQL."""
    copy = tmp_path / "copy"
    copy.touch()

    def told(*arguments: str) -> str:
        assert run(*arguments) == 1
        return capsys.readouterr().err

    missing = told("backup", str(tmp_path / "x"), "--data", str(tmp_path / "nowhere"))
    there = told("backup", str(copy), "--data", str(data))
    nowhere = told("backup", str(tmp_path / "no" / "x"), "--data", str(data))
    run("backup", str(copy), "--data", str(data), "--force")
    held = DataDir(data)
    busy = told("restore", str(copy), "--data", str(data), "--force")
    held.release()
    monkeypatch.setenv("CHATD_DATABASE", "postgresql://me:secret@db/chatd")
    postgres = told("backup", str(tmp_path / "y"), "--data", str(data))

    assert "name the data directory with --data" in missing
    assert "--force to replace it" in there
    assert "No such file or directory" in nowhere
    assert "in use by process" in busy
    assert ("pg_dump" in postgres, "secret" in postgres) == (True, False)
