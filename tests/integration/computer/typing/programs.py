"""Real programs that are typed into, and what they hold afterwards."""

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

from Xlib import X

from computer.display import Typed
from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import disconnect
from computer.session import DesktopSession
from tests.browser import ARGUMENTS, find_browser

TARGETS = Path(__file__).parent / "targets"
SYSTEM_PYTHON = "/usr/bin/python3"
# What a target needs, by its name: a distribution may lack it.
NEEDS = {
    "tk": "import tkinter",
    "late": "import tkinter",
    "gtk3": "import gi; gi.require_version('Gtk', '3.0'); from gi.repository import Gtk",
    "gtk4": "import gi; gi.require_version('Gtk', '4.0'); from gi.repository import Gtk",
    "qt6": "import PyQt6.QtWidgets",
}
PROGRAMS = ("xterm", "tk", "gtk3", "gtk4", "qt6", "chromium")
# Seconds for a program to start, and for text to arrive. Generous: other tests share the machine.
START_LIMIT_S = 40
ARRIVE_LIMIT_S = 8


def is_available(name: str) -> bool:
    """Whether the program can run here."""
    if name == "xterm":
        return shutil.which("xterm") is not None
    if name == "chromium":
        return find_browser() is not None
    return (
        subprocess.run([SYSTEM_PYTHON, "-c", NEEDS[name]], check=False, capture_output=True).returncode == 0
    )


class Program:
    """One program in a session, with the focus, and a display of the test's own that types."""

    def __init__(self, session: DesktopSession, name: str, directory: Path) -> None:
        self._session = session
        self._name = name
        self._out = directory / f"{name}.txt"
        self._skip = 0
        desktop = session._live.desktop if session._live is not None else None
        assert desktop is not None
        self.address = (desktop.display, desktop.cookie)
        self.display = X11Display(*self.address)

    async def start(self) -> None:
        """Start it and wait until it takes keys."""
        await self._session.open(self._argv())
        async with asyncio.timeout(START_LIMIT_S):
            while not self._out.exists() or not _has_focus(*self.address):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await self._wait_live()

    async def _wait_live(self) -> None:
        # The window has the focus, its widget perhaps not yet.
        while self.read() != "x":
            await self.type("x")
            await self._wait_text("x", 0.5)
        await self.clear()

    async def type(self, text: str) -> Typed:
        """Type as the driver does."""
        bursts = self.display.type_text(text)
        outcome: Any = 0
        while isinstance(outcome, int):
            outcome = await asyncio.to_thread(_next, bursts)
        assert isinstance(outcome, Typed)
        return outcome

    async def arrived(self, text: str) -> str:
        """What the program holds, as soon as it is *text* or time is up."""
        return await self._wait_text(text, ARRIVE_LIMIT_S)

    async def clear(self) -> None:
        """Empty the program's widget."""
        if self._name == "xterm":
            self._skip = self._out.stat().st_size
            return
        clear = self._out.with_suffix(".clear")
        clear.touch()
        async with asyncio.timeout(ARRIVE_LIMIT_S):
            while clear.exists() or self.read():  # noqa: ASYNC110  written by another process
                await asyncio.sleep(0.005)

    def read(self) -> str:
        """What the program holds now."""
        return self._out.read_bytes()[self._skip :].decode("utf-8", errors="replace")

    def reopen(self) -> None:
        """Start anew with a display that has bound nothing yet."""
        self.display.close()
        self.display = X11Display(*self.address)

    def close(self) -> None:
        """Give the display up; the program ends with the session."""
        self.display.close()

    async def _wait_text(self, text: str, limit_s: float) -> str:
        try:
            async with asyncio.timeout(limit_s):
                while self.read() != text:  # noqa: ASYNC110  written by another process
                    await asyncio.sleep(0.005)
        except TimeoutError:
            pass
        return self.read()

    def _argv(self) -> list[str]:
        if self._name == "xterm":
            script = f"stty -echo -icanon -iexten min 1; exec cat > {self._out}"
            return ["xterm", "-u8", "-e", "sh", "-c", script]
        argv = [SYSTEM_PYTHON, str(TARGETS / f"{self._name}.py"), str(self._out)]
        if self._name == "chromium":
            browser = find_browser()
            assert browser is not None
            profile = self._out.with_suffix(".profile")
            argv += [browser, *ARGUMENTS, f"--user-data-dir={profile}", "--disable-session-crashed-bubble"]
        return argv


def _next(bursts: Any) -> Any:
    try:
        return next(bursts)
    except StopIteration as end:
        return end.value


def _has_focus(name: str, cookie: bytes) -> bool:
    connection = connect(name, cookie)
    root = connection.screen().root
    active = root.get_full_property(connection.intern_atom("_NET_ACTIVE_WINDOW"), X.AnyPropertyType)
    has_focus = active is not None and any(active.value)
    disconnect(connection)
    return has_focus
