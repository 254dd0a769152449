"""A realistic desktop for benchmarks: a photo behind terminals full of coloured text."""

import asyncio
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from Xlib import X

from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import disconnect
from computer.driver import ComputerDriver
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall, ComputerResult

R = TypeVar("R")

SIZES = ((1280, 800), (1920, 1080), (3840, 2160))
# Standard deviation of the photo's grain, in levels of 256: PNGs of about a megabyte at 1280x800.
GRAIN = 2.5
# Rows of the background sent in one request.
BAND = 16
TEXT = (
    "for i in $(seq 1 60); do for c in 31 32 33 34 35 36; do "
    "printf '\\033[%dmdrwxr-xr-x %4d root staff %6d file-%d.txt\\033[0m  ' "
    "$c $i $((i*c*7919%99991)) $((i*c)); "
    "done; echo; done; exec cat > "
)


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
        self._colours = itertools.count(1)
        self._paint_photo()
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

    def touch_pixel(self) -> None:
        """Change one pixel of the screen, so that the next picture is a new one."""
        context = self.painter.screen().root.create_gc(
            foreground=next(self._colours) * 7, subwindow_mode=X.IncludeInferiors
        )
        self.painter.screen().root.fill_rectangle(context, self.size[0] - 2, 1, 1, 1)
        context.free()
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

    def _paint_photo(self) -> None:
        width, height = self.size
        y, x = np.mgrid[0:height, 0:width]
        noise = np.random.default_rng(7).normal(0, GRAIN, (height, width))
        channels = [110 + 60 * np.sin(x / (190 + 40 * n)) + 50 * np.cos(y / (130 - 20 * n)) for n in range(3)]
        picture = np.zeros((height, width, 4), np.uint8)
        for number, channel in enumerate(channels):
            picture[..., number] = np.clip(channel + noise, 0, 255)
        root = self.painter.screen().root
        pixmap = root.create_pixmap(width, height, self.painter.screen().root_depth)
        context = pixmap.create_gc()
        for top in range(0, height, BAND):
            rows = picture[top : top + BAND]
            pixmap.put_image(context, 0, top, width, len(rows), X.ZPixmap, 24, 0, rows.tobytes())
        root.change_attributes(background_pixmap=pixmap)
        root.clear_area(0, 0, 0, 0)
        self.painter.sync()

    def _open_terminals(self) -> None:
        columns, rows = self.size[0] // 16, self.size[1] // 36
        for number in range(2):
            place = f"{columns}x{rows}+{number * self.size[0] // 3}+{number * self.size[1] // 3}"
            target = self.out if number else "/dev/null"
            argv = ["xterm", "-u8", "-geometry", place, "-e", "sh", "-c", f"{TEXT}{target}"]
            self.run(self.session.open(argv))
            self.perform({"action": "wait_settled", "quiet_ms": 500, "timeout_ms": 10_000}, screenshot=False)


def need(program: str) -> str:
    """Path of a peer; skips loudly where it is missing."""
    beside = Path(sys.executable).parent / program
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: this peer is not measured")
    return found
