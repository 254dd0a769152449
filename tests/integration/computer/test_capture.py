"""Pixels of a real server."""

import base64
import io
import time

import numpy as np
import psutil
import pytest
from PIL import Image
from Xlib import X

from computer.display import Patience
from computer.display.rest import wait_settled
from computer.display.shm import MAX_SEGMENTS
from computer.display.x11 import X11Display, connect
from computer.driver import BLANK
from computer.geometry import Point
from computer.session import DesktopSession
from computer.session.supervisor import Live
from computer.wire import ComputerCall


def _live(session: DesktopSession) -> Live:
    assert session._live is not None
    return session._live


async def _open(session: DesktopSession, *, use_shm: bool = True) -> X11Display:
    await session.ensure_running()
    desktop = _live(session).desktop
    return X11Display(desktop.display, desktop.cookie, use_shm=use_shm)


async def test_shared_memory_is_used_and_equals_get_image(session: DesktopSession) -> None:
    """Ours: two ways to the same pixels."""
    shared, plain = await _open(session), await _open(session, use_shm=False)
    frames = shared.capture(), plain.capture()
    has_shm = shared.info().capture == "shm"
    shared.close()
    plain.close()

    assert has_shm
    assert np.array_equal(frames[0][..., :3], frames[1][..., :3])


async def test_screenshot_shows_what_another_client_drew(session: DesktopSession) -> None:
    """Ours: pixels from a second connection, through PNG and base64."""
    await session.ensure_running()
    desktop = _live(session).desktop
    painter = connect(desktop.display, desktop.cookie)
    window = painter.screen().root.create_window(
        20, 30, 40, 50, 0, X.CopyFromParent, background_pixel=0xFF8001, override_redirect=True
    )
    window.map()
    painter.sync()
    shot = await session.screenshot()
    painter.close()
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(shot.data))))

    assert (pixels[30:80, 20:60] == (0xFF, 0x80, 0x01)).all()
    assert tuple(pixels[29, 20]) == (0x2E, 0x34, 0x40)
    assert shot.native_size == (1280, 800)


async def test_a_picture_stays_as_it_was_while_others_are_taken(session: DesktopSession) -> None:
    """Ours: the server writes into memory that nobody looks at, however many pictures are kept."""
    display = await _open(session)
    desktop = _live(session).desktop
    painter = connect(desktop.display, desktop.cookie)
    root = painter.screen().root
    descriptors = psutil.Process().num_fds()
    kept = []
    for number in range(MAX_SEGMENTS * 3):
        context = root.create_gc(foreground=number, subwindow_mode=X.IncludeInferiors)
        root.fill_rectangle(context, 0, 0, 8, 8)
        painter.sync()
        frame = display.capture()
        kept.append(frame[:8, :8] if number % 2 else frame)
    seen = [int(frame[4, 4, 0]) for frame in kept]
    del kept, frame
    display.close()
    painter.close()

    assert seen == list(range(MAX_SEGMENTS * 3))
    assert psutil.Process().num_fds() < descriptors


@pytest.mark.parametrize("use_shm", [True, False])
async def test_capture_follows_a_screen_that_grows(session: DesktopSession, use_shm: bool) -> None:
    """Ours: the shared segment grows with it."""
    display = await _open(session, use_shm=use_shm)
    before = display.capture().shape
    desktop = _live(session).desktop
    other = connect(desktop.display, desktop.cookie)
    other.screen().root.xrandr_set_screen_size(1920, 1200, 400, 300)
    other.sync()
    after = display.capture().shape
    other.close()
    display.close()

    assert (before, after) == ((800, 1280, 4), (1200, 1920, 4))


async def test_pointer_is_in_the_picture(session: DesktopSession) -> None:
    """Ours: the root image has no pointer, the screenshot has."""
    display = await _open(session)
    display.move_pointer(Point(x=400, y=300))
    frame = display.capture()
    display.close()

    around = frame[290:330, 390:430, :3].reshape(-1, 3)
    assert len(np.unique(around, axis=0)) > 1


async def test_change_is_noticed_and_quiet_ends_the_wait(session: DesktopSession) -> None:
    """Ours: XDamage sees another client draw."""
    display = await _open(session)
    desktop = _live(session).desktop
    painter = connect(desktop.display, desktop.cookie)
    wait_settled(display, Patience(first_change_s=0.3, quiet_s=0.2, cap_s=5))
    display.mark()
    idle = wait_settled(display, Patience(first_change_s=0.05, quiet_s=0.05, cap_s=5))
    window = painter.screen().root.create_window(
        0, 0, 9, 9, 0, X.CopyFromParent, background_pixel=1, override_redirect=True
    )
    window.map()
    painter.sync()
    started = time.monotonic()
    busy = wait_settled(display, Patience(first_change_s=20, quiet_s=0.05, cap_s=20))
    waited = time.monotonic() - started
    painter.close()
    display.close()

    assert (idle.changed, idle.is_settled) == (False, True)
    assert (busy.changed, busy.is_settled) == (True, True)
    assert waited < 20


async def test_zoom_shows_the_marker_that_the_model_sees(session: DesktopSession) -> None:
    """BUGS 32: the crop is taken in native pixels, from a region of the model's frame."""
    await session.ensure_running()
    desktop = _live(session).desktop
    painter = connect(desktop.display, desktop.cookie)
    window = painter.screen().root.create_window(
        1000, 600, 20, 20, 0, X.CopyFromParent, background_pixel=0xFF8001, override_redirect=True
    )
    window.map()
    painter.sync()
    result = await session.perform(
        ComputerCall.model_validate(
            {"actions": [{"action": "zoom", "region": [500, 300, 510, 310]}], "model_size": [640, 400]}
        )
    )
    painter.close()
    assert result.screenshot is not None
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(result.screenshot.data))))

    assert (pixels == (0xFF, 0x80, 0x01)).all()
    assert result.screenshot.model_size == (400, 400)


async def test_screen_never_goes_blank_by_itself(session: DesktopSession) -> None:
    """BUGS 39: synthetic input does not stop a screensaver, so there is none."""
    await session.ensure_running()
    desktop = _live(session).desktop
    probe = connect(desktop.display, desktop.cookie)
    timeout = probe.get_screen_saver().timeout
    has_dpms = probe.has_extension("DPMS") or "DPMS" in probe.list_extensions()
    probe.close()

    assert (timeout, has_dpms) == (0, False)


async def test_blank_screen_is_said_to_be_one(session: DesktopSession) -> None:
    """Required: a warning on blank frames; the pointer does not hide it."""
    await session.ensure_running()
    look = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
    assert BLANK in (await session.perform(look)).warnings

    desktop = _live(session).desktop
    painter = connect(desktop.display, desktop.cookie)
    for left in (0, 900):
        painter.screen().root.create_window(
            left, 20, 30, 30, 0, X.CopyFromParent, background_pixel=0xFFFFFF, override_redirect=True
        ).map()
    painter.sync()
    warnings = (await session.perform(look)).warnings
    painter.close()
    assert warnings == ()
