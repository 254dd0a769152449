"""A disk that is full, a database that somebody locks, a machine that loses power."""

import asyncio
import contextlib
import errno
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa

from chatd.store import engines
from chatd.store.database import Database, sqlite_url
from chatd.store.sqlite_faults import TEXTS, explain_fault
from tests.contract.store.test_crash import check
from tests.integration.chatd.http.site import API, Site, bearer, serving, text
from tests.support.manager import LIMIT_S, starting

CUTS = int(os.environ.get("CHATD_POWER_CUTS", "50"))
# A namespace of its own, in which the directory $0 is a small disk; then the command.
SMALL_DISK = 'mount -t tmpfs -o size=12m,mode=0700 tmpfs "$0" && exec "$@"'
# The same with a file system from the file $1, which the kernel makes read-only at its first error.
CAREFUL_DISK = 'mount -o loop,errors=remount-ro "$1" "$0" && shift && exec "$@"'
IMAGE_BYTES = 32 * 2**20


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CHATD_") or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def namespace() -> list[str]:
    """What gives a command mounts of its own; a machine that grants none skips."""
    command = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a mount namespace")
    return command


async def copy_inside(pid: int, data: Path, copy: Path) -> dict[str, int]:
    """``chatd backup`` where that process lives; it checks what it copied. The number of rows."""
    entering = ["nsenter", f"--target={pid}", "--mount"]
    if os.getuid() != 0:
        entering += ["--user", "--preserve-credentials"]
    process = await asyncio.create_subprocess_exec(
        *(*entering, sys.executable, "-c", "from chatd.cli import main; main()"),
        *("backup", str(copy), "--data", str(data), "--json"),
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    rows: dict[str, int] = json.loads(out)["rows"]
    return rows


class Client:
    """Asks one chatd."""

    def __init__(self, line: dict[str, str], http: aiohttp.ClientSession) -> None:
        self.url, self._headers, self._http = line["url"], bearer(line["token"]), http

    async def send(self, value: str) -> tuple[int, dict[str, Any], str | None]:
        """A new chat: status, body, and when to come back."""
        async with self._http.post(
            f"{self.url}{API}/chats", json=text(value), headers=self._headers
        ) as answer:
            return answer.status, await answer.json(), answer.headers.get("Retry-After")

    async def read(self, chat_id: str) -> int:
        """The status of a chat's messages."""
        path = f"{self.url}{API}/chats/{chat_id}/messages"
        async with self._http.get(path, headers=self._headers) as answer:
            return answer.status


@pytest.mark.slow
async def test_a_full_disk_refuses_in_words_and_is_over_when_there_is_room(tmp_path: Path) -> None:
    """
    Ours: nothing is half-written, reading goes on, and chatd needs no restart.

    Steps: fill the disk below a running chatd; write; read; make room; write again; look at every page.
    """
    data = tmp_path / "data"
    data.mkdir()
    prefix = (*namespace(), "sh", "-c", SMALL_DISK, str(data))
    async with (
        starting(tmp_path, "chatd", "serve", "--port", "0", prefix=prefix, CHATD_DATA_DIR=str(data)) as chatd,
        aiohttp.ClientSession() as http,
    ):
        assert chatd.process.stdout is not None
        client = Client(json.loads(await chatd.process.stdout.readline()), http)
        _, first, _ = await client.send("say hello")
        # The directory as the process sees it.
        inside = Path(f"/proc/{chatd.process.pid}/root{data}")
        filler = inside / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        # What the journal has room for may be written once more.
        answers = [await client.send("x" * 50_000) for _ in range(20)]
        read = await client.read(first["id"])
        filler.unlink()
        last = await client.send("say hello")
        rows = await copy_inside(chatd.process.pid, data, tmp_path / "copy")
        code, _, _ = await chatd.stop()
    refused = [answer for answer in answers if answer[0] != 201]

    assert (code, read, last[0]) == (0, 200, 201)
    assert {(status, body["message"], again) for status, body, again in refused} == {
        (503, TEXTS[sqlite3.SQLITE_FULL], "1")
    }
    assert rows["chats"] == 2 + len(answers) - len(refused)


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _make_disk(image: Path) -> None:
    if os.getuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("this machine lets nobody mount a file")
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)


