"""Replicas upgraded one after the other, while people chat: this release and one that comes after it."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import sqlalchemy as sa

from chatd.store import accounts
from chatd.store.database import Database
from chatd.store.migrating import known_migrations
from chatd.store.store import utc_now
from tests.integration.chatd.http.site import API, bearer, text
from tests.integration.chatd.replicas.conftest import KEY
from tests.postgres import PostgresServer
from tests.support.cluster.members import ROOT, Replica
from tests.support.cluster.proxy import CutProxy

HEAD = known_migrations()[-1].revision
ADDED, ENDED = f"{int(HEAD) + 1:04}", f"{int(HEAD) + 2:04}"
# A column that the next release writes; only once the old one is gone can the database insist on it.
MIGRATIONS = {
    ADDED: ("pre", None, HEAD, 'op.add_column("chats", sa.Column("mood", sa.Text(), nullable=True))'),
    ENDED: (
        "post",
        ADDED,
        ADDED,
        """op.execute("UPDATE chats SET mood = 'unknown' WHERE mood IS NULL")
    op.alter_column("chats", "mood", nullable=False)""",
    ),
}
TEMPLATE = '''"""A step of the next release."""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"
branch_labels = None
depends_on = None
phase = "{phase}"
needs = {needs!r}


def upgrade() -> None:
    {change}
'''
PLAN_MODE = '    sa.Column("plan_mode", _Text),\n'
# Chats that people have had in every phase before it ends.
ENOUGH = 6


@pytest.fixture
def next_release(tmp_path: Path) -> Path:
    """A directory with a chatd that has two more migrations, and a column that it writes."""
    place = tmp_path / "next"
    shutil.copytree(ROOT / "chatd", place / "chatd", ignore=shutil.ignore_patterns("__pycache__", "page"))
    for revision, (phase, needs, before, change) in MIGRATIONS.items():
        step = TEMPLATE.format(revision=revision, before=before, phase=phase, needs=needs, change=change)
        (place / "chatd/store/migrations/versions" / f"{revision}_next.py").write_text(step)
    schema = place / "chatd/store/schema.py"
    before = schema.read_text()
    assert PLAN_MODE in before
    schema.write_text(
        before.replace(PLAN_MODE, PLAN_MODE + '    sa.Column("mood", _Text, default="calm"),\n', 1)
    )
    return place


@pytest.fixture
def empty_url(postgres: PostgresServer) -> Iterator[str]:
    """A database without any table."""
    url = postgres.create()
    yield url
    postgres.drop(url)


class People:
    """Somebody who always starts another chat, at any replica that is there, and waits for its end."""

    def __init__(self, replicas: list[Replica], token: str, http: aiohttp.ClientSession) -> None:
        self._replicas, self._http = replicas, http
        self._headers = bearer(token)
        self.asked: list[str] = []
        self.answered: dict[str, str] = {}

    async def go_on(self) -> None:
        """For ever."""
        while True:
            for replica in self._replicas:
                if replica.is_up:
                    await self._chat(replica, f"word-{len(self.asked)}")
            await asyncio.sleep(0.02)

    async def _chat(self, replica: Replica, word: str) -> None:
        # A replica that stops refuses new connections; a request that it took is answered.
        with_key = {**self._headers, "Idempotency-Key": word}
        try:
            async with self._http.post(
                f"{replica.url}{API}/chats", json=text(f"say {word}"), headers=with_key
            ) as answer:
                if answer.status == 503:
                    return
                assert answer.status == 201, await answer.text()
                chat_id = (await answer.json())["id"]
        except aiohttp.ClientConnectionError:
            return
        self.asked.append(chat_id)
        self.answered[chat_id] = word

    async def enough(self) -> None:
        """Wait for some more chats."""
        wanted = len(self.asked) + ENOUGH
        async with asyncio.timeout(60):
            while len(self.asked) < wanted:  # noqa: ASYNC110 -- the list is filled by requests
                await asyncio.sleep(0.05)

    async def said(self, replica: Replica, chat_id: str) -> list[str]:
        """Who said what in a chat that has come to rest."""
        async with asyncio.timeout(60):
            while True:
                async with self._http.get(
                    f"{replica.url}{API}/chats/{chat_id}", headers=self._headers
                ) as answer:
                    if (await answer.json())["status"] == "waiting":
                        break
                await asyncio.sleep(0.05)
        path = f"{replica.url}{API}/chats/{chat_id}/messages"
        async with self._http.get(path, headers=self._headers) as answer:
            messages = (await answer.json())["messages"]
        return [f"{one['role']}: {part['text']}" for one in messages for part in one["content"]]


def _migrate(code: Path, url: str, data: Path, phase: str) -> None:
    command = "from chatd.cli import main; main()"
    environment = {"PATH": os.environ["PATH"], "HOME": str(data), "LOGNAME": "tester"}
    subprocess.run(
        [sys.executable, "-c", command, "migrate", "--database", url, "--data", str(data), "--phase", phase],
        cwd=code,
        env=environment,
        check=True,
        capture_output=True,
    )


async def _make_token(url: str) -> str:
    database = Database(url)

    def make(connection: sa.Connection) -> str:
        user_id = accounts.ensure_user(connection, "somebody", now=utc_now())
        return accounts.issue_token(connection, "api", user_id, now=utc_now())

    token = await database.write(make)
    await database.close()
    return token


async def _moods(url: str) -> set[str]:
    database = Database(url)
    found = await database.read(
        lambda connection: set(connection.exec_driver_sql("SELECT DISTINCT mood FROM chats").scalars())
    )
    await database.close()
    return found


async def _start_two(stack: AsyncExitStack, place: Path, url: str) -> list[Replica]:
    replicas = []
    for name in ("a", "b"):
        # Nothing is cut here; a replica wants to be told a way.
        proxy = CutProxy(0)
        settings = {
            "CHATD_DATABASE": url,
            "CHATD_REHEARSAL": "always",
            "CHATD_AUTO_TITLES": "false",
            "CHATD_SECRET_KEYS": f'["{KEY}"]',
            "CHATD_REPLICA_INTERVAL_S": "0.3",
            "CHATD_REPLICA_TIMEOUT_S": "2",
        }
        replica = Replica(name, place, settings, proxy, has_fake_clock=False)
        await replica.peers.start()
        stack.push_async_callback(replica.peers.close)
        stack.push_async_callback(replica.end)
        await replica.start()
        assert replica.is_up
        replicas.append(replica)
    return replicas


async def _restart(replica: Replica, code: Path) -> None:
    await replica.end(15)
    replica.code = code
    await replica.start()


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_an_upgrade_one_by_one_is_noticed_by_nobody(
    tmp_path: Path, empty_url: str, next_release: Path
) -> None:
    """
    Issue: rolling upgrade, old code on the new schema.

    Steps: two replicas of this release; the next release's pre migrations; one old replica starts again; one
    after the other becomes new; the post migrations. Somebody starts chats all the time.
    """
    async with AsyncExitStack() as stack:
        first, second = replicas = await _start_two(stack, tmp_path, empty_url)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        people = People(replicas, await _make_token(empty_url), http)
        chatting = asyncio.create_task(people.go_on())
        await people.enough()
        await asyncio.to_thread(_migrate, next_release, empty_url, tmp_path, "pre")
        await people.enough()
        await _restart(first, ROOT)
        assert first.is_up
        await people.enough()
        await _restart(second, next_release)
        assert second.is_up
        await people.enough()
        await _restart(first, next_release)
        await asyncio.to_thread(_migrate, next_release, empty_url, tmp_path, "post")
        await people.enough()
        await _restart(second, ROOT)
        is_refused, log = not second.is_up, (tmp_path / "b.log").read_text()
        await people.enough()
        chatting.cancel()
        await asyncio.gather(chatting, return_exceptions=True)
        moods = await _moods(empty_url)
        heard = {chat_id: await people.said(first, chat_id) for chat_id in people.asked}

    wanted = {
        chat_id: [f"user: say {word}", f"assistant: {word}"] for chat_id, word in people.answered.items()
    }
    assert heard == wanted
    # Both releases have written, the old one on the new schema too.
    assert moods == {"calm", "unknown"}
    assert is_refused
    assert f"is for newer code (at least {ADDED}; this is {HEAD}): upgrade this chatd" in log
