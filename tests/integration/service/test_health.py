"""Health and readiness: who asks learns the truth, at the cost of one look a second."""

import asyncio
import threading
from pathlib import Path

import aiohttp
import pytest
import sqlalchemy as sa

from agentd.app import Daemon
from agentd.cli.app import app as agentd_app
from agentd.settings import AgentdSettings
from chatd.routes import health
from chatd.routes.health import Readiness
from chatd.store.database import Database
from chatd.store.store import Store
from tests.databases import NewDatabase

LIMIT_S = 30


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FRESH_S", -1.0)


async def test_every_part_is_looked_at(new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a writer that is held up is slow, a database that is gone fails, and so does work that ended."""
    database = Database(new_database())
    store = Store(database, publish=lambda _: None)
    readiness = Readiness(store)
    work = asyncio.ensure_future(asyncio.Event().wait())
    readiness.watch(work)  # type: ignore[arg-type]
    well = await readiness.look()
    monkeypatch.setattr(health, "SLOW_S", 0.2)
    go_on = threading.Event()
    # As many as there are threads that write.
    holds = [asyncio.ensure_future(store.write(lambda _: go_on.wait(LIMIT_S))) for _ in range(8)]
    held_up = await readiness.look()
    go_on.set()
    await asyncio.gather(*holds)
    monkeypatch.setattr(health, "SLOW_S", LIMIT_S)
    again = await readiness.look()
    work.cancel()
    await asyncio.wait({work})
    readiness.is_stopping = True
    ended = await readiness.look()
    await readiness.close()
    await database.close()

    parts = ("process", "reading", "writing", "work")
    assert well == again == dict.fromkeys(parts, "ok")
    assert held_up == well | {"writing": "slow"}
    assert ended == well | {"work": "stopped", "process": "stopped"}


async def test_a_database_that_fails_is_told_without_its_words() -> None:
    """Ours: the answer is public, the reason is for the log."""

    class Broken:
        async def read(self, _: object) -> None:
            raise sa.exc.OperationalError("SELECT secret", {}, Exception("host db.internal is down"))

        write = read

    readiness = Readiness(Broken())  # type: ignore[arg-type]
    found = await readiness.look()

    assert found == {"process": "ok", "reading": "failing", "writing": "failing", "work": "ok"}


async def test_many_questions_are_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a flood of probes costs the database one question a second."""
    monkeypatch.setattr(health, "FRESH_S", 3600.0)
    asked = 0

    class Counting:
        async def read(self, _: object) -> None:
            nonlocal asked
            asked += 1

        write = read

    readiness = Readiness(Counting())  # type: ignore[arg-type]
    await asyncio.gather(*(readiness.look() for _ in range(100)))

    assert asked == 2


async def test_a_daemon_tells_of_its_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: the same words for `agentd health`, the local API Prometheus; 503 while one is not well."""
    daemon = Daemon(
        AgentdSettings(
            runtime_dir=tmp_path / "r",
            data_dir=tmp_path / "d",
            working_dir=tmp_path,
            wait_ready=True,
            control_url="http://127.0.0.1:9",
        )
    )
    await daemon.start()
    try:
        connector = aiohttp.UnixConnector(path=str(daemon.socket_path))
        async with aiohttp.ClientSession(connector=connector) as http:
            async with http.get("http://agentd/api/v0/health/parts") as answer:
                status, body = answer.status, await answer.json()
            async with http.get("http://agentd/metrics") as answer:
                figures = await answer.text()
            async with http.get("http://agentd/api/v0/health") as answer:
                alive = await answer.json()
    finally:
        await daemon.stop()

    assert (status, body["status"], alive) == (503, "degraded", {"status": "ok"})
    assert body["checks"] == {"link": "down", "workspace": "starting", "desktops": "ok", "work": "ok"}
    assert 'agentd_part{part="link",state="down"} 1.0' in figures
    assert "process_resident_memory_bytes" in figures


def test_nobody_to_ask_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: exit code 4 when no daemon answers."""
    monkeypatch.setenv("AGENTD_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        agentd_app(["health", "--json"])

    assert ended.value.code == 4
    assert '"code": "not_running"' in capsys.readouterr().out
