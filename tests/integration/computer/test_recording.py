"""Recordings of a real desktop by the real recorder; films are judged by decoding them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import psutil
import pytest
from PIL import Image
from Xlib import X
from Xlib import display as xdisplay

from computer.errors import StartFailed
from computer.recording.finish import read_changes
from computer.recording.orders import FinishOrder, RecordOrder
from computer.recording.process import Recorder, run_finish
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall

# Seconds for anything that might hang. Generous: other tests share the machine.
LIMIT_S = 20
RED = 0xFF0000


@dataclass(frozen=True)
class Shown:
    """A frame of a film: when, and what colour it has."""

    at_s: float
    size: tuple[int, int]
    is_red: bool


def decode(path: Path) -> list[Shown]:
    """All frames of a film."""
    with av.open(str(path)) as file:
        return [_shown(frame) for frame in file.decode(video=0)]


def _shown(frame: av.VideoFrame) -> Shown:
    corner = frame.to_ndarray(format="rgb24")[frame.height // 4, frame.width // 4]
    assert frame.time is not None
    is_red = bool(corner[0] > 200 and corner[1] < 60)
    return Shown(at_s=frame.time, size=(frame.width, frame.height), is_red=is_red)


@pytest.fixture
async def screen(
    runtime_dir: Path, environment: dict[str, str], request: pytest.FixtureRequest
) -> AsyncIterator[DesktopSession]:
    """A small desktop; its size may be given as the fixture's parameter."""
    width, height = getattr(request, "param", (400, 300))
    settings = SessionSettings(
        name="film", runtime_dir=runtime_dir, width=width, height=height, backend="xvnc"
    )
    session = DesktopSession(settings, base_environment=environment)
    await session.ensure_running()
    yield session
    await session.stop()


def _order(session: DesktopSession, path: Path, **fields: float) -> RecordOrder:
    variables = session.environment()
    return RecordOrder(
        display=variables["DISPLAY"], authority=variables["XAUTHORITY"], path=str(path), **fields
    )


def _paint(session: DesktopSession, monkeypatch: pytest.MonkeyPatch, pixel: int) -> None:
    """Fill the screen, from a client of the test's own."""
    variables = session.environment()
    monkeypatch.setenv("XAUTHORITY", variables["XAUTHORITY"])
    connection = xdisplay.Display(variables["DISPLAY"])
    root = connection.screen().root
    size = root.get_geometry()
    window = root.create_window(
        0, 0, size.width, size.height, 0, 0, background_pixel=pixel, override_redirect=True
    )
    window.map()
    window.clear_area()
    connection.set_close_down_mode(X.RetainPermanent)
    connection.sync()
    connection.close()


async def _until(is_so: Callable[[], bool]) -> None:
    """Wait until the film on disk is as it should be: nobody tells when it is."""
    async with asyncio.timeout(LIMIT_S):
        while not is_so():  # noqa: ASYNC110 -- a file
            await asyncio.sleep(0.02)


