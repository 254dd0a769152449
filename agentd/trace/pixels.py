"""
Pictures of the log as pixels.

Pure: bytes in, arrays ``(height, width, 3)`` of uint8 and boxes out.
"""

import io

import numpy as np
import pybase64
from numpy.typing import NDArray
from PIL import Image

from computer.wire import ScreenshotData

__all__ = ["changed_box", "decode"]

# Difference of a colour that pictures of the same screen may have where they lose a little.
LOSS = 48

Box = tuple[int, int, int, int]


def decode(picture: ScreenshotData) -> NDArray[np.uint8]:
    """Pixels of *picture*."""
    with Image.open(io.BytesIO(pybase64.b64decode(picture.data))) as image:
        return np.asarray(image.convert("RGB"))


def changed_box(before: ScreenshotData, after: ScreenshotData) -> Box | None:
    """
    The box, in native pixels, in which two pictures of a screen differ; None where they don't.

    All of it where they can't be compared.
    """
    width, height = after.native_size
    if before.native_size != after.native_size or before.model_size != after.model_size:
        return (0, 0, width, height)
    if before.data == after.data:
        return None
    old, new = decode(before).astype(np.int16), decode(after)
    loss = 0 if before.media_type == after.media_type == "image/png" else LOSS
    differs = (np.abs(old - new) > loss).any(axis=2)
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not len(rows):
        return None
    across, down = width / new.shape[1], height / new.shape[0]
    return (
        int(columns[0] * across),
        int(rows[0] * down),
        min(width, int(np.ceil((columns[-1] + 1) * across))),
        min(height, int(np.ceil((rows[-1] + 1) * down))),
    )
