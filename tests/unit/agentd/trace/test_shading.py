"""Which pictures are covered, and for how long."""

import io
from datetime import UTC, datetime

import numpy as np
import pybase64
import pytest
from PIL import Image

from agentd.trace.shading import ECHO_S, LONGEST_CALL_S, Shading
from computer.wire import ScreenshotData

SECRET = slice(32, 48)


def _picture(shade: int = 255, kind: str = "png") -> ScreenshotData:
    """White, with something in the middle."""
    pixels = np.full((96, 96, 3), 255, np.uint8)
    pixels[SECRET, SECRET] = shade
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return ScreenshotData.model_validate(
        {
            "media_type": f"image/{kind}",
            "data": pybase64.b64encode(out.getvalue()).decode(),
            "model_size": (96, 96),
            "native_size": (96, 96),
            "taken_at": datetime.now(UTC),
        }
    )


def _is_black(picture: ScreenshotData) -> bool:
    image = Image.open(io.BytesIO(pybase64.b64decode(picture.data)))
    return not np.asarray(image.convert("RGB"))[SECRET, SECRET].any()


@pytest.mark.parametrize("kind", ["png", "jpeg"])
async def test_covered_from_the_first_key_until_it_looks_otherwise(kind: str) -> None:
    """Required: secrets never appear."""
    now = 0.0
    shading = Shading(clock=lambda: now)
    await shading.begin("main", _picture(kind=kind))
    during = await shading.cover("main", _picture(120, kind))
    shading.end("main")
    now += ECHO_S / 2
    soon = await shading.cover("main", _picture(60, kind))
    now += ECHO_S
    late = [await shading.cover("main", _picture(60, kind)) for _ in range(2)]
    covers = shading.covers("main")
    gone = await shading.cover("main", _picture(255, kind))

    assert all(_is_black(picture) for picture in (during, soon, *late))
    assert covers
    assert not _is_black(gone)
    assert not shading.covers("main")
    assert not shading.covers("other")


async def test_call_that_never_ends_is_over_some_time() -> None:
    """Ours: whoever was cancelled in between does not blacken the log for ever."""
    now = 0.0
    shading = Shading(clock=lambda: now)
    await shading.begin("main", _picture())
    await shading.cover("main", _picture())
    before = shading.covers("main")
    now = LONGEST_CALL_S + 1
    await shading.cover("main", _picture())

    assert before
    assert not shading.covers("main")


async def test_screen_that_was_not_seen_before_is_black() -> None:
    """Ours: the secret's call started the desktop."""
    shading = Shading()
    await shading.begin("main", None)

    assert _is_black(await shading.cover("main", _picture()))
