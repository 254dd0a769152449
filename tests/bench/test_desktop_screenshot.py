"""Screenshots as a model gets them: PNG in base64, whole, scaled and unchanged."""

import base64
import io
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image
from pytest_benchmark.fixture import BenchmarkFixture

from computer import pixels, png
from tests.bench.desk import Desk, need
from tests.bench.peers import ffmpeg, read_file


@pytest.fixture
def whole(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """Group of unscaled pictures."""
    benchmark.group = f"screenshot to PNG in base64, {desk.size[0]}x{desk.size[1]}"


@pytest.mark.usefixtures("whole")
def test_screenshot_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """Another picture from top to bottom each time; its size beside Pillow's, its pixels exact."""
    shot = benchmark.pedantic(
        lambda: desk.run(desk.driver.screenshot()), setup=desk.touch_all, rounds=30, warmup_rounds=2
    )
    data = base64.b64decode(shot.data)
    rgb = pixels.to_rgb(desk.display.capture())
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")), rgb)
    benchmark.extra_info["kB"] = len(data) // 1_000
    benchmark.extra_info["size/Pillow-level-1"] = round(len(data) / len(png.encode_png_pillow(rgb)), 3)


@pytest.mark.usefixtures("whole")
def test_screenshot_after_a_line_was_typed(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """A picture of which most is as before: that part is not compressed again."""
    benchmark.pedantic(
        lambda: desk.run(desk.driver.screenshot()), setup=desk.touch_line, rounds=30, warmup_rounds=2
    )


@pytest.fixture(params=["page", "photo"])
def covered(request: pytest.FixtureRequest, benchmark: BenchmarkFixture, desk: Desk) -> Iterator[None]:
    """Group of pictures of a screen that is one thing only."""
    benchmark.group = f"screenshot of a {request.param} over the whole screen, {desk.size[0]}x{desk.size[1]}"
    with desk.covered(request.param):
        yield


@pytest.mark.parametrize("desk", [(1280, 800)], indirect=True, ids=["1280x800"])
@pytest.mark.usefixtures("covered")
class TestCovered:
    """The two ends of what an encoder meets."""

    def test_covered_ours(self, benchmark: BenchmarkFixture, desk: Desk) -> None:
        """See ``test_screenshot_ours``."""
        test_screenshot_ours(benchmark, desk)

    def test_covered_scrot_and_read(self, benchmark: BenchmarkFixture, desk: Desk) -> None:
        """See ``test_scrot_and_read``."""
        test_scrot_and_read(benchmark, desk)

    def test_covered_ffmpeg(self, benchmark: BenchmarkFixture, desk: Desk) -> None:
        """See ``test_ffmpeg_x11grab``."""
        test_ffmpeg_x11grab(benchmark, desk)


@pytest.mark.usefixtures("whole")
def test_encoder_alone(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """The encoder's own limit."""
    rgb = pixels.to_rgb(desk.display.capture())
    benchmark.pedantic(lambda: png.encode_png(rgb), rounds=20, warmup_rounds=1)


@pytest.mark.usefixtures("whole")
def test_scrot_and_read(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """The reference demo's way."""
    path = desk.directory / "shot.png"
    scrot = need("scrot")
    benchmark.pedantic(lambda: read_file(desk, path, scrot, "-o", "-p", str(path)), rounds=7)


@pytest.mark.usefixtures("whole")
def test_ffmpeg_x11grab(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """The way of portabledesktop."""
    argv = ffmpeg(desk)
    benchmark.pedantic(lambda: base64.b64encode(desk.spawn(*argv)), rounds=5)


@pytest.mark.usefixtures("whole")
def test_imagemagick_import(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """To a PNG file."""
    path = desk.directory / "import.png"
    program = need("import")
    benchmark.pedantic(lambda: read_file(desk, path, program, "-window", "root", str(path)), rounds=3)


@pytest.mark.usefixtures("whole")
def test_vncdotool(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """Its command line."""
    path = desk.directory / "vnc.png"
    program = need("vncdo")
    benchmark.pedantic(
        lambda: read_file(desk, path, program, "-s", str(desk.rfb), "capture", str(path)), rounds=3
    )


def test_unchanged_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """A call that only looks, at a screen that is as before; said to be unchanged."""
    benchmark.group = f"screenshot of an unchanged screen, {desk.size[0]}x{desk.size[1]}"
    call = desk.call({"action": "screenshot"})
    desk.run(desk.driver.perform(call))
    result = benchmark.pedantic(lambda: desk.run(desk.driver.perform(call)), rounds=60)
    assert result.screenshot is not None
    assert result.screenshot.unchanged
