"""BUGS 31: a large screen, the smaller picture that each vendor's model gets, and clicks that land right."""

import base64
import io
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from computer.geometry import VENDOR_LIMITS, Size, Vendor, vendor_size
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall, ComputerResult
from tests.integration.computer.event_log import EventLog

NATIVE = Size(width=2_560, height=1_440)


@pytest.fixture
async def session(runtime_dir: Path, environment: dict[str, str]) -> AsyncIterator[DesktopSession]:
    """A desktop that is larger than any model's picture."""
    settings = SessionSettings(
        name="test", runtime_dir=runtime_dir, backend="xvnc", width=NATIVE.width, height=NATIVE.height
    )
    session = DesktopSession(settings, base_environment=environment)
    yield session
    await session.stop()


def _grid(model: Size) -> list[tuple[int, int]]:
    """Corners, middles of edges, and the middle."""
    columns, rows = ((0, edge // 2, edge - 1) for edge in (model.width, model.height))
    return list(itertools.product(columns, rows))


def _size_of_picture(result: ComputerResult) -> tuple[int, int]:
    assert result.screenshot is not None
    with Image.open(io.BytesIO(base64.b64decode(result.screenshot.data))) as picture:
        return picture.size


@pytest.mark.parametrize("vendor", VENDOR_LIMITS)
async def test_clicks_on_a_smaller_picture_land_on_what_it_shows(
    session: DesktopSession, log: EventLog, vendor: Vendor
) -> None:
    """BUGS 31: 2560x1440, nine targets, corners included: 1 px at most after rounding."""
    model = vendor_size(vendor, NATIVE)
    targets = _grid(model)
    clicks = [{"action": "left_click", "coordinate": target} for target in targets]
    frame = (model.width, model.height)
    result = await session.perform(ComputerCall.model_validate({"actions": clicks, "model_size": frame}))
    presses = [event for event in await log.take() if event["type"] == "press"]

    assert model.width < NATIVE.width
    assert _size_of_picture(result) == frame
    assert len(presses) == len(targets)
    for (x, y), event in zip(targets, presses, strict=True):
        # The middle of the model's pixel, in native pixels counted from their middles.
        assert event["x"] == pytest.approx((x + 0.5) * NATIVE.width / model.width - 0.5, abs=1)
        assert event["y"] == pytest.approx((y + 0.5) * NATIVE.height / model.height - 0.5, abs=1)
