"""Where two pictures of a screen differ."""

import io
from datetime import UTC, datetime

import numpy as np
import pybase64
import pytest
from PIL import Image

from agentd.trace.pixels import changed_box
from computer.wire import ScreenshotData


def _picture(
    spot: tuple[int, int, int, int] | None = None, *, native: tuple[int, int] = (120, 80), kind: str = "png"
) -> ScreenshotData:
    """Grey, half the size of the screen, with a white spot."""
    pixels = np.full((40, 60, 3), 99, np.uint8)
    if spot is not None:
        left, top, right, bottom = spot
        pixels[top:bottom, left:right] = 255
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return ScreenshotData.model_validate(
        {
            "media_type": f"image/{kind}",
            "data": pybase64.b64encode(out.getvalue()).decode(),
            "model_size": (60, 40),
            "native_size": native,
            "taken_at": datetime.now(UTC),
        }
    )


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_box_is_in_native_pixels(kind: str) -> None:
    """Ours: whatever size the pictures have; what a lossy one loses is no change."""
    left, top, right, bottom = changed_box(_picture(kind=kind), _picture((16, 8, 32, 24), kind=kind)) or (
        0, 0, 0, 0,
    )  # fmt: skip

    # A lossy one spreads a change over its blocks.
    slack = 0 if kind == "png" else 16
    assert np.abs(np.subtract((left, top, right, bottom), (32, 16, 64, 48))).max() <= slack


def test_same_screen_has_no_box() -> None:
    """Ours: also where it was encoded twice."""
    assert changed_box(_picture(), _picture()) is None
    assert changed_box(_picture(kind="png"), _picture(kind="jpeg")) is None


def test_other_size_is_a_change_of_all() -> None:
    """Ours: they can't be compared."""
    assert changed_box(_picture(), _picture(native=(240, 80))) == (0, 0, 240, 80)
