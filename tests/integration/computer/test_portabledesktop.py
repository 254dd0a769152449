"""The portabledesktop back-end, on a command of the same contract."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import psutil
import pytest

from computer.errors import StartFailed
from computer.session import DesktopSession, SessionSettings, portabledesktop
from computer.session.sockets import FIRST_DISPLAY, free_port
from computer.wire import ComputerCall

LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
# Seconds. Generous: other tests share the machine.
LIMIT_S = 40


@pytest.fixture
def command(tmp_path: Path) -> str:
    """An executable that behaves like portabledesktop."""
    script = tmp_path / "portabledesktop"
    stand_in = Path(__file__).parents[2] / "portabledesktop.py"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {stand_in} "$@"\n')
    script.chmod(0o755)
    return str(script)


def _session(runtime_dir: Path, command: str | None, environment: dict[str, str]) -> DesktopSession:
    settings = SessionSettings(runtime_dir=runtime_dir, portabledesktop=command, width=800, height=600)
    return DesktopSession(settings, base_environment=environment)


async def test_auto_takes_portabledesktop_where_it_is_found(
    runtime_dir: Path, command: str, environment: dict[str, str]
) -> None:
    """Design: the CLI when it is installed or configured; spec defect 11."""
    session = _session(runtime_dir, command, environment)
    try:
        async with asyncio.timeout(LIMIT_S):
            result = await session.perform(LOOK)
            reader, writer = await session.connect_rfb()
            greeting = await reader.readexactly(12)
            writer.close()
            await writer.wait_closed()
        status = session.status()
    finally:
        await session.stop()

    assert (status.backend, status.state) == ("portabledesktop", "running")
    assert result.screenshot is not None
    assert result.screenshot.native_size == (800, 600)
    assert greeting.startswith(b"RFB 003.")


async def test_its_open_defaults_are_closed(
    runtime_dir: Path, command: str, environment: dict[str, str]
) -> None:
    """Spec: defect 1."""
    session = _session(runtime_dir, command, environment)
    try:
        async with asyncio.timeout(LIMIT_S):
            await session.ensure_running()
        server = psutil.Process(session.status().pids["xvnc"])
        addresses = {connection.laddr.ip for connection in server.net_connections(kind="inet")}
    finally:
        await session.stop()

    assert addresses <= {"127.0.0.1", "::1"}
    assert addresses


async def test_stop_leaves_nothing_of_it(
    runtime_dir: Path, command: str, environment: dict[str, str]
) -> None:
    """Spec: defect 12."""
    session = _session(runtime_dir, command, environment)
    async with asyncio.timeout(LIMIT_S):
        await session.ensure_running()
        pids = session.status().pids
        await session.stop()

    assert set(pids) == {"xvnc", "openbox"}
    alive = [psutil.Process(pid) for pid in pids.values() if psutil.pid_exists(pid)]
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert not (runtime_dir / "portabledesktop.json").exists()


async def test_death_of_its_server_is_noticed(
    runtime_dir: Path, command: str, environment: dict[str, str]
) -> None:
    """Spec: row 40 and defect 12, on processes that are not our children."""
    session = _session(runtime_dir, command, environment)
    try:
        async with asyncio.timeout(LIMIT_S):
            await session.ensure_running()
            os.kill(session.status().pids["xvnc"], signal.SIGKILL)
            result = await session.perform(LOOK)
    finally:
        await session.stop()

    assert result.screenshot is not None


async def test_number_and_port_are_ours_and_another_is_tried_where_one_is_taken(
    runtime_dir: Path, command: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Required: displays from 10 up, whatever is free below; a port that was taken meanwhile is no end."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter((taken.getsockname()[1], free_port()))
        monkeypatch.setattr(portabledesktop, "free_port", lambda: next(ports))
        session = _session(runtime_dir, command, environment)
        try:
            async with asyncio.timeout(LIMIT_S):
                result = await session.perform(LOOK)
            status = session.status()
        finally:
            await session.stop()

    assert result.screenshot is not None
    assert status.display is not None
    assert int(status.display[1:]) >= FIRST_DISPLAY
    assert next(ports, None) is None


async def test_failure_tells_what_the_command_said(
    runtime_dir: Path, command: str, environment: dict[str, str]
) -> None:
    """Ours: its own words are in the error."""
    session = _session(runtime_dir, command, environment | {"STAND_IN_FAILS": "1"})

    with pytest.raises(StartFailed, match="the runtime is broken"):
        await session.ensure_running()
    await session.stop()


async def test_command_that_is_missing_is_diagnosed(runtime_dir: Path, environment: dict[str, str]) -> None:
    """Ours: asked for by name, it is not replaced in silence."""
    settings = SessionSettings(
        runtime_dir=runtime_dir, backend="portabledesktop", portabledesktop="/nonexistent/portabledesktop"
    )
    session = DesktopSession(settings, base_environment=environment)

    with pytest.raises(StartFailed, match="missing: install portabledesktop"):
        await session.ensure_running()
    await session.stop()
