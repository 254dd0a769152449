"""
Pixels to pictures: crop, scale, draw the pointer, encode.

Pure computation on arrays. Compresses with ISA-L where the ``isal`` wheel is there, with
Pillow where it is not; both are lossless. Knows no display.
"""

import base64
import io
import struct
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from computer.errors import OutOfBounds
from computer.geometry import Point, Rect, Size

__all__ = [
    "Cursor",
    "Framebuffer",
    "blend_cursor",
    "crop",
    "encode_png",
    "frame_size",
    "scale_rgb",
    "to_base64",
    "to_rgb",
]

# (height, width, 4) uint8, BGRX, origin top left.
Framebuffer = NDArray[np.uint8]

# Compression levels. Level 1 of ISA-L is 20 times faster than zlib's default and as small;
# Pillow's level 1 is the nearest to it in speed.
ISAL_LEVEL: Final = 1
PILLOW_LEVEL: Final = 1
# Rows of one strip, and number of strips, from which the row filter is chosen.
SAMPLE_ROWS: Final = 8
SAMPLE_STRIPS: Final = 3
_FILTER_NONE: Final = 0
_FILTER_UP: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The pointer's picture: premultiplied BGRA ``(height, width, 4)``, and its top left corner."""

    pixels: NDArray[np.uint8]
    origin: Point


def frame_size(framebuffer: Framebuffer) -> Size:
    """Width and height of a framebuffer."""
    return Size(width=framebuffer.shape[1], height=framebuffer.shape[0])


def crop(framebuffer: Framebuffer, area: Rect) -> Framebuffer:
    """
    Copy the pixels of *area* into a new framebuffer.

    Raises:
        OutOfBounds: *area* leaves the framebuffer.
    """
    height, width = framebuffer.shape[:2]
    if not (0 <= area.left < area.right <= width and 0 <= area.top < area.bottom <= height):
        msg = f"{area} leaves the {width}x{height} framebuffer"
        raise OutOfBounds(msg)
    return framebuffer[area.top : area.bottom, area.left : area.right].copy()


def blend_cursor(framebuffer: Framebuffer, cursor: Cursor) -> None:
    """Draw *cursor* over *framebuffer* in place, clipped to it."""
    height, width = framebuffer.shape[:2]
    rows, columns = cursor.pixels.shape[:2]
    left, top = max(cursor.origin.x, 0), max(cursor.origin.y, 0)
    right, bottom = min(cursor.origin.x + columns, width), min(cursor.origin.y + rows, height)
    if left >= right or top >= bottom:
        return
    source = cursor.pixels[
        top - cursor.origin.y : bottom - cursor.origin.y, left - cursor.origin.x : right - cursor.origin.x
    ].astype(np.uint16)
    target = framebuffer[top:bottom, left:right]
    opacity = source[..., 3:4]
    blended = source[..., :3] + target[..., :3] * (255 - opacity) // 255
    target[..., :3] = np.minimum(blended, 255).astype(np.uint8)


def to_rgb(framebuffer: Framebuffer) -> NDArray[np.uint8]:
    """Convert to ``(height, width, 3)`` uint8 RGB."""
    height, width = framebuffer.shape[:2]
    data: Any = np.ascontiguousarray(framebuffer).data
    # Pillow's unpacker is eight times faster than a numpy slice with reversed channels.
    image = Image.frombuffer("RGB", (width, height), data, "raw", "BGRX", 0, 1)
    return np.asarray(image)


def scale_rgb(rgb: NDArray[np.uint8], target: Size) -> NDArray[np.uint8]:
    """Resample to *target* with antialiasing; returns the same array when it fits already."""
    height, width = rgb.shape[:2]
    if (width, height) == (target.width, target.height):
        return rgb
    # reducing_gap halves large pictures cheaply before the exact filter runs.
    image = Image.fromarray(rgb).resize(
        (target.width, target.height), Image.Resampling.LANCZOS, reducing_gap=2.0
    )
    return np.asarray(image)


def encode_png(rgb: NDArray[np.uint8]) -> bytes:
    """
    Encode ``(height, width, 3)`` uint8 RGB as a PNG, without loss.

    Source: W3C PNG (Third Edition), 5, 9 and 10.
    """
    codec = _load_isal()
    if codec is None:
        return encode_png_pillow(rgb)
    height, width = rgb.shape[:2]
    rows = _filter_rows(rgb, _choose_filter(rgb, codec))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = codec.compress(rows.data, ISAL_LEVEL)
    chunks = ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data, codec) for kind, data in chunks)


def encode_png_pillow(rgb: NDArray[np.uint8]) -> bytes:
    """Encode with Pillow: the way where no ISA-L wheel exists."""
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "PNG", compress_level=PILLOW_LEVEL)
    return buffer.getvalue()


def to_base64(data: bytes) -> str:
    """Encode as base64 text."""
    return base64.b64encode(data).decode("ascii")


def _load_isal() -> Any | None:  # noqa: ANN401  the module has no types
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return None


def _chunk(kind: bytes, data: bytes, codec: Any) -> bytes:  # noqa: ANN401
    checksum = codec.crc32(data, codec.crc32(kind))
    return b"".join((struct.pack(">I", len(data)), kind, data, struct.pack(">I", checksum)))


def _choose_filter(rgb: NDArray[np.uint8], codec: Any) -> int:  # noqa: ANN401
    # Flat screens compress best unfiltered, photos with "up"; three strips tell which one it is.
    height = rgb.shape[0]
    plain = filtered = 0
    for strip in range(SAMPLE_STRIPS):
        top = max(0, (2 * strip + 1) * height // (2 * SAMPLE_STRIPS) - SAMPLE_ROWS // 2)
        rows = rgb[top : top + SAMPLE_ROWS]
        plain += len(codec.compress(_filter_rows(rows, _FILTER_NONE).data, ISAL_LEVEL))
        filtered += len(codec.compress(_filter_rows(rows, _FILTER_UP).data, ISAL_LEVEL))
    return _FILTER_NONE if plain <= filtered else _FILTER_UP


def _filter_rows(rgb: NDArray[np.uint8], row_filter: int) -> NDArray[np.uint8]:
    height, width = rgb.shape[:2]
    flat = rgb.reshape(height, width * 3)
    rows = np.empty((height, width * 3 + 1), np.uint8)
    rows[:, 0] = row_filter
    if row_filter == _FILTER_NONE:
        rows[:, 1:] = flat
    else:
        rows[0, 1:] = flat[0]
        np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    return rows
