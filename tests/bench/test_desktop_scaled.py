"""Screenshots scaled to what a model takes: grab, scale, PNG and base64."""

import base64

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.bench.desk import Desk, need
from tests.bench.peers import ffmpeg, read_file

SCALED = (1568, 882)

pytestmark = [
    pytest.mark.parametrize("desk", [(1920, 1080)], indirect=True, ids=["1920x1080"]),
    pytest.mark.benchmark(group=f"1920x1080 scaled to {SCALED[0]}x{SCALED[1]}, PNG in base64"),
]


def test_scaled_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """A new picture each time."""
    shot = benchmark.pedantic(
        lambda: desk.run(desk.driver.screenshot(SCALED)), setup=desk.touch_all, rounds=20, warmup_rounds=2
    )
    assert shot.model_size == SCALED


def test_scaled_ffmpeg(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """Grab, scale and encode in one process."""
    argv = ffmpeg(desk, "-vf", f"scale={SCALED[0]}:{SCALED[1]}")
    benchmark.pedantic(lambda: base64.b64encode(desk.spawn(*argv)), rounds=5)


def test_scaled_scrot_and_convert(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """The reference demo's way."""
    path = desk.directory / "shot.png"
    scrot, convert = need("scrot"), need("convert")

    def shoot() -> bytes:
        desk.spawn(scrot, "-o", "-p", str(path))
        return read_file(desk, path, convert, str(path), "-resize", f"{SCALED[0]}x{SCALED[1]}!", str(path))

    benchmark.pedantic(shoot, rounds=3)