def _break(pid: int, mount: Path) -> None:
    """Have the kernel find an error in the file system that a process has at *mount*."""
    mounts = (line.split() for line in Path(f"/proc/{pid}/mounts").read_text().splitlines())
    device = next(Path(fields[0]) for fields in mounts if fields[1] == str(mount))
    Path(f"/sys/fs/ext4/{device.name}/trigger_fs_error").write_text("test")
    _until(lambda: _is_read_only(Path(f"/proc/{pid}/root{mount}")))


def _is_read_only(place: Path) -> bool:
    # Newer kernels do not say so in the mount's flags.
    try:
        (place / "probe").touch()
    except OSError as exc:
        return exc.errno == errno.EROFS
    return False


def _repair(image: Path) -> None:
    """What an administrator does once nobody uses the disk."""
    _until(lambda: not subprocess.run(["losetup", "-j", image], capture_output=True, check=True).stdout)
    found = subprocess.run(["e2fsck", "-fy", image], capture_output=True, check=False)
    # 1: errors were corrected.
    assert found.returncode <= 1, found


@pytest.mark.slow
async def test_a_disk_that_turns_read_only_refuses_in_words_and_loses_nothing(tmp_path: Path) -> None:
    """
    Issue: read-only. The kernel does that to a file system in which it finds an error.

    Steps: chatd on such a disk; write; the error; write, read, ask for health; repair the disk; start again.
    """
    data, image = tmp_path / "data", tmp_path / "image"
    data.mkdir()
    _make_disk(image)
    prefix = (*namespace(), "sh", "-c", CAREFUL_DISK, str(data), str(image))
    place = str(data / "chatd")
    async with (
        starting(tmp_path, "chatd", "serve", "--port", "0", prefix=prefix, CHATD_DATA_DIR=place) as chatd,
        aiohttp.ClientSession() as http,
    ):
        assert chatd.process.stdout is not None
        client = Client(json.loads(await chatd.process.stdout.readline()), http)
        written = [(await client.send(f"say {number}"))[1]["id"] for number in range(3)]
        await asyncio.to_thread(_break, chatd.process.pid, data)
        refused = [await client.send("say no") for _ in range(3)]
        read = [await client.read(chat_id) for chat_id in written]
        async with http.get(f"{client.url}/readyz") as ready:
            checks = (await ready.json())["checks"]
        await chatd.stop()
    await asyncio.to_thread(_repair, image)
    async with (
        starting(tmp_path, "chatd", "serve", "--port", "0", prefix=prefix, CHATD_DATA_DIR=place) as chatd,
        aiohttp.ClientSession() as http,
    ):
        assert chatd.process.stdout is not None
        client = Client(json.loads(await chatd.process.stdout.readline()), http)
        kept = [await client.read(chat_id) for chat_id in written]
        status, _, _ = await client.send("say again")
        await chatd.stop()

    # To a file that is open the kernel's refusal is an error like any other, and its log says more.
    assert {(code, body["message"]) for code, body, _ in refused} == {(503, TEXTS[sqlite3.SQLITE_IOERR])}
    assert read == kept == [200, 200, 200]
    assert (checks["writing"], checks["reading"]) == ("failing", "ok")
    assert status == 201


