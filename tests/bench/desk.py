"""A desktop for benchmarks, with the screen of ``tests.bench.screen`` on it."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import disconnect
from computer.driver import ComputerDriver
from computer.geometry import Point
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall, ComputerResult
from tests.bench.screen import cover, page, paint, photo, terminals, touch

R = TypeVar("R")

SIZES = ((1280, 800), (1920, 1080), (3840, 2160))


class Desk:
    """
    One desktop session at one size, and the loop it lives on, for synchronous benchmarks.

    Attributes:
        display: a display of the benchmark's own.
        out: file in which the focused terminal puts what is typed.
    """

    def __init__(self, directory: Path, size: tuple[int, int]) -> None:
        self.size = size
        self.directory = directory
        self.runner = asyncio.Runner()
        settings = SessionSettings(runtime_dir=directory / "d", width=size[0], height=size[1], backend="xvnc")
        base = {"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8"}
        self.session = DesktopSession(settings, base_environment=base)
        self.runner.run(self.session.ensure_running())
        assert self.session._live is not None
        self.driver: ComputerDriver = self.session._live.driver
        desktop = self.session._live.desktop
        self.environment = self.session.environment()
        self.rfb = settings.rfb_socket
        self.display = X11Display(desktop.display, desktop.cookie)
        self.painter = connect(desktop.display, desktop.cookie)
        self.out = directory / "typed"
        paint(self.painter, self.size)
        self.perform({"action": "wait_settled", "quiet_ms": 500, "timeout_ms": 10_000}, screenshot=False)
        self._open_terminals()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Await *work*."""
        return self.runner.get_loop().run_until_complete(work)

    def perform(self, *actions: dict[str, object], **fields: object) -> ComputerResult:
        """One call through the driver."""
        result = self.run(self.session.perform(self.call(*actions, **fields)))
        assert result.error is None, result.error
        return result

    def call(self, *actions: dict[str, object], **fields: object) -> ComputerCall:
        """Make a call."""
        return ComputerCall.model_validate({"actions": actions, **fields})

    def touch_all(self) -> None:
        """Change a pixel of every row, so that nothing of the last picture can be used again."""
        touch(self.painter, self.size[0] - 2, 0, 1, self.size[1])

    def touch_line(self) -> None:
        """Change as much as a line of text that is typed."""
        touch(self.painter, self.size[0] - 220, self.size[1] - 40, 200, 13)

    @contextmanager
    def covered(self, kind: Literal["photo", "page"]) -> Iterator[None]:
        """Show a photo or a page over the whole screen, for the time of a block."""
        window = cover(self.painter, (photo if kind == "photo" else page)(*self.size))
        self.display.move_pointer(Point(x=5, y=5))
        try:
            yield
        finally:
            window.destroy()
            self.painter.sync()

    def spawn(self, *argv: str) -> bytes:
        """Run a peer's command on this desktop; returns its output."""
        done = subprocess.run(argv, env=self.environment, check=True, capture_output=True)
        return done.stdout

    def close(self) -> None:
        """End the session."""
        self.display.close()
        disconnect(self.painter)
        self.run(self.session.stop())
        self.runner.close()

    def _open_terminals(self) -> None:
        for argv in terminals(self.size, str(self.out)):
            self.run(self.session.open(argv))
            self.perform({"action": "wait_settled", "quiet_ms": 500, "timeout_ms": 10_000}, screenshot=False)


def need(program: str) -> str:
    """Path of a peer; skips loudly where it is missing."""
    beside = Path(sys.executable).parent / program
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: this peer is not measured")
    return found
