"""A whole life of `agentd up`, and what it leaves: nothing."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.display_left import left_of_display
from tests.integration.agentd.command import Command, Running
from tests.integration.agentd.control_plane import control_plane

pytestmark = pytest.mark.slow

# Seconds that stopping may take on a busy machine; alone it takes a tenth.
STOP_LIMIT_S = 10


@pytest.fixture
def command(runtime_dir: Path) -> Command:
    """A command in an empty home."""
    return Command(runtime_dir)


@pytest.fixture
def up(command: Command) -> Iterator[Running]:
    """`agentd up`, starting."""
    running = Running(command, "up", "--json", "--port", "0")
    yield running
    running.close()


def _left(command: Command, display: str = ":none", server_pid: int = 0) -> list[str]:
    """Sockets, run files and locks that are still there."""
    paths = [
        command.runtime_dir / "agentd.sock",
        command.runtime_dir / "up.json",
        command.runtime_dir / "desktop-main" / "rfb.sock",
        command.runtime_dir / "desktop-main" / "Xauthority",
        command.home / "state" / "agentd" / "lock",
    ]
    left = [*left_of_display(display, server_pid), *(path for path in paths if path.exists())]
    return [str(path) for path in left]


def _lives(process: psutil.Process) -> bool:
    """Whether it still runs; a grandchild may wait for init to collect it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _bind(api: str) -> None:
    """Take the port that *api* had: it must be free at once."""
    port = urlsplit(api).port
    assert port
    socket.create_server(("127.0.0.1", port)).close()


def test_interrupt_leaves_nothing(command: Command, up: Running) -> None:
    """
    Ours: counted, not believed.

    Steps: start; one action; one terminal; Ctrl-C; count processes, files and the port.
    """
    info = up.read_json()
    acted = command("desktop", "do", '{"action":"mouse_move","coordinate":[10,10]}', "--json")
    opened = command("desktop", "open", "--json", "--", "xterm")
    status = json.loads(command("desktop", "status", "--json").out)[0]
    children = psutil.Process(up.process.pid).children(recursive=True)
    before = _left(command, status["display"], status["pids"]["xvnc"])

    code = up.interrupt(STOP_LIMIT_S)

    assert (acted.code, opened.code, code) == (0, 0, 0)
    assert info["pid"] == up.process.pid
    assert len(children) >= 3
    assert len(before) == 7
    assert [child for child in children if _lives(child)] == []
    assert _left(command, status["display"], status["pids"]["xvnc"]) == []
    _bind(info["api"])


def test_interrupt_while_it_starts_leaves_nothing(command: Command, up: Running) -> None:
    """Ours: cancellation at any line; as soon as there is something to leave."""
    lock = command.home / "state" / "agentd" / "lock"
    deadline = time.monotonic() + STOP_LIMIT_S * 3
    while not lock.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    up.interrupt(STOP_LIMIT_S)

    assert _left(command) == []


def test_killed_up_is_replaced_by_the_next(command: Command, up: Running) -> None:
    """Ours: a crash leaves files, and the next start does not mind them."""
    up.read_json()
    up.process.kill()
    up.process.wait(STOP_LIMIT_S)
    assert (command.runtime_dir / "up.json").exists()
    second = Running(command, "up", "--json", "--port", "0")
    try:
        assert second.read_json()["pid"] == second.process.pid
        assert second.interrupt(STOP_LIMIT_S) == 0
    finally:
        second.close()


async def test_daemon_whose_token_is_refused_ends(command: Command) -> None:
    """Ours: exit 3, since systemd should not hide it behind restarts of the link."""
    async with control_plane() as plane:
        variables = {"AGENTD_CONTROL_URL": plane.url, "AGENTD_AGENT_TOKEN": "another"}
        ended = await asyncio.to_thread(command, "daemon", **variables)

    assert ended.code == 3
    assert "token" in ended.err
    assert "Traceback" not in ended.err
    assert _left(command) == []


def test_daemon_alone_stops_on_interrupt(command: Command) -> None:
    """Ours: exit 0; no control plane is needed for the local API."""
    daemon = Running(command, "daemon")
    try:
        deadline = time.monotonic() + STOP_LIMIT_S * 3
        while not (command.runtime_dir / "agentd.sock").exists() and time.monotonic() < deadline:
            time.sleep(0.005)

        assert daemon.interrupt(STOP_LIMIT_S) == 0
    finally:
        daemon.close()
    assert _left(command) == []
