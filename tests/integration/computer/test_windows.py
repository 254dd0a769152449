"""Windows on a real desktop with openbox, and on a bare Xvnc without a window manager."""

import asyncio
import shlex
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from computer.display.x11 import WindowDesk
from computer.errors import InvalidAction, LaunchFailed, NotConfirmed, WindowNotFound
from computer.session import DesktopSession
from computer.session.process import Child
from computer.session.sockets import free_displays
from computer.session.xvnc import read_greeting
from computer.wire import ComputerCall, WindowInfo

LIMIT_S = 30

# A client that shows a window and takes no notice of WM_DELETE_WINDOW.
STUBBORN = """
from Xlib import X, display
d = display.Display()
w = d.screen().root.create_window(50, 60, 200, 100, 0, X.CopyFromParent, event_mask=X.StructureNotifyMask)
w.set_wm_name("stubborn")
w.set_wm_class("stubborn", "Stubborn")
w.set_wm_protocols([d.intern_atom("WM_DELETE_WINDOW")])
w.map()
while True:
    d.next_event()
"""


def _xterm(title: str, *extra: str) -> list[str]:
    return [
        "xterm",
        "-u8",
        "-title",
        title,
        "-geometry",
        "40x10",
        *extra,
        "-e",
        "sh",
        "-c",
        "exec sleep 1000",
    ]


async def _launch(session: DesktopSession, argv: list[str]) -> WindowInfo:
    report = await session.launch(argv)
    assert report.window is not None, report.warning
    return report.window


async def _find(session: DesktopSession, number: int) -> WindowInfo:
    return next(window for window in await session.windows() if window.id == number)