async def _wait_red(film: Path, *, is_red: bool = True) -> None:
    """Wait until the film that is on disk, of a recorder that goes on, ends so."""
    await _until(lambda: decode(film)[-1].is_red == is_red)


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("screen", [(400, 300), (401, 301)], indirect=True, ids=["even", "odd"])
async def test_film_shows_what_happened_and_thumbnail_its_end(
    screen: DesktopSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec 2.4: MP4, odd sizes padded, thumbnail."""
    film = tmp_path / "film.mp4"
    recorder = await Recorder.start(_order(screen, film))
    begun = decode(film)
    _paint(screen, monkeypatch, RED)
    await _wait_red(film)
    report = await recorder.stop()
    shown = decode(film)

    assert begun, "started is told once a first fragment is there"
    assert report is not None
    assert report.reason == "asked"
    assert {frame.size for frame in shown} == {(recorder.started.width, recorder.started.height)}
    assert [shown[0].is_red, shown[-1].is_red] == [False, True]
    assert Image.open(film.with_suffix(".thumb.jpg")).convert("RGB").getpixel((160, 120))[0] > 200  # type: ignore[index]
    assert not psutil.pid_exists(recorder.pid)


async def test_killed_recorder_leaves_a_film_of_all_but_the_last_second(
    screen: DesktopSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS R 76: SIGKILL, then play to within 1 s of the kill, in the film's own time."""
    film = tmp_path / "film.mp4"
    recorder = await Recorder.start(_order(screen, film))
    for is_red in (True, False, True):
        _paint(screen, monkeypatch, RED if is_red else 0)
        # Fragments come to the disk though nothing moves any more.
        await _wait_red(film, is_red=is_red)
    os.kill(recorder.pid, signal.SIGKILL)
    report = await recorder.stop()

    assert report is None
    assert decode(film)[-1].is_red
    assert not psutil.pid_exists(recorder.pid)


async def test_stills_run_faster_once_the_film_is_finished(
    screen: DesktopSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec 2.4: after the stop, nothing is lost but time; a killed film gets its thumbnail here."""
    film = tmp_path / "film.mp4"
    recorder = await Recorder.start(_order(screen, film))
    _paint(screen, monkeypatch, RED)
    await _wait_red(film)
    await _until(lambda: decode(film)[-1].at_s >= 3)
    os.kill(recorder.pid, signal.SIGKILL)
    await recorder.stop()
    before = decode(film)
    report = await run_finish(FinishOrder(path=str(film), speedup=20, least_idle_s=0.2))
    after = decode(film)

    assert len(after) == len(before)
    assert after[-1].at_s < before[-1].at_s / 2
    assert report.duration_s == pytest.approx(after[-1].at_s + 0.5, abs=0.02)
    assert [frame.is_red for frame in after] == [frame.is_red for frame in before]
    assert _names(tmp_path) == ["film.mp4", "film.thumb.jpg"]


@pytest.mark.parametrize(
    ("limit", "reason"), [({"max_duration_s": 0.5}, "duration_limit"), ({"max_bytes": 1500}, "size_limit")]
)
async def test_limit_ends_a_film_well(
    screen: DesktopSession, tmp_path: Path, limit: dict[str, float], reason: str
) -> None:
    """Spec 2.4: limits are the recorder's own, nobody has to watch it."""
    film = tmp_path / "film.mp4"
    recorder = await Recorder.start(_order(screen, film, **limit))
    async with asyncio.timeout(LIMIT_S):
        report = await recorder.wait()

    assert report is not None
    assert report.reason == reason
    assert decode(film)


async def test_death_of_the_desktop_ends_a_film_well(screen: DesktopSession, tmp_path: Path) -> None:
    """Ours: what led to the crash is on the film."""
    film = tmp_path / "film.mp4"
    recorder = await Recorder.start(_order(screen, film))
    await screen.stop()
    async with asyncio.timeout(LIMIT_S):
        report = await recorder.wait()

    assert report is not None
    assert report.reason == "desktop_lost"
    assert decode(film)


async def test_recorder_without_a_desktop_says_why(tmp_path: Path) -> None:
    """Ours: no film, no process, a reason."""
    order = RecordOrder(display=":4711", path=str(tmp_path / "film.mp4"))
    with pytest.raises(StartFailed, match="X server"):
        await Recorder.start(order)

    assert _names(tmp_path) == []


async def test_recorder_presses_nothing_and_frees_nothing(screen: DesktopSession, tmp_path: Path) -> None:
    """Ours: a key that the agent holds stays held while a recording begins and ends."""
    down = ComputerCall.model_validate(
        {"actions": [{"action": "key_down", "text": "shift"}], "screenshot": False}
    )
    await screen.perform(down)
    recorder = await Recorder.start(_order(screen, tmp_path / "film.mp4"))
    await recorder.stop()
    look = ComputerCall.model_validate({"actions": [{"action": "cursor_position"}], "screenshot": False})
    result = await screen.perform(look)

    assert result.held is not None
    assert result.held.keys == ("Shift_L",)


def test_torn_note_of_a_change_is_left_out(tmp_path: Path) -> None:
    """Ours: a kill may come in the corner of four bytes."""
    path = tmp_path / "a.changes"
    path.write_bytes(np.array([500, 1250], "<u4").tobytes() + b"\x01\x02")

    assert read_changes(path) == [0.5, 1.25]
