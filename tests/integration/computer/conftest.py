"""Real desktops for integration tests; nothing is taken from the environment of the test run."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from computer.session import DesktopSession, SessionSettings


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
