"""A screen of two outputs, as two monitors make it: one frame, one space of coordinates."""

import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from Xlib import X

from computer.display import Display
from computer.display.vnc import VncDisplay
from computer.display.vnc.connection import RfbConnection
from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import XConnection, disconnect
from computer.driver import ComputerDriver
from computer.wire import ComputerCall
from tests.rfb_servers import RfbServer, run_xvnc

# RFB's SetDesktopSize, and one screen of it: number, place, size, flags.
SET_SIZE = struct.Struct(">BxHHBx")
SCREEN = struct.Struct(">IHHHHI")
FIRST, SECOND = (1, 0, 0, 1024, 768, 0), (2, 1024, 0, 800, 600, 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RfbServer]:
    """Xvnc with an output of 1024x768 and one of 800x600 beside it."""
    with run_xvnc(tmp_path) as server:
        viewer = RfbConnection(server.address)
        viewer.send(SET_SIZE.pack(251, 1824, 768, 2) + SCREEN.pack(*FIRST) + SCREEN.pack(*SECOND))
        viewer.sync()
        viewer.close()
        yield server


@pytest.fixture
def probe(server: RfbServer) -> Iterator[XConnection]:
    """The test's own connection."""
    assert server.display is not None
    connection = connect(server.display, None)
    yield connection
    disconnect(connection)


def _outputs(probe: XConnection) -> list[tuple[int, ...]]:
    resources = probe.screen().root.xrandr_get_screen_resources()
    infos = [probe.xrandr_get_output_info(output, 0) for output in resources.outputs]
    crtcs = [probe.xrandr_get_crtc_info(info.crtc, 0) for info in infos if info.crtc]
    return [(crtc.x, crtc.y, crtc.width, crtc.height) for crtc in crtcs]


@pytest.mark.parametrize("kind", ["x11", "vnc"])
async def test_second_output_is_a_part_of_one_frame(server: RfbServer, probe: XConnection, kind: str) -> None:
    """BUGS 35: a click on the second monitor, by native and by the model's coordinates."""
    assert server.display is not None
    root = probe.screen().root
    window = root.create_window(
        1100, 100, 300, 200, 0, X.CopyFromParent,
        background_pixel=0x1080F0, override_redirect=True, event_mask=X.ButtonPressMask,
    )  # fmt: skip
    window.map()
    probe.sync()
    opened: partial[Display] = (
        partial(X11Display, server.display) if kind == "x11" else partial(VncDisplay, server.address)
    )
    driver = ComputerDriver(opened)
    await driver.open()
    native = await driver.perform(_click(1300, 250))
    scaled = await driver.perform(_click(650, 125, model_size=[912, 384]))
    await driver.close()
    presses = [probe.next_event() for _ in range(2)]

    assert _outputs(probe) == [FIRST[1:5], SECOND[1:5]]
    assert native.screenshot is not None
    assert native.screenshot.native_size == (1824, 768)
    assert [(press.type, press.root_x, press.root_y) for press in presses] == [
        (X.ButtonPress, 1300, 250),
        (X.ButtonPress, 1301, 251),
    ]
    assert (native.error, scaled.error) == (None, None)


def _click(x: int, y: int, **fields: object) -> ComputerCall:
    action = {"action": "left_click", "coordinate": [x, y]}
    return ComputerCall.model_validate({"actions": [action], **fields})
