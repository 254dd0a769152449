"""Real desktops for integration tests; nothing is taken from the environment of the test run."""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from computer.display.x11 import connect
from computer.display.x11.connection import disconnect
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall
from tests.integration.computer import event_log
from tests.integration.computer.event_log import EventLog


@pytest.fixture
def environment() -> dict[str, str]:
    """What programs in a session start from: a path and a home, no display."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    directory = Path(tempfile.mkdtemp(prefix="desk-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
async def session(runtime_dir: Path, environment: dict[str, str]) -> AsyncIterator[DesktopSession]:
    """A desktop on our own back-end; started by its first use."""
    settings = SessionSettings(name="test", runtime_dir=runtime_dir, backend="xvnc")
    session = DesktopSession(settings, base_environment=environment)
    yield session
    await session.stop()


@pytest.fixture
async def log(session: DesktopSession, runtime_dir: Path) -> AsyncIterator[EventLog]:
    """A window that covers the screen, takes all input and logs it; the pointer is in the middle."""
    await session.ensure_running()
    assert session._live is not None
    path = runtime_dir / "events.jsonl"
    await session.open([sys.executable, event_log.__file__, str(path)])
    probe = connect(session._live.desktop.display, session._live.desktop.cookie)
    log = EventLog(path, probe)
    await log.ready()
    to_the_middle = {"action": "mouse_move", "coordinate": [640, 400]}
    await session.perform(ComputerCall.model_validate({"actions": [to_the_middle], "screenshot": False}))
    await log.take()
    yield log
    disconnect(probe)
