"""The screen to raw pixels, ours beside memory itself and its peers."""

import itertools

import numpy as np
import pytest
from mss import MSS
from PIL import ImageGrab
from pytest_benchmark.fixture import BenchmarkFixture
from Xlib import X

from tests.bench.desk import Desk, need
from tests.bench.peers import RAW, ffmpeg

# Frames that memcpy goes round, so that it works on memory and not on the cache.
FRAMES = 16


@pytest.fixture(autouse=True)
def _group(benchmark: BenchmarkFixture, desk: Desk) -> None:
    benchmark.group = f"raw pixels, {desk.size[0]}x{desk.size[1]}"


def test_capture_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """Pixels with the pointer drawn in."""
    benchmark.pedantic(desk.display.capture, rounds=60, warmup_rounds=3)


def test_memcpy_of_a_frame(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """The floor."""
    frames = [np.full((desk.size[1], desk.size[0], 4), n, np.uint8) for n in range(FRAMES)]
    pairs = itertools.cycle(itertools.pairwise(frames))
    benchmark.pedantic(lambda: np.copyto(*next(pairs)), rounds=60, warmup_rounds=3)


def test_python_xlib_get_image(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """The usual library."""
    root = desk.painter.screen().root
    benchmark.pedantic(lambda: root.get_image(0, 0, *desk.size, X.ZPixmap, 0xFFFFFFFF), rounds=10)


def test_pillow_image_grab(benchmark: BenchmarkFixture, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's own grab by xcb."""
    monkeypatch.setenv("XAUTHORITY", desk.environment["XAUTHORITY"])
    benchmark.pedantic(lambda: ImageGrab.grab(xdisplay=desk.environment["DISPLAY"]), rounds=10)


def test_mss(benchmark: BenchmarkFixture, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Xlib: on this server its other ways fail ("drawable's visual not found")."""
    monkeypatch.setenv("XAUTHORITY", desk.environment["XAUTHORITY"])
    with MSS(display=desk.environment["DISPLAY"], backend="xlib") as grabber:
        benchmark.pedantic(lambda: grabber.grab(grabber.monitors[0]), rounds=10)


def test_scrot(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """To a PNG file."""
    argv = (need("scrot"), "-o", str(desk.directory / "scrot.png"))
    benchmark.pedantic(lambda: desk.spawn(*argv), rounds=7)


def test_imagemagick_import(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """To a raw file."""
    argv = (need("import"), "-window", "root", f"rgba:{desk.directory / 'import.rgba'}")
    benchmark.pedantic(lambda: desk.spawn(*argv), rounds=5)


def test_ffmpeg_x11grab(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """To a raw pipe."""
    argv = ffmpeg(desk, output=RAW)
    assert len(benchmark.pedantic(lambda: desk.spawn(*argv), rounds=5)) == desk.size[0] * desk.size[1] * 4


def test_vncdotool(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """Its command line, to a BMP file."""
    argv = (need("vncdo"), "-s", str(desk.rfb), "capture", str(desk.directory / "vnc.bmp"))
    benchmark.pedantic(lambda: desk.spawn(*argv), rounds=3)
