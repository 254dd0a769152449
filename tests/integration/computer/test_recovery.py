"""What is missing, refused, cut off or resized on a real server."""

import asyncio
import itertools
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from Xlib import X
from Xlib import display as xdisplay
from Xlib.ext import randr

from computer.display import Patience
from computer.display.rest import wait_settled
from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import XConnection, disconnect
from computer.driver import ComputerDriver
from computer.errors import DisplayLost
from computer.geometry import Point, Size
from computer.session import DesktopSession, SessionSettings
from computer.session.xvnc import XvncBackend, XvncDesktop
from computer.wire import ComputerCall

Start = Callable[..., AbstractAsyncContextManager[XvncDesktop]]
CALM = Patience(first_change_s=0.5, quiet_s=0.1, cap_s=5)


class _Poorer(XvncBackend):
    """Xvnc with some extensions taken away."""

    def __init__(self, settings: SessionSettings, missing: tuple[str, ...]) -> None:
        super().__init__(settings)
        self._missing = missing

    def _argv(self, desktop: XvncDesktop) -> list[str]:
        return [*super()._argv(desktop), *(word for name in self._missing for word in ("-extension", name))]


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Start:
    """Start a desktop that lacks extensions."""

    @asynccontextmanager
    async def start(*missing: str) -> AsyncIterator[XvncDesktop]:
        directory = tmp_path_factory.mktemp("poor")
        settings = SessionSettings(runtime_dir=directory, backend="xvnc")
        desktop = await _Poorer(settings, missing).start(environment)
        try:
            yield desktop
        finally:
            await desktop.stop()

    return start


@pytest.mark.parametrize(
    ("missing", "expected", "word"),
    [
        ((), ("shm", True, True), ""),
        (("MIT-SHM",), ("get_image", True, True), "GetImage"),
        (("DAMAGE",), ("shm", False, True), "comparing pictures"),
        (("MIT-SHM", "DAMAGE"), ("get_image", False, True), "GetImage"),
    ],
    ids=["nothing", "shm", "damage", "both"],
)
async def test_self_test_picks_the_paths_that_work(
    start: Start,
    missing: tuple[str, ...],
    expected: tuple[str, bool, bool],
    word: str,
) -> None:
    """BUGS 40: what is missing is replaced, and said."""
    async with start(*missing) as desktop:
        display = X11Display(desktop.display, desktop.cookie)
        info, size = display.info(), display.size()
        display.mark()
        _paint(desktop, 0xFF8001)
        settled = wait_settled(display, CALM)
        boxes, frame = display.take_changes(), display.capture()
        display.close()

    assert (info.capture, info.has_damage, info.has_cursor) == expected
    assert word in " ".join(info.warnings)
    assert bool(info.warnings) == bool(missing)
    assert frame.shape == (size.height, size.width, 4)
    assert (frame[40:50, 30:50, :3] == (0x01, 0x80, 0xFF)).all()
    assert (settled.changed, settled.is_settled) == (True, True)
    assert any(box.left <= 20 and box.top <= 30 and box.right >= 60 and box.bottom >= 80 for box in boxes)


def _paint(desktop: XvncDesktop, colour: int) -> None:
    """Draw a window of 40x50 at (20, 30), to stay."""
    painter = connect(desktop.display, desktop.cookie)
    painter.set_close_down_mode(X.RetainPermanent)
    window = painter.screen().root.create_window(
        20, 30, 40, 50, 0, X.CopyFromParent, background_pixel=colour, override_redirect=True
    )
    window.map()
    painter.sync()
    disconnect(painter)


