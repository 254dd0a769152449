"""
What filming costs: processor time of the recorder's process, not time on the clock.

The table's milliseconds are of processor time in ``FILMED_S`` seconds of filming; ratios are of those.
"""

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from computer.recording.orders import RecordOrder
from computer.recording.process import Recorder
from tests.bench.desk import Desk, need

FILMED_S = 3.0
# The pointer's way, so that something moves in each picture of an animated desktop.
MOVES_A_SECOND = 30


class Meter:
    """A clock that shows the processor time of one process."""

    process: psutil.Process | None = None

    @classmethod
    def now(cls) -> float:
        """Seconds of processor time so far."""
        if cls.process is None:
            return 0.0
        times = cls.process.cpu_times()
        return float(times.user + times.system)


def _rest(_: Desk) -> None:
    time.sleep(FILMED_S)


def _animate(desk: Desk) -> None:
    for _ in range(int(FILMED_S * MOVES_A_SECOND)):
        desk.touch_pixel()
        time.sleep(1 / MOVES_A_SECOND)


SCREENS = {"still": _rest, "changing": _animate}
measured = pytest.mark.benchmark(timer=Meter.now)


@pytest.fixture(params=SCREENS)
def film(
    benchmark: BenchmarkFixture, desk: Desk, request: pytest.FixtureRequest
) -> Iterator[Callable[[int], None]]:
    """Measures the process of a given number while the screen is still or changing."""
    benchmark.group = (
        f"filming a {request.param} screen at 15/s, {desk.size[0]}x{desk.size[1]} (processor time)"
    )

    def measure(pid: int) -> None:
        Meter.process = psutil.Process(pid)
        benchmark.pedantic(SCREENS[request.param], args=(desk,), rounds=2)

    yield measure
    Meter.process = None


@measured
def test_recorder_ours(film: Callable[[int], None], desk: Desk, tmp_path: Path) -> None:
    """Pictures of what changed, repeats of what did not."""
    order = RecordOrder(
        display=desk.environment["DISPLAY"],
        authority=desk.environment["XAUTHORITY"],
        path=str(tmp_path / "film.mp4"),
    )
    recorder = desk.run(Recorder.start(order))
    film(recorder.pid)
    desk.run(recorder.stop())


@measured
def test_ffmpeg_x11grab(film: Callable[[int], None], desk: Desk, tmp_path: Path) -> None:
    """The way of portabledesktop, with our encoder's settings."""
    size = f"{desk.size[0]}x{desk.size[1]}"
    argv = [
        need("ffmpeg"), "-v", "error", "-f", "x11grab", "-framerate", "15", "-video_size", size,
        "-i", desk.environment["DISPLAY"], "-c:v", "libx264", "-preset", "superfast", "-tune", "zerolatency",
        "-crf", "24", "-threads", "1", "-pix_fmt", "yuv420p", "-movflags", "+frag_keyframe+empty_moov",
        str(tmp_path / "film.mp4"),
    ]  # fmt: skip
    with subprocess.Popen(argv, env=desk.environment, stdin=subprocess.DEVNULL) as process:
        desk.run(asyncio.sleep(1))
        film(process.pid)
        process.terminate()