async def test_a_lock_of_somebody_else_is_waited_for_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: 503 and Retry-After once the wait is over; nothing is lost, and the next request is served."""
    monkeypatch.setattr(engines, "BUSY_TIMEOUT_MS", 300)
    async with serving(tmp_path / "data") as site:
        with contextlib.closing(
            sqlite3.connect(site.plane.settings.database_path, isolation_level=None)
        ) as shell:
            shell.execute("BEGIN IMMEDIATE")
            status, body, again = await _create(site)
            async with site.http.get("/readyz") as ready:
                checks = (await ready.json())["checks"]
            shell.execute("ROLLBACK")
        chat_id = await site.quiet_chat()

    assert (status, body["code"], body["message"], again) == (
        503,
        "database_failed",
        TEXTS[sqlite3.SQLITE_BUSY],
        "1",
    )
    assert (checks["writing"], checks["reading"]) == ("failing", "ok")
    assert chat_id


async def _create(site: Site) -> tuple[int, dict[str, Any], str | None]:
    async with site.http.post(
        f"{API}/chats", json=text("say hello"), headers=bearer(site.tokens["me"])
    ) as answer:
        return answer.status, await answer.json(), answer.headers.get("Retry-After")


@pytest.mark.parametrize("code", [*TEXTS, sqlite3.SQLITE_IOERR | (1 << 8)])
def test_what_passes_is_told_in_words(code: int) -> None:
    """Ours: by SQLite's primary code; everything else is our own mistake, and not told."""
    failure = sqlite3.OperationalError("no words for people")
    failure.sqlite_errorcode = code

    assert explain_fault(sa.exc.OperationalError("SELECT 1", {}, failure)) == TEXTS[code & 0xFF]
    assert explain_fault(failure) is None
    assert explain_fault(sa.exc.OperationalError("", {}, sqlite3.OperationalError("no such table"))) is None


@pytest.mark.slow
async def test_a_power_cut_at_any_byte_leaves_whole_transactions(
    tmp_path: Path, sqlite_template: Path
) -> None:
    """
    SQLite, atomic commit: whatever part of the journal reached the disk, the database is at some commit.

    Steps: let a writer commit; take file and journal as a disk might hold them, the journal cut off or
    with a sector that was never written; open; check every invariant; the older the cut, the fewer commits.
    """
    from tests.integration.chatd.test_backup import storm  # noqa: PLC0415 -- only here

    live = tmp_path / "live" / "chatd.sqlite3"
    live.parent.mkdir()
    shutil.copy(sqlite_template, live)
    async with storm(live) as lines, asyncio.timeout(LIMIT_S):
        for _ in range(60):
            await lines.readline()
    journal = live.with_name(live.name + "-wal").read_bytes()
    rng = random.Random(11)  # noqa: S311 -- a schedule
    # Bytes of the journal before the first that is wrong, and what the database is then.
    found = []
    for cut in sorted(rng.randrange(len(journal) + 1) for _ in range(CUTS)):
        place = tmp_path / str(cut) / "chatd.sqlite3"
        place.parent.mkdir()
        shutil.copy(live, place)
        torn, whole = bytearray(journal[:cut]), cut
        if cut % 2 and cut > 8192:
            whole = cut - 8192
            torn[whole : cut - 4096] = bytes(4096)
        place.with_name(place.name + "-wal").write_bytes(torn)
        found.append((whole, await _look(place)))
    versions = [version for _, version in sorted(found)]

    assert journal
    assert versions == sorted(versions)
    assert len(set(versions)) > 1


async def _look(path: Path) -> int:
    """Check a database; the sum of its chats' versions."""
    database = Database(sqlite_url(path))
    try:
        await database.migrate()
        await database.read(check, {})

        def total(connection: sa.Connection) -> int:
            return int(
                connection.exec_driver_sql(
                    "SELECT coalesce(sum(snapshot_version), 0) FROM chats"
                ).scalar_one()
            )

        return await database.read(total)
    finally:
        await database.close()


async def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    """SQLite, pragma synchronous: FULL has a commit in a journal wait for the disk; NORMAL would not."""
    database = Database(sqlite_url(tmp_path / "x"))

    def modes(connection: sa.Connection) -> list[object]:
        names = ("synchronous", "journal_mode")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names]

    found = await database.write(modes)
    await database.close()

    assert found == [2, "wal"]