async def _until(question: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not await question():  # noqa: ASYNC110  asked of another process
            await asyncio.sleep(0.02)


def _stubborn() -> list[str]:
    return [sys.executable, "-c", STUBBORN]


async def test_ten_windows_are_listed_with_titles_classes_and_processes(session: DesktopSession) -> None:
    """Ours: titles are Unicode, ids are distinct, each window names its process."""
    titles = [f"fenêtre {number} — 窓 😀" for number in range(10)]
    async with asyncio.timeout(LIMIT_S):
        launched = [await _launch(session, _xterm(title)) for title in titles]
        await _until(lambda: _has_titles(session, titles))
        windows = await session.windows()

    assert {window.id for window in launched} == {window.id for window in windows}
    assert {"XTerm"} == {window.window_class for window in windows}
    assert sum(window.active for window in windows) == 1
    assert len({window.pid for window in windows} - {None}) == 10


async def _has_titles(session: DesktopSession, titles: list[str]) -> bool:
    return titles == [window.title for window in await session.windows()]


async def test_focus_changes_the_active_window(session: DesktopSession) -> None:
    """Ours: confirmed by reading back."""
    first = await _launch(session, _xterm("one"))
    second = await _launch(session, _xterm("two"))
    report = await session.focus_window(first.id)
    active = await session.active_window()

    assert (report.warning, report.window.active) == (None, True)
    assert active is not None
    assert active.id == first.id
    assert not (await _find(session, second.id)).active


async def test_focus_brings_a_minimised_window_back(session: DesktopSession) -> None:
    """Ours: listed as minimised, and restored by focus."""
    window = await _launch(session, _xterm("small", "-iconic"))
    assert (await _find(session, window.id)).minimized
    report = await session.focus_window(window.id)

    assert (report.window.minimized, report.window.active) == (False, True)


async def test_moved_window_is_where_it_was_put(session: DesktopSession) -> None:
    """Ours: the place is that of the application's own area, whatever the frame."""
    window = await _launch(session, _stubborn())
    report = await session.move_window(window.id, 300, 250)

    assert (report.window.bounds, report.warning) == ((300, 250, 500, 350), None)
    frame = report.window.frame
    assert frame[0] <= 300
    assert frame[1] < 250
    assert frame[2] >= 500


async def test_tripwires_hold_on_a_real_desktop(session: DesktopSession) -> None:
    """Required: the title of the active window, and a region that a new window covers."""
    window = await _launch(session, _xterm("first"))
    await session.move_window(window.id, 10, 40)
    calls = [
        {"tripwires": [{"kind": "window_title", "text": "first"}]},
        {"tripwires": [{"kind": "window_title", "text": "second"}]},
        {"tripwires": [{"kind": "region_unchanged", "region": [900, 600, 1000, 700]}]},
        {"tripwires": [{"kind": "region_unchanged", "region": [10, 40, 200, 200]}]},
    ]
    actions = [{"action": "type", "text": "echo seen\n"}, {"action": "key", "text": "Return"}]
    codes = [
        (await session.perform(ComputerCall.model_validate({"actions": actions, **call}))).error_code
        for call in calls
    ]

    assert codes == [None, "tripwire_tripped", None, "tripwire_tripped"]


async def test_border_of_a_terminal_does_not_shift_it(session: DesktopSession) -> None:
    """Ours: xterm asks for a border of one pixel, which the window manager adds to every place."""
    window = await _launch(session, _xterm("border"))
    places = [(300, 250), (300, 250), (-20, 90)]
    reports = [await session.move_window(window.id, *place) for place in places]

    assert [(report.window.bounds[:2], report.warning) for report in reports] == [
        (place, None) for place in places
    ]


async def test_resized_window_has_the_size_asked_for(session: DesktopSession) -> None:
    """Ours: confirmed by reading back."""
    window = await _launch(session, _stubborn())
    report = await session.resize_window(window.id, 321, 123)
    left, top, right, bottom = report.window.bounds

    assert ((right - left, bottom - top), report.warning) == ((321, 123), None)


async def test_resize_to_what_the_window_refuses_is_told(session: DesktopSession) -> None:
    """Ours: a terminal keeps to whole cells; the report says what came out."""
    window = await _launch(session, _xterm("cells"))
    report = await session.resize_window(window.id, 503, 301)

    assert report.warning is not None
    assert report.window.bounds == (await _find(session, window.id)).bounds


async def test_change_that_does_not_happen_is_an_error(session: DesktopSession) -> None:
    """Ours: a size below the smallest leaves the window as it is."""
    window = await _launch(session, _xterm("least"))
    smallest = (await session.resize_window(window.id, 1, 1)).window

    with pytest.raises(NotConfirmed):
        await session.resize_window(smallest.id, 1, 1)


async def test_closed_window_is_gone(session: DesktopSession) -> None:
    """Ours: WM_DELETE_WINDOW, then read back."""
    window = await _launch(session, _xterm("bye"))
    await session.close_window(window.id)

    assert await session.windows() == ()
    with pytest.raises(WindowNotFound):
        await session.focus_window(window.id)


async def test_window_that_ignores_the_request_to_close_is_told_and_can_be_forced(
    session: DesktopSession,
) -> None:
    """Ours: never ok on faith."""
    window = await _launch(session, _stubborn())
    with pytest.raises(NotConfirmed):
        await session.close_window(window.id)
    assert [window.id] == [found.id for found in await session.windows()]
    await session.close_window(window.id, force=True)

    assert await session.windows() == ()


async def test_unknown_and_impossible_requests_are_refused(session: DesktopSession) -> None:
    """Ours: typed, and nothing is done."""
    await session.ensure_running()
    with pytest.raises(WindowNotFound):
        await session.move_window(12_345, 1, 1)
    window = await _launch(session, _stubborn())

    with pytest.raises(InvalidAction):
        await session.resize_window(window.id, 0, 10)
    with pytest.raises(InvalidAction):
        await session.move_window(window.id, 40_000, 10)


async def test_program_that_ends_at_once_is_reported_with_its_output(session: DesktopSession) -> None:
    """Ours: the end of what it said is in the error."""
    with pytest.raises(LaunchFailed) as caught:
        await session.launch(["sh", "-c", "seq 5000; echo no such licence >&2; exit 3"])

    assert "status 3" in str(caught.value)
    assert caught.value.log_tail.endswith("5000\nno such licence")
    assert len(caught.value.log_tail) <= 2_000


async def test_program_without_a_window_goes_on_and_is_told(session: DesktopSession) -> None:
    """Ours: a time-out is a warning; the program lives."""
    report = await session.launch(["sleep", "1000"], timeout_s=0.2)

    assert report.window is None
    assert report.warning is not None
    assert f"app.{report.pid}" in session.status().pids


async def test_window_of_a_grandchild_is_the_programs_window(session: DesktopSession) -> None:
    """Ours: launchers fork and end; the session they lead finds what they leave."""
    script = f"{shlex.join(_xterm('grandchild'))} & exit 0"
    report = await session.launch(["sh", "-c", script])

    assert report.window is not None
    assert report.window.title == "grandchild"


async def test_cancelled_launch_ends_its_wait(session: DesktopSession) -> None:
    """Ours: no thread goes on looking."""
    await session.ensure_running()
    task = asyncio.create_task(session.launch(["sleep", "1000"], timeout_s=1000))
    await _until(lambda: _runs_app(session))
    task.cancel()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait({task})

    assert task.cancelled()


async def _runs_app(session: DesktopSession) -> bool:
    return any(role.startswith("app.") for role in session.status().pids)


@pytest.fixture
async def bare(runtime_dir: Path, environment: dict[str, str]) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """An Xvnc without a window manager: its display, and the environment of its clients."""
    number = next(free_displays())
    argv = ["Xvnc", f":{number}", "-rfbport", "-1", "-rfbunixpath", str(runtime_dir / "rfb"),
            "-SecurityTypes", "None", "-ac", "-nolisten", "tcp"]  # fmt: skip
    server = Child(argv, environment=environment, log=runtime_dir / "xvnc.log")
    async with asyncio.timeout(LIMIT_S):
        while not await read_greeting(runtime_dir / "rfb"):  # noqa: ASYNC110  as above
            await asyncio.sleep(0.02)
    yield f":{number}", {**environment, "DISPLAY": f":{number}"}
    await server.stop()


async def test_without_a_manager_there_are_no_windows_and_no_waiting(
    bare: tuple[str, dict[str, str]],
) -> None:
    """Public report: Mudlet#9870: the tool waited for a window manager for ever."""
    display, environment = bare
    client = Child(_stubborn(), environment=environment)
    desk = await asyncio.to_thread(WindowDesk, display)
    async with asyncio.timeout(LIMIT_S):
        while not (shown := await asyncio.to_thread(desk.top_levels)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    before = time.monotonic()
    listed, active = desk.windows(), desk.active()
    took_s = time.monotonic() - before
    with pytest.raises(WindowNotFound):
        desk.focus(shown[0].id)
    desk.close()
    await client.stop()

    assert (listed, active) == ((), None)
    assert took_s < 1
    assert [window.title for window in shown] == ["stubborn"]
