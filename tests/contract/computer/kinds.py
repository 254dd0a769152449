"""Every kind of ``Display`` there is, each on a server of its own."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from computer.display import Display, Patience
from computer.display.rest import wait_settled
from computer.display.vnc import VncDisplay
from computer.display.x11 import X11Display
from computer.testing import FakeDisplay
from tests.rfb_servers import RfbServer, run_qemu, run_x11vnc, run_xvnc

__all__ = ["KINDS", "Kind", "running"]

KINDS = ("fake", "x11", "vnc by socket", "vnc by tcp", "vnc with password", "x11vnc", "qemu")
PASSWORD = "secret12"
FIRMWARE = Patience(first_change_s=1.0, quiet_s=1.0, cap_s=20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    One kind of display.

    Attributes:
        name: one of ``KINDS``.
        connect: opens a display, 1280x800 but for QEMU's firmware; all are of one server.
        x_display: of the X server behind it; None where there is none.
        directory: for files of whoever looks on.
    """

    name: str
    connect: Callable[[], Display]
    x_display: str | None
    directory: Path


@contextmanager
def running(name: str) -> Iterator[Kind]:
    """A kind of display, and its server."""
    directory = Path(tempfile.mkdtemp(prefix="desk-"))
    if name == "fake":
        yield Kind(name=name, connect=FakeDisplay, x_display=None, directory=directory)
    else:
        password = PASSWORD if name == "vnc with password" else None
        with _run(name, directory, password) as server:
            connect: Callable[[], Display] = partial(VncDisplay, server.address, password)
            if name == "x11":
                assert server.display is not None
                connect = partial(X11Display, server.display, None)
            yield Kind(name=name, connect=connect, x_display=server.display, directory=directory)
    shutil.rmtree(directory, ignore_errors=True)


def _run(name: str, directory: Path, password: str | None) -> AbstractContextManager[RfbServer]:
    if name == "x11vnc":
        return run_x11vnc(directory)
    if name == "qemu":
        return _run_firmware(directory)
    return run_xvnc(directory, tcp=name == "vnc by tcp", password=password)


@contextmanager
def _run_firmware(directory: Path) -> Iterator[RfbServer]:
    with run_qemu(directory) as server:
        # It changes the size of its screen while it starts.
        display = VncDisplay(server.address)
        wait_settled(display, FIRMWARE)
        display.close()
        yield server
