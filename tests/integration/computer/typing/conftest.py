"""Running desktops, a terminal to type into, and a second client that looks on."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from computer.display.x11 import X11Display
from computer.display.x11.connection import XConnection, connect, disconnect
from computer.session import DesktopSession
from tests.integration.computer.typing.programs import Program


@pytest.fixture
async def desktop(session: DesktopSession) -> DesktopSession:
    """A desktop that runs already."""
    await session.ensure_running()
    return session


@pytest.fixture
def other(desktop: DesktopSession) -> Iterator[XConnection]:
    """A second client of it."""
    assert desktop._live is not None
    connection = connect(desktop._live.desktop.display, desktop._live.desktop.cookie)
    yield connection
    disconnect(connection)


@pytest.fixture
def display(desktop: DesktopSession) -> Iterator[X11Display]:
    """A display of the test's own on it."""
    assert desktop._live is not None
    display = X11Display(desktop._live.desktop.display, desktop._live.desktop.cookie)
    yield display
    display.close()


@pytest.fixture
async def terminal(desktop: DesktopSession, tmp_path: Path) -> AsyncIterator[Program]:
    """A terminal with the focus, whose input goes to a file."""
    program = Program(desktop, "xterm", tmp_path)
    await program.start()
    yield program
    program.close()
