"""Recordings through the daemon's own socket and the command, with a real desktop."""

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import av
import pytest

from agentd.app import Daemon
from agentd.errors import DataDirUnusable
from agentd.settings import AgentdSettings
from tests.integration.agentd.command import Command, Running

# Seconds. Generous: other tests share the machine.
LIMIT_S = 40
BASE = "/api/v0/recordings"


@pytest.fixture
async def daemon(runtime_dir: Path) -> AsyncIterator[Daemon]:
    """A daemon that listens."""
    daemon = Daemon(AgentdSettings(runtime_dir=runtime_dir, desktop_backend="xvnc"))
    await daemon.start()
    yield daemon
    await daemon.stop()


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[aiohttp.ClientSession]:
    """A client on the daemon's socket."""
    connector = aiohttp.UnixConnector(path=str(daemon.socket_path))
    timeout = aiohttp.ClientTimeout(total=LIMIT_S)
    async with aiohttp.ClientSession("http://agentd", connector=connector, timeout=timeout) as session:
        yield session


async def _ask(client: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async with client.request(method, path, json=body) as response:
        return response.status, await response.json()


def _frames(film: bytes) -> int:
    with av.open(io.BytesIO(film)) as file:
        return sum(1 for _ in file.decode(video=0))


async def test_recording_from_start_to_film(client: aiohttp.ClientSession) -> None:
    """Spec 2.4: start, stop at once, the film in ranges, the thumbnail, and ready in the end."""
    _, started = await _ask(client, "POST", BASE, {})
    where = f"{BASE}/{started['id']}"
    _, stopped = await _ask(client, "POST", f"{where}/stop", {})
    async with asyncio.timeout(LIMIT_S):
        while (await _ask(client, "GET", where))[1]["state"] != "ready":  # noqa: ASYNC110 -- asked over HTTP
            await asyncio.sleep(0.05)
    _, listed = await _ask(client, "GET", BASE)
    async with client.get(f"{where}/film") as response:
        film, kind = await response.read(), response.content_type
    async with client.get(f"{where}/film", headers={"Range": "bytes=4-7"}) as response:
        part, status = await response.read(), response.status
    async with client.get(f"{where}/thumbnail") as response:
        picture = await response.read()

    assert (started["state"], stopped["state"], stopped["reason"]) == ("recording", "processing", "asked")
    assert [info["id"] for info in listed] == [started["id"]]
    assert kind == "video/mp4"
    assert _frames(film) >= 2
    assert (status, part) == (206, b"ftyp")
    assert picture[:2] == b"\xff\xd8"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", f"{BASE}/00000000-0000-0000-0000-000000000000/stop", 404, "not_found"),
        ("POST", f"{BASE}/junk/stop", 400, "bad_request"),
        ("GET", f"{BASE}/junk", 400, "bad_request"),
    ],
)
async def test_wrong_id_is_told(
    client: aiohttp.ClientSession, method: str, path: str, status: int, code: str
) -> None:
    """Spec: row 35."""
    told = await _ask(client, method, path, {})

    assert (status, code) == (told[0], told[1]["code"])


async def test_data_directory_has_one_daemon(daemon: Daemon, tmp_path: Path) -> None:
    """Ours: two would take each other's recordings and calls for their own."""
    other = AgentdSettings(runtime_dir=tmp_path / "r", data_dir=daemon.settings.data_dir)
    with pytest.raises(DataDirUnusable, match="another agentd"):
        await Daemon(other).start()


def test_command_films_and_saves(runtime_dir: Path) -> None:
    """Ours: start, list, stop with the film in a file."""
    command = Command(runtime_dir)
    running = Running(command, "daemon", AGENTD_DESKTOP_BACKEND="xvnc")
    try:
        while (started := command("desktop", "record", "start")).code == 4:
            assert running.process.poll() is None
        listed = command("desktop", "record", "list")
        stopped = command("desktop", "record", "stop", "--save", "film.mp4")
        nothing = command("desktop", "record", "stop")
    finally:
        running.close()

    assert (started.code, listed.code, stopped.code) == (0, 0, 0), (started, listed, stopped)
    assert started.out.strip() in listed.out
    assert "asked" in stopped.out
    assert _frames((runtime_dir / "film.mp4").read_bytes()) >= 2
    assert (nothing.code, "nothing is being recorded" in nothing.err) == (1, True)