async def test_server_without_xfixes_shows_no_pointer(
    session: DesktopSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS 40: as above; Xvnc itself aborts without XFIXES, so it is only hidden here."""
    await session.ensure_running()
    assert session._live is not None
    has_extension = xdisplay.Display.has_extension
    monkeypatch.setattr(
        xdisplay.Display, "has_extension", lambda self, name: name != "XFIXES" and has_extension(self, name)
    )
    display = X11Display(session._live.desktop.display, session._live.desktop.cookie)
    display.move_pointer(Point(x=400, y=300))
    info, frame = display.info(), display.capture()
    display.close()

    assert (info.has_cursor, info.has_damage, info.capture) == (False, False, "shm")
    assert "do not show the pointer" in info.warnings[0]
    assert (frame[290:330, 390:430, :3] == (0x40, 0x34, 0x2E)).all()


async def test_two_servers_with_different_extensions_do_not_mix(
    start: Start, session: DesktopSession
) -> None:
    """Ours: numbers of requests and events are each server's own, in one process."""
    await session.ensure_running()
    assert session._live is not None
    first = X11Display(session._live.desktop.display, session._live.desktop.cookie)
    async with start("SHAPE", "MIT-SHM", "XINERAMA") as desktop:
        second = X11Display(desktop.display, desktop.cookie)
        for display in (first, second, first, second):
            display.move_pointer(Point(x=9, y=9))
            display.mark()
            display.move_pointer(Point(x=30, y=40))
            assert display.capture().shape == (800, 1280, 4)
            assert display.pointer() == Point(x=30, y=40)
            assert display.is_unchanged()
        second.close()
    first.close()


async def test_plain_xlib_beside_ours_keeps_its_own_cookies(
    session: DesktopSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ours: the process may use Xlib for itself; it looks for cookies where X clients do, and we don't."""
    await session.ensure_running()
    assert session._live is not None
    desktop = session._live.desktop
    ours = X11Display(desktop.display, desktop.cookie)
    monkeypatch.setenv("XAUTHORITY", session.environment()["XAUTHORITY"])
    plain = xdisplay.Display(desktop.display)
    ours.move_pointer(Point(x=17, y=19))
    ours.pointer()
    seen = plain.screen().root.query_pointer()
    plain.close()
    # A file without our cookie is nothing to us.
    monkeypatch.setenv("XAUTHORITY", str(tmp_path / "nothing"))
    again = X11Display(desktop.display, desktop.cookie)
    again.close()
    ours.close()

    assert (seen.root_x, seen.root_y) == (17, 19)


async def test_server_without_xtest_is_refused(start: Start) -> None:
    """Ours: a desktop that can't be touched is not one."""
    async with start("XTEST") as desktop:
        with pytest.raises(DisplayLost, match="XTEST"):
            X11Display(desktop.display, desktop.cookie)


async def test_cookie_problems_are_one_sentence_with_the_path(start: Start, tmp_path: Path) -> None:
    """BUGS 64: missing, damaged, foreign, wrong, absent."""
    async with start() as desktop:
        name, right = desktop.display, desktop.authority.read_bytes()
        files = {
            "missing": (None, "can't be read"),
            "damaged": (right[:-3], "is not an X authority file"),
            "foreign": (b"", "has no entry for it"),
            "wrong": (right.replace(desktop.cookie, b"0123456789abcdef"), "is not its own"),
        }
        for stem, (content, sentence) in files.items():
            path = tmp_path / stem
            if content is not None:
                path.write_bytes(content)
            with pytest.raises(DisplayLost) as caught:
                X11Display(name, authority=path)
            assert sentence in str(caught.value)
            assert str(path) in str(caught.value)
            assert "\n" not in str(caught.value)
        with pytest.raises(DisplayLost, match="wants a cookie and none was given"):
            X11Display(name)
        X11Display(name, authority=desktop.authority).close()


async def test_unreadable_authority_is_named(tmp_path: Path) -> None:
    """BUGS 64: another user's file; here a directory, which not even root reads as a file."""
    path = tmp_path / "other"
    path.mkdir()

    with pytest.raises(DisplayLost, match="directory") as caught:
        X11Display(":99", authority=path)
    assert str(path) in str(caught.value)


def _sockets(display: X11Display) -> dict[str, Callable[[], None]]:
    screen = display._screen
    return {
        "input": lambda: display._connection.display.socket.shutdown(socket.SHUT_RDWR),
        "damage": screen._watch.abort,
        "shm": screen._shm.abort if screen._shm is not None else lambda: None,
    }


@pytest.mark.parametrize("which", ["input", "damage", "shm"])
async def test_connection_that_is_cut_is_opened_anew(session: DesktopSession, which: str) -> None:
    """Required: long-lived connections, reopened on error; nothing of the caller's is lost."""
    await session.ensure_running()
    assert session._live is not None
    name, cookie = session._live.desktop.display, session._live.desktop.cookie
    display = X11Display(name, cookie)
    for _ in range(3):
        display.mark()
        _sockets(display)[which]()
        assert display.size() == Size(width=1280, height=800)
        assert display.capture().shape == (800, 1280, 4)
        display.mark()
        assert display.take_changes() == ()
    display.move_pointer(Point(x=3, y=4))
    assert display.pointer() == Point(x=3, y=4)
    display.close()


async def test_key_that_was_down_when_the_connection_was_cut_is_up_after(session: DesktopSession) -> None:
    """Required: released on disconnect."""
    await session.ensure_running()
    assert session._live is not None
    desktop = session._live.desktop
    opened: list[X11Display] = []

    def open_display() -> X11Display:
        opened.append(X11Display(desktop.display, desktop.cookie))
        return opened[0]

    driver = ComputerDriver(open_display)
    await driver.open()
    await driver.perform(
        ComputerCall.model_validate(
            {
                "actions": [
                    {"action": "key_down", "text": "shift"},
                    {"action": "button_down", "button": "back", "coordinate": [5, 5]},
                ],
                "screenshot": False,
            }
        )
    )
    _sockets(opened[0])["input"]()
    result = await driver.perform(ComputerCall.model_validate({"actions": [{"action": "cursor_position"}]}))
    await driver.close()

    assert result.error is None
    assert result.held is not None
    assert (result.held.keys, result.held.buttons) == ((), ())


@pytest.mark.parametrize("use_shm", [True, False])
async def test_screen_that_grows_and_shrinks_gives_whole_frames(
    session: DesktopSession, use_shm: bool
) -> None:
    """Required: RandR size changes without mixed frames, while pictures are taken."""
    await session.ensure_running()
    assert session._live is not None
    desktop = session._live.desktop
    display = X11Display(desktop.display, desktop.cookie, use_shm=use_shm)
    other = connect(desktop.display, desktop.cookie)
    root = other.screen().root
    sizes = [(size.width_in_pixels, size.height_in_pixels) for size in root.xrandr_get_screen_info().sizes]
    wanted = [(1920, 1080), (800, 600), (1280, 800), (640, 480)] * 5
    done = threading.Event()

    def resize_all() -> None:
        try:
            for size in wanted:
                stamp = root.xrandr_get_screen_info().config_timestamp
                root.xrandr_set_screen_config(sizes.index(size), randr.Rotate_0, stamp, 60)
        finally:
            done.set()

    changing = asyncio.create_task(asyncio.to_thread(resize_all))
    shapes = set()
    while not done.is_set():
        frame = display.capture()
        shapes.add(frame.shape[:2])
        await asyncio.sleep(0)
    await changing
    last = display.capture().shape
    display.close()
    disconnect(other)

    assert last == (480, 640, 4)
    assert shapes <= {(height, width) for width, height in wanted}


def _set_mode(connection: XConnection, width: int, height: int) -> None:
    """Give the only output a mode that it did not have."""
    root = connection.screen().root
    resources = root.xrandr_get_screen_resources()
    name = f"{width}x{height} made here"
    timings = (0, width, height, 60 * width * height, width, width, width, 0, height, height, height)
    mode = root.xrandr_create_mode((*timings, len(name), 0), name).mode
    output = resources.outputs[0]
    connection.xrandr_add_output_mode(output, mode)
    crtc = connection.xrandr_get_output_info(output, 0).crtc
    connection.xrandr_set_crtc_config(crtc, 0, 0, 0, 0, randr.Rotate_0, [])
    root.xrandr_set_screen_size(width, height, width // 4, height // 4)
    connection.xrandr_set_crtc_config(crtc, 0, 0, 0, mode, randr.Rotate_0, [output])
    connection.sync()


async def test_modes_of_any_size_are_followed_and_old_places_refused(session: DesktopSession) -> None:
    """Required: sizes that no list has; a point that was on the screen is a typed error once it is not."""
    await session.ensure_running()
    assert session._live is not None
    other = connect(session._live.desktop.display, session._live.desktop.cookie)
    corner = {"action": "left_click", "coordinate": [1000, 700]}
    seen = []
    for size in ((1001, 701), (333, 222), (1366, 769)):
        _set_mode(other, *size)
        first, result = [
            await session.perform(ComputerCall.model_validate({"actions": [corner]})) for _ in range(2)
        ]
        shot = result.screenshot
        assert shot is not None
        seen.append((shot.native_size, shot.model_size, first.error_code, result.error_code, result.pointer))
    disconnect(other)

    assert [row[:4] for row in seen] == [
        ((1001, 701), (1001, 701), None, None),
        ((333, 222), (333, 222), "screen_resized", "out_of_bounds"),
        ((1366, 769), (1366, 769), "screen_resized", None),
    ]
    assert (seen[0][4], seen[2][4]) == ((1000, 700), (1000, 700))


async def test_screen_unchanged_is_known_without_a_picture(session: DesktopSession) -> None:
    """Required: an unchanged screen costs a question, and every change is noticed."""
    await session.ensure_running()
    assert session._live is not None
    desktop = session._live.desktop
    display = X11Display(desktop.display, desktop.cookie)
    wait_settled(display, CALM)
    known = []
    for change in (
        lambda: None,
        lambda: display.move_pointer(Point(x=700, y=10)),
        lambda: _paint(desktop, 0x112233),
        lambda: _paint(desktop, 0x112234),
    ):
        display.capture()
        change()
        known.append(display.is_unchanged())
    display.close()

    assert known == [True, False, False, False]


async def test_unchanged_is_never_stale(session: DesktopSession) -> None:
    """Ours: what another client has drawn and synced is on the next picture, every time."""
    await session.ensure_running()
    assert session._live is not None
    desktop = session._live.desktop
    painter = connect(desktop.display, desktop.cookie)
    root = painter.screen().root
    context = root.create_gc(foreground=0)
    look = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
    seen = []
    for number in range(40):
        context.change(foreground=0x010203 * (number + 1))
        root.fill_rectangle(context, 5, 5, 1, 1)
        painter.sync()
        shot = (await session.perform(look)).screenshot
        assert shot is not None
        seen.append((shot.unchanged, shot.data))
    painter.close()

    assert not any(unchanged for unchanged, _ in seen)
    assert all(before[1] != after[1] for before, after in itertools.pairwise(seen))
