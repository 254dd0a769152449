"""Screenshots to PNG: ours against Pillow's own grab, on the same desktop in the same run."""

import asyncio
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import ImageGrab
from pytest_benchmark.fixture import BenchmarkFixture

from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall

LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
CLICK = ComputerCall.model_validate(
    {"actions": [{"action": "mouse_move", "coordinate": [5, 5]}], "screenshot": False}
)
GROUP = "screenshot to PNG, 1280x800"


class Desk:
    """A desktop session and the loop it lives on, for synchronous benchmarks."""

    def __init__(self, directory: Path) -> None:
        self.runner = asyncio.Runner()
        self.session = DesktopSession(SessionSettings(runtime_dir=directory))
        self.runner.run(self.session.ensure_running())
        self.runner.run(self.session.open(["xterm", "-e", "top", "-d", "0.05"]))

    def perform(self, call: ComputerCall) -> None:
        """One call through the driver."""
        result = self.runner.run(self.session.perform(call))
        assert result.error is None


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desktop with something moving on it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        desk = Desk(Path(directory) / "d")
        monkeypatch.setenv("XAUTHORITY", desk.session.environment()["XAUTHORITY"])
        yield desk
        desk.runner.run(desk.session.stop())
        desk.runner.close()


@pytest.mark.benchmark(group=GROUP)
def test_screenshot_through_the_driver(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """Capture, PNG and base64, as a tool result carries it."""
    benchmark(desk.perform, LOOK)


@pytest.mark.benchmark(group=GROUP)
def test_screenshot_by_pillow(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """The usual way in Python: ImageGrab and PNG level 1."""
    display = desk.session.environment()["DISPLAY"]

    def grab() -> bytes:
        target = io.BytesIO()
        ImageGrab.grab(xdisplay=display).save(target, "PNG", compress_level=1)
        return target.getvalue()

    assert benchmark(grab)


@pytest.mark.benchmark(group="move the pointer")
def test_move_through_the_driver(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One action without a picture."""
    benchmark(desk.perform, CLICK)
