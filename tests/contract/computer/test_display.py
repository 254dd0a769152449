"""One suite for every ``Display``: the fake must behave like the real ones, VNC like X11."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer.display import Display, Patience
from computer.display.rest import wait_settled
from computer.display.vnc import Address, VncDisplay
from computer.display.x11 import X11Display
from computer.errors import DisplayClosed, DisplayLost, InvalidAction, OutOfBounds
from computer.geometry import Point
from computer.keys import parse_chord
from computer.session import DesktopSession, SessionSettings
from computer.testing import FakeDisplay
from tests.rfb_servers import run_x11vnc, run_xvnc

PATIENCE = Patience(first_change_s=0.05, quiet_s=0.05, cap_s=2.0)


@pytest.fixture(params=["fake", "x11", "vnc by socket", "vnc by tcp", "vnc with password", "x11vnc"])
async def display(request: pytest.FixtureRequest) -> AsyncIterator[Display]:
    """An open display of 1280x800."""
    if request.param == "fake":
        yield FakeDisplay()
        return
    directory = Path(tempfile.mkdtemp(prefix="desk-"))
    if request.param != "x11":
        with _run_rfb(request.param, directory) as (address, password):
            display = VncDisplay(address, password)
            yield display
            display.close()
        shutil.rmtree(directory, ignore_errors=True)
        return
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    settings = SessionSettings(runtime_dir=directory, backend="xvnc")
    session = DesktopSession(settings, base_environment=environment)
    await session.ensure_running()
    assert session._live is not None
    display = X11Display(session._live.desktop.display, session._live.desktop.cookie)
    yield display
    display.close()
    await session.stop()
    shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _run_rfb(kind: str, directory: Path) -> Iterator[tuple[Address, str | None]]:
    password = "secret12" if kind == "vnc with password" else None
    if kind == "x11vnc":
        context = run_x11vnc(directory)
    else:
        context = run_xvnc(directory, tcp=kind == "vnc by tcp", password=password)
    with context as server:
        yield server.address, password


async def test_capture_has_the_shape_of_the_screen(display: Display) -> None:
    """Contract: (height, width, 4) uint8."""
    size = display.size()
    frame = display.capture()

    assert (frame.shape, frame.dtype.name) == ((size.height, size.width, 4), "uint8")


async def test_capture_is_a_copy_that_may_be_changed(display: Display) -> None:
    """Contract: two captures never share memory."""
    first = display.capture()
    second = display.capture()
    first[:] = 77

    assert not (second[:, :, :3] == 77).all()
    assert not (display.capture()[:, :, :3] == 77).all()


@pytest.mark.parametrize("place", [(0, 0), (1279, 799), (640, 400)])
async def test_pointer_is_where_it_was_moved(display: Display, place: tuple[int, int]) -> None:
    """Contract: corners are places."""
    display.move_pointer(Point(x=place[0], y=place[1]))

    assert display.pointer() == Point(x=place[0], y=place[1])


@pytest.mark.parametrize("place", [(-1, 0), (0, -1), (1280, 0), (0, 800)])
async def test_pointer_never_leaves_the_screen(display: Display, place: tuple[int, int]) -> None:
    """Contract: outside is refused, and the pointer stays."""
    display.move_pointer(Point(x=5, y=6))

    with pytest.raises(OutOfBounds):
        display.move_pointer(Point(x=place[0], y=place[1]))
    assert display.pointer() == Point(x=5, y=6)


async def test_releasing_what_is_up_is_harmless(display: Display) -> None:
    """Contract: releases are idempotent."""
    display.release_button(1)
    display.release_chord(parse_chord("ctrl+l"))
    display.release_all()
    display.press_button(1)
    display.press_button(1)
    display.press_chord(parse_chord("shift"))
    display.press_chord(parse_chord("shift"))
    display.release_all()
    display.release_all()


@pytest.mark.parametrize("text", ["a", "hello\tworld\n", "x" * 450, "漢字 and ascii"])
async def test_typing_counts_up_to_the_end(display: Display, text: str) -> None:
    """Contract: each burst tells how far it got."""
    if isinstance(display, VncDisplay) and not text.isascii():
        # No window takes a paste here, and RFB has no other way for such characters.
        with pytest.raises(InvalidAction, match="character 0 "):
            list(display.type_text(text))
        return
    counts = list(display.type_text(text))

    assert counts == sorted(set(counts))
    assert counts[-1] == len(text)


async def test_typing_may_be_abandoned(display: Display) -> None:
    """Contract: closing the iterator is enough."""
    bursts = display.type_text("y" * 1_000)
    next(bursts)
    bursts.close()  # type: ignore[attr-defined]
    display.release_all()

    assert display.pointer() is not None


async def test_still_screen_settles_without_a_change(display: Display) -> None:
    """Contract: nothing happened, nothing to wait for."""
    wait_settled(display, Patience(first_change_s=0.3, quiet_s=0.3, cap_s=5.0))
    display.mark()
    settled = wait_settled(display, PATIENCE)

    assert (settled.changed, settled.is_settled) == (False, True)
    assert display.take_changes() == ()


async def test_closed_display_refuses(display: Display) -> None:
    """Contract: closing twice is harmless, using it after that is our bug."""
    display.close()
    display.close()

    for use in (display.size, display.capture, display.pointer, display.release_all, display.mark):
        with pytest.raises(DisplayClosed):
            use()
    with pytest.raises(DisplayClosed):
        next(display.type_text("a"))


async def test_aborted_display_is_lost(display: Display) -> None:
    """Contract: abort ends every later call in DisplayLost."""
    display.abort()

    with pytest.raises(DisplayLost):
        display.capture()
    with pytest.raises(DisplayLost):
        display.pointer()
