"""One suite for everything that makes desktops: our own Xvnc, and the portabledesktop command."""

import asyncio
import os
import select
import shutil
import signal
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import disconnect
from computer.errors import StartFailed
from computer.geometry import Size
from computer.session import DesktopSession, SessionSettings
from computer.session.exposure import listeners_of, takes_strangers
from computer.wire import ComputerCall

LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
STAND_IN = Path(__file__).parents[2] / "portabledesktop.py"
# Seconds. Generous: other tests share the machine.
LIMIT_S = 60
NOBODY = 65_534
LOOPBACK = {"127.0.0.1", "::1"}


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    directory = Path(tempfile.mkdtemp(prefix="desk-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def environment(runtime_dir: Path) -> dict[str, str]:
    """A path, a home, and the poorest locale there is."""
    return {"PATH": os.environ["PATH"], "HOME": str(runtime_dir / "home"), "LANG": "C"}


@pytest.fixture(params=["xvnc", "portabledesktop"])
def settings(request: pytest.FixtureRequest, runtime_dir: Path) -> SessionSettings:
    """Settings of each back-end."""
    command = runtime_dir / "portabledesktop"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    command.chmod(0o755)
    return SessionSettings(
        name="test", runtime_dir=runtime_dir / "s", backend=request.param, portabledesktop=str(command),
        width=800, height=600, dpi=120,
    )  # fmt: skip


@pytest.fixture
async def session(settings: SessionSettings, environment: dict[str, str]) -> AsyncIterator[DesktopSession]:
    """A running desktop."""
    session = DesktopSession(settings, base_environment=environment)
    async with asyncio.timeout(LIMIT_S):
        await session.ensure_running()
    yield session
    await session.stop()


def _display(session: DesktopSession) -> tuple[str, bytes | None]:
    assert session._live is not None
    return session._live.desktop.display, session._live.desktop.cookie


def _kill(pid: int) -> None:
    watch = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([watch], [], [])
    os.close(watch)


def _lives(pid: int) -> bool:
    """Whether it runs; what was no child of ours may wait for its parent."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def _holds(number: str, pid: int) -> bool:
    """Whether the lock of a display is still that of a server; others take numbers meanwhile."""
    try:
        return int(Path(f"/tmp/.X{number}-lock").read_text()) == pid
    except (OSError, ValueError):
        return False


async def _shake_hands(session: DesktopSession) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A viewer of RFB 3.8 that does not ask for sharing, up to the server's greeting of the desktop."""
    reader, writer = await session.connect_rfb()
    assert (await reader.readexactly(12)).startswith(b"RFB 003.")
    writer.write(b"RFB 003.008\n")
    types = await reader.readexactly((await reader.readexactly(1))[0])
    assert 1 in types
    writer.write(b"\x01")
    assert await reader.readexactly(4) == bytes(4)
    writer.write(b"\x00")
    header = await reader.readexactly(24)
    await reader.readexactly(int.from_bytes(header[20:], "big"))
    return reader, writer


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def test_it_comes_up_as_asked_under_the_poorest_locale(
    session: DesktopSession, settings: SessionSettings
) -> None:
    """Required: size, DPI, a greeting and a test capture; with LANG=C."""
    result = await session.perform(LOOK)
    connection = connect(*_display(session))
    screen = connection.screen()
    inches = screen.width_in_mms / 25.4
    disconnect(connection)

    assert session.status().state == "running"
    assert session.status().backend == settings.backend
    assert result.screenshot is not None
    assert result.screenshot.native_size == (800, 600)
    assert 800 / inches == pytest.approx(settings.dpi, rel=0.02)
    assert session.environment()["LANG"] == "C.UTF-8"


async def test_it_is_closed_to_other_machines_and_to_whoever_lacks_the_cookie(
    session: DesktopSession, settings: SessionSettings
) -> None:
    """Required: looked up in the kernel, and tried; BUGS 72."""
    pid = session.status().pids["xvnc"]
    listeners = listeners_of(pid)
    tcp = {listener.address for listener in listeners if listener.kind == "tcp"}

    assert tcp <= (LOOPBACK if settings.backend == "portabledesktop" else set())
    assert not any(listener.address.startswith("@") for listener in listeners)
    assert not takes_strangers(int(_display(session)[0][1:]))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_gets_neither_pixels_nor_input(
    session: DesktopSession, settings: SessionSettings
) -> None:
    """Required: tried as another user, by the X socket, the RFB socket and the cookie file."""
    script = (
        "import socket, struct, sys\n"
        "def tried(path, hello, n):\n"
        "    s = socket.socket(socket.AF_UNIX); s.settimeout(20)\n"
        "    try: s.connect(path); s.sendall(hello); return s.recv(n)\n"
        "    except OSError as e: return type(e).__name__\n"
        "x, directory = sys.argv[1:]\n"
        "print(tried(x, struct.pack('<BxHHHHxx', ord('l'), 11, 0, 0, 0), 1))\n"
        "print(tried(directory + '/rfb.sock', b'', 12))\n"
        "try: print(open(directory + '/Xauthority', 'rb').read())\n"
        "except OSError as e: print(type(e).__name__)\n"
    )
    directory = settings.runtime_dir
    socket_path = f"/tmp/.X11-unix/X{_display(session)[0][1:]}"
    stranger = await asyncio.create_subprocess_exec(
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-I", "-c",
        script, socket_path, str(directory), stdout=asyncio.subprocess.PIPE, cwd="/",
    )  # fmt: skip
    async with asyncio.timeout(LIMIT_S):
        answers = (await stranger.communicate())[0].decode().split("\n")

    refused = "b'\\x00'"
    assert answers[:3] == [refused, "PermissionError", "PermissionError"]


async def test_aborted_handshakes_lock_nobody_out(session: DesktopSession) -> None:
    """Required: Xvnc counts them, and then refuses everybody."""
    async with asyncio.timeout(LIMIT_S):
        for _ in range(40):
            _, writer = await session.connect_rfb()
            await _hang_up(writer)
            reader, writer = await session.connect_rfb()
            await reader.readexactly(12)
            writer.write(b"RFB 003.008\n")
            await _hang_up(writer)
        _, writer = await _shake_hands(session)
        await _hang_up(writer)


async def test_viewer_can_neither_resize_the_desktop_nor_throw_another_out(session: DesktopSession) -> None:
    """Required: up to 32768x32768 otherwise; and a viewer that does not ask for sharing ends the others."""
    async with asyncio.timeout(LIMIT_S):
        first, first_writer = await _shake_hands(session)
        second, second_writer = await _shake_hands(session)
        encodings = struct.pack(">BxHii", 2, 2, -308, 0)
        screen = struct.pack(">BxHHBxIHHHHI", 251, 1600, 1200, 1, 0, 0, 0, 1600, 1200, 0)
        update = struct.pack(">BBHHHH", 3, 0, 0, 0, 1, 1)
        for reader, writer in ((second, second_writer), (first, first_writer)):
            writer.write(encodings + screen + update)
            assert (await reader.readexactly(1)) == b"\0"
        display = X11Display(*_display(session))
        size = display.size()
        display.close()
        for writer in (first_writer, second_writer):
            await _hang_up(writer)

    assert size == Size(width=800, height=600)


async def test_screen_never_blanks(session: DesktopSession) -> None:
    """BUGS 39: no screensaver."""
    connection = connect(*_display(session))
    saver = connection.get_screen_saver()
    disconnect(connection)

    assert saver.timeout == 0


async def test_dead_window_manager_is_started_again_alone(session: DesktopSession) -> None:
    """Required: windows and programs stay; a server that loses its last client opens to nobody."""
    async with asyncio.timeout(LIMIT_S):
        before = session.status().pids
        _kill(before["openbox"])
        assert not takes_strangers(int(_display(session)[0][1:]))
        result = await session.perform(LOOK)
    after = session.status().pids

    assert after["xvnc"] == before["xvnc"]
    assert after["openbox"] != before["openbox"]
    assert any("openbox ended" in warning for warning in result.warnings)


async def test_dead_server_is_replaced_and_the_next_result_names_it(session: DesktopSession) -> None:
    """BUGS 49, 66."""
    async with asyncio.timeout(LIMIT_S):
        before = session.status().pids
        _kill(before["xvnc"])
        at_once = session.status().state
        result = await session.perform(LOOK)

    assert at_once != "running"
    assert result.error is None
    assert any("The desktop was restarted" in warning for warning in result.warnings)
    assert not any(_lives(pid) for pid in before.values())


async def test_stop_leaves_nothing(session: DesktopSession, settings: SessionSettings) -> None:
    """Spec: defect 12; processes, lock, sockets, cookie, state file."""
    number, pids = _display(session)[0][1:], session.status().pids
    await session.stop()

    assert not any(_lives(pid) for pid in pids.values())
    assert not _holds(number, pids["xvnc"])
    assert [path.name for path in settings.runtime_dir.iterdir() if path.suffix != ".log"] == []


async def test_open_defaults_that_cannot_be_closed_are_refused(
    settings: SessionSettings, environment: dict[str, str]
) -> None:
    """Required: verified by a scan, else the session is refused with the reason, and nothing is left."""
    if settings.backend == "xvnc":
        wrapper = settings.runtime_dir.parent / "Xvnc"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("Xvnc")} "$@" -ac\n')
        wrapper.chmod(0o755)
        environment = environment | {"PATH": f"{wrapper.parent}:{environment['PATH']}"}
    else:
        environment = environment | {"STAND_IN_DEAF": "1"}
    session = DesktopSession(settings, base_environment=environment)
    with pytest.raises(StartFailed, match="it is not used"):
        await session.ensure_running()
    mark = f"COMPUTER_SESSION={session.environment()['COMPUTER_SESSION']}".encode()

    assert session.status().state == "failed"
    assert [pid for pid in psutil.pids() if mark in _environ(pid)] == []
    await session.stop()


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
